// Reads the list of a JIT compiler from a folder in which all users may create files.

#include "toolkit/symbols/perf_map.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <charconv>
#include <map>
#include <system_error>

#include "cmt/error.h"
#include "toolkit/files/regular_file.h"
#include "toolkit/process/proc_file.h"

namespace cmt::symbols {
namespace {

/// Takes a hexadecimal number, which Java's lists begin with "0x", and the blanks after it off a line. Returns false if
/// there is none.
bool take_number(std::string_view& line, std::uint64_t& number) {
  if (line.starts_with("0x")) line.remove_prefix(2);
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number, 16);
  if (error != std::errc()) return false;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  if (line.empty() || line.front() != ' ') return false;
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return true;
}

/// The list's file, in a folder in which all users may make files, pipes and links. None: -1.
process::Fd open_list(const std::string& path) {
  process::Fd file;
  try {
    file = files::open_regular_file(path, {.follows_links = false});
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::no_such_file_or_directory) return file;
    throw;
  }
  struct stat status;
  if (fstat(file.get(), &status) != 0) throw std::system_error(errno, std::generic_category(), path);
  if (status.st_uid != geteuid() && status.st_uid != 0) throw FormatError(path, "belongs to another user");
  return file;
}

}  // namespace

std::string without_tier(std::string_view function) {
  for (const std::string_view kind : {"LazyCompile:", "Function:", "JS:", "Eval:", "Script:"}) {
    if (!function.starts_with(kind)) continue;
    std::string_view name = function.substr(kind.size());
    // "~" is interpreted, "^" a baseline compiler's, "+" a middle one's, "*" optimised. An "o" before it is for code
    // that replaced a running loop, a "'" after it for code of one context.
    for (const std::string_view tier : {"o+", "o*", "~", "^", "+", "*"}) {
      if (!name.starts_with(tier)) continue;
      name.remove_prefix(tier.size());
      if (name.starts_with("'")) name.remove_prefix(1);
      break;
    }
    return name.empty() || name.front() == ' ' ? "<anonymous>" + std::string(name) : std::string(name);
  }
  return std::string(function);
}

void look_up_in_perf_map(const std::string& path, std::span<const std::uint64_t> addresses,
                         const std::function<void(std::size_t index, std::string_view function)>& found) {
  assert(std::is_sorted(addresses.begin(), addresses.end()));
  const process::Fd file = open_list(path);
  if (file.get() < 0) return;
  std::string buffer;
  const std::string_view text = process::read_again(file.get(), buffer);
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
