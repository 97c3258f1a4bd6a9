#include "toolkit/terminal/sparkline.h"

#include <algorithm>
#include <array>

namespace cmt::output {
namespace {

constexpr std::array<const char*, 8> bars{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

}  // namespace

std::string sparkline(std::span<const std::uint64_t> numbers, std::size_t width) {
  numbers = numbers.last(std::min(width, numbers.size()));
  if (numbers.empty()) return {};
  const std::uint64_t most = std::max<std::uint64_t>(1, *std::max_element(numbers.begin(), numbers.end()));
  std::string line;
  for (const std::uint64_t number : numbers) {
    const double share = static_cast<double>(number) / static_cast<double>(most);
    line += bars[std::min<std::size_t>(7, static_cast<std::size_t>(share * 8))];
  }
  return line;
}

}  // namespace cmt::output
