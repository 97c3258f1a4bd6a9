#include "toolkit/symbols/perf_map.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <system_error>

#include "toolkit/process/proc_file.h"

namespace cmt::symbols {
namespace {

/// Takes a hexadecimal number and the blanks behind it off a line. False: there is none.
bool take_number(std::string_view& line, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number, 16);
  if (error != std::errc()) return false;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  if (line.empty() || line.front() != ' ') return false;
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return true;
}

}  // namespace

void look_up_in_perf_map(const std::string& path, std::span<const std::uint64_t> addresses,
                         const std::function<void(std::size_t index, std::string_view function)>& found) {
  const std::string text = process::read_file(path);
  std::map<std::size_t, std::string_view> functions;
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    std::uint64_t begin = 0, size = 0;
    if (!take_number(line, begin) || !take_number(line, size)) continue;
    auto at = std::lower_bound(addresses.begin(), addresses.end(), begin);
    for (; at != addresses.end() && *at - begin < size; ++at) {
      functions[static_cast<std::size_t>(at - addresses.begin())] = line;
    }
  }
  for (const auto& [index, function] : functions) found(index, function);
}

}  // namespace cmt::symbols
