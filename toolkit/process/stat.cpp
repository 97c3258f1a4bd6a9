// /proc/PID/stat is one line of fields between blanks, of which the second is the name in round brackets:
//
//   4711 (a (b) c) S 1 4711 4711 0 -1 4194304 ...
//
// A name may hold blanks and brackets, so the fields are counted from the last closing bracket: the first after it is
// field 3 of proc(5).

#include "toolkit/process/stat.h"

#include <array>
#include <charconv>

#include "cmt/error.h"
#include "toolkit/process/proc_file.h"

namespace cmt::process {
namespace {

constexpr std::uint64_t kernel_thread_flag = 0x00200000;  // PF_KTHREAD of the kernel's sched.h

/// Fields 3 to 38 of proc(5), from field 4 on as numbers (field n at n - 4); negative ones read as 0. Older kernels,
/// and texts made by hand, end earlier.
struct Fields {
  char state = '?';
  std::array<std::uint64_t, 35> numbers{};
  std::size_t count = 0;

  std::uint64_t number(int field) const { return numbers[static_cast<std::size_t>(field - 4)]; }
};

Fields parse_fields(std::string_view text) {
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
  if (fields.count > 38 - 4) stat.exit_signal = static_cast<int>(fields.number(38));
  return stat;
}

Stat read_stat(int pid, const std::string& root) { return parse_stat(read_file(path_of(pid, "stat", root))); }

}  // namespace cmt::process
