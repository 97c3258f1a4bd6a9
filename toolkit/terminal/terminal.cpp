#include "toolkit/terminal/terminal.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <array>

namespace cmt::output {
namespace {

constexpr std::array<const char*, 8> bars{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

}  // namespace

TerminalSize terminal_size(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col <= 1 || size.ws_row <= 1) return {};
  return {size.ws_row, size.ws_col};
}

std::string_view cut_to_width(std::string_view text, std::size_t width) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool begins = (static_cast<unsigned char>(text[at]) & 0xc0) != 0x80;
    if (begins && width-- == 0) return text.substr(0, at);
  }
  return text;
}

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
