// Asks the pidfd and /proc for the end of a process. One of them may not know it yet, or no longer.

#include "preload/collector/process_end.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "preload/collector/pages/resident_rings.h"
#include "preload/text.h"

namespace cmt::collector {
namespace {

/// As in Linux 6.15's pidfd.h.
struct PidfdInfo {
  std::uint64_t mask;
  std::uint64_t cgroup;
  std::uint32_t ids[11];
  std::int32_t exit_code;
};
constexpr unsigned long pidfd_get_info = _IOWR(0xFF, 11, PidfdInfo);
constexpr std::uint64_t pidfd_info_exit = 1 << 3;

/// Returns the status as of wait(2), or -1. The pidfd reports it after the process has been waited for. Before that
/// it is the last number in /proc/PID/stat.
int read_wait_status(int process_fd, std::uint32_t process) {
  PidfdInfo info{};
  info.mask = pidfd_info_exit;
  if (::ioctl(process_fd, pidfd_get_info, &info) == 0 && (info.mask & pidfd_info_exit) != 0) return info.exit_code;
  std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  std::getline(stat, line);
  if (line.find(") Z ") == std::string::npos) return -1;
  return static_cast<int>(std::strtol(line.c_str() + line.rfind(' '), nullptr, 10));
}

/// Whether a process has other words than at the begin of its recording. All may read these.
bool has_other_words(const StartFacts& facts) {
  std::ifstream file("/proc/" + std::to_string(facts.process) + "/cmdline");
  std::string words(std::istreambuf_iterator<char>(file), {});
  std::array<char, command_bytes_max> command{};
  put_command(command.data(), command.size(), words.data(), std::min(words.size(), command.size()), facts.forked != 0);
  return command[0] != 0 && command.data() != facts.command;
}

}  // namespace

// Tries several times: the process may be waited for between the query of the pidfd and the read of /proc.
EndOfProcess find_process_end(int process_fd, std::uint32_t process) {
  EndOfProcess end;
  for (int tries = 0; tries < 20 && end.wait_status < 0; ++tries) {
    end.wait_status = read_wait_status(process_fd, process);
    if (end.wait_status < 0) ::poll(nullptr, 0, 1);
  }
  if (end.wait_status >= 0) end.how = WIFEXITED(end.wait_status) ? ProcessEnd::exited : ProcessEnd::killed;
  return end;
}

bool was_executed(const RingMemory& memory) {
  const RingsMapping rings = find_rings(memory);
  if (rings.is_readable) return rings.address == 0;
  const bool announces = __atomic_load_n(&memory.control().exec_pending, __ATOMIC_ACQUIRE) != 0;
  return announces && has_other_words(memory.start_facts());
}

}  // namespace cmt::collector
