// /proc/PID/stat is one line of fields between blanks, of which the second is the name in round brackets:
//
//   4711 (a (b) c) S 1 4711 4711 0 -1 4194304 ...
//
// A name may hold blanks and brackets, so the fields are counted from the last closing bracket: the first after it is
// field 3 of proc(5).

#include "toolkit/process/stat.h"

#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <system_error>

#include "cmt/error.h"

namespace cmt::process {
namespace {

constexpr std::uint64_t kernel_thread_flag = 0x00200000;  // PF_KTHREAD of the kernel's sched.h

/// Fields 3 to 38 of proc(5), from field 4 on as numbers (field n at n - 4); negative ones read as 0. Older kernels,
/// and texts made by hand, end earlier.
struct Fields {
  char state = '?';
  std::array<std::uint64_t, 35> numbers{};
  std::size_t count = 0;

  std::uint64_t number(int field) const {
    assert(field >= 4 && field - 4 < static_cast<int>(numbers.size()));
    return numbers[static_cast<std::size_t>(field - 4)];
  }
};

Fields parse_fields(std::string_view text) {
  assert(!text.empty());
  Fields fields;
  fields.state = text[0];
  const char* at = text.data() + 1;
  const char* const end = text.data() + text.size();
  for (std::uint64_t& number : fields.numbers) {
    while (at != end && (*at == ' ' || *at == '\n')) ++at;
    if (at == end) break;
    ++fields.count;
    const auto next = std::from_chars(at, end, number).ptr;
    for (at = next; at != end && *at != ' ';) ++at;
  }
  if (fields.count < 22 - 3) throw FormatError("stat:1", "a field is missing");
  return fields;
}

std::uint64_t figure(std::string_view text, std::string_view key) { return find_figure(text, key).value_or(0); }

/// The text of a file. Returns nothing if the file is gone.
std::optional<std::string> text_of(const std::string& path) {
  try {
    return read_file(path);
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

void append_numbers(std::string_view text, std::vector<int>& numbers) {
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at != end;) {
    int number = 0;
    const auto [rest, problem] = std::from_chars(at, end, number);
    if (problem == std::errc()) numbers.push_back(number);
    at = problem == std::errc() ? rest : at + 1;
  }
}

/// The children that the kernel lists for all threads. Returns nothing if this kernel has no such lists.
std::optional<std::vector<int>> listed_children(int pid, const std::string& root) {
  const std::string tasks = path_of(pid, "task", root);
  std::vector<int> children;
  bool listed = false;
  for (const int task : numbers_in(tasks)) {
    const auto text = text_of(tasks + "/" + std::to_string(task) + "/children");
    if (!text) continue;
    listed = true;
    append_numbers(*text, children);
  }
  if (!listed) return std::nullopt;
  return children;
}

std::vector<int> children_by_parent(int pid, const std::string& root) {
  std::vector<int> children;
  for (const int candidate : read_pids(root)) {
    const auto text = text_of(path_of(candidate, "stat", root));
    if (text && !text->empty() && parse_stat(*text).parent == pid) children.push_back(candidate);
  }
  return children;
}

}  // namespace

Stat parse_stat(std::string_view text) {
  const auto open = text.find(" (");
  const auto close = text.rfind(") ");
  if (open == text.npos || close == text.npos || close < open || close + 2 >= text.size())
    throw FormatError("stat:1", "expected a process");
  const Fields fields = parse_fields(text.substr(close + 2));
  Stat stat;
  std::from_chars(text.data(), text.data() + open, stat.pid);
  stat.name = text.substr(open + 2, close - open - 2);
  stat.state = fields.state;
  stat.parent = static_cast<int>(fields.number(4));
  stat.kernel_thread = fields.number(9) & kernel_thread_flag;
  stat.minor_faults = fields.number(10);
  stat.major_faults = fields.number(12);
  stat.user_ticks = fields.number(14);
  stat.system_ticks = fields.number(15);
  stat.threads = fields.number(20);
  stat.start_ticks = fields.number(22);
  stat.stack_pointer = fields.number(29);
  if (fields.count > 38 - 4) stat.exit_signal = static_cast<int>(fields.number(38));
  return stat;
}

Stat read_stat(int pid, const std::string& root) { return parse_stat(read_file(path_of(pid, "stat", root))); }

Status parse_status(std::string_view text) {
  const auto bytes = [text](std::string_view key) { return figure(text, key) * 1024; };
  return {.resident_bytes_peak = bytes("VmHWM"),
          .resident_bytes = bytes("VmRSS"),
          .resident_file_bytes = bytes("RssFile"),
          .swapped_bytes = bytes("VmSwap"),
          .tracer = static_cast<int>(figure(text, "TracerPid")),
          .switches = figure(text, "voluntary_ctxt_switches")};
}

Status read_status(int pid, const std::string& root) { return parse_status(read_file(path_of(pid, "status", root))); }

Statm parse_statm(std::string_view text) {
  Statm statm;
  for (std::uint64_t* field : {&statm.size_pages, &statm.resident_pages, &statm.shared_pages}) {
    const std::string_view word = take_word(text);
    std::from_chars(word.data(), word.data() + word.size(), *field);
  }
  return statm;
}

Traffic parse_io(std::string_view text) {
  return {.read_call_bytes = find_figure(text, "rchar"),
          .written_call_bytes = find_figure(text, "wchar"),
          .read_bytes = find_figure(text, "read_bytes"),
          .written_bytes = find_figure(text, "write_bytes")};
}

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

std::optional<std::uint64_t> read_stack_pointer(const ProcessFolder& process, int thread, std::string& buffer) {
  const std::string task = "task/" + std::to_string(thread);
  try {
    return parse_stack_pointer(process.read((task + "/syscall").c_str(), buffer));
  } catch (const std::system_error&) {  // this kernel has none, or we may not
  }
  try {
    const std::uint64_t pointer = parse_stat(process.read((task + "/stat").c_str(), buffer)).stack_pointer;
    return pointer == 0 ? std::nullopt : std::optional(pointer);
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

std::vector<int> read_pids(const std::string& root) { return numbers_in(root); }

std::vector<int> read_children(int pid, const std::string& root) {
  if (auto listed = listed_children(pid, root)) return *listed;
  return text_of(path_of(pid, "stat", root)) ? children_by_parent(pid, root) : std::vector<int>();
}

std::vector<int> read_threads(int pid, const std::string& root) { return numbers_in(path_of(pid, "task", root)); }

bool are_all_threads(int pid, const std::vector<int>& threads) {
  const auto stat = text_of(path_of(pid, "stat"));
  if (!stat) return true;
  return parse_stat(*stat).threads == threads.size() &&
         std::all_of(threads.begin(), threads.end(), [pid](int thread) { return has_thread(pid, thread); });
}

bool has_thread(int pid, int thread) {
  return access(path_of(pid, "task/" + std::to_string(thread)).c_str(), F_OK) == 0;
}

bool share_memory(int pid, int other) { return syscall(SYS_kcmp, pid, other, KCMP_VM, 0, 0) == 0; }

}  // namespace cmt::process
