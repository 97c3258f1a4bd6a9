#include "toolkit/process/threads.h"

#include <charconv>
#include <system_error>

#include "toolkit/process/numbers_in.h"

namespace cmt::process {

std::vector<int> read_threads(int pid, const std::string& root) { return numbers_in(path_of(pid, "task", root)); }

std::optional<std::uint64_t> parse_stack_pointer(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  const auto last = line.rfind(' ');
  if (last == line.npos) return std::nullopt;  // "running"
  const std::string_view rest = line.substr(0, last);
  const std::string_view word = rest.substr(rest.rfind(' ') + 1);
  if (word.substr(0, 2) != "0x") return std::nullopt;
  std::uint64_t pointer = 0;
  const auto [end, error] = std::from_chars(word.data() + 2, word.data() + word.size(), pointer, 16);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return pointer;
}

std::optional<std::uint64_t> parse_stack_pointer_of_stat(std::string_view text) {
  constexpr int fields_between = 29 - 3;
  auto at = text.rfind(") ");  // before field 3; the name before it may hold anything
  for (int field = 0; at != text.npos && field <= fields_between; ++field) at = text.find(' ', at + 1);
  if (at == text.npos) return std::nullopt;
  std::uint64_t pointer = 0;
  const auto error = std::from_chars(text.data() + at + 1, text.data() + text.size(), pointer).ec;
  return error == std::errc() && pointer != 0 ? std::optional(pointer) : std::nullopt;
}

std::optional<std::uint64_t> read_stack_pointer(const ProcessFolder& process, int thread, std::string& buffer) {
  const std::string task = "task/" + std::to_string(thread);
  try {
    return parse_stack_pointer(process.read((task + "/syscall").c_str(), buffer));
  } catch (const std::system_error&) {  // this kernel has none, or we may not
  }
  try {
    return parse_stack_pointer_of_stat(process.read((task + "/stat").c_str(), buffer));
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

}  // namespace cmt::process
