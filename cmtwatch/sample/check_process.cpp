#include "cmtwatch/sample/check_process.h"

#include <signal.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

#include "toolkit/process/stat.h"

namespace cmt::watch {

void check_process(int pid, const std::string& root) {
  const std::string number = std::to_string(pid);
  process::Stat stat;
  try {
    stat = process::read_stat(pid, root);
  } catch (const std::system_error&) {
    const bool hidden = root == "/proc" && (kill(pid, 0) == 0 || errno == EPERM);
    throw std::runtime_error(hidden ? "process " + number + " is hidden: /proc is mounted with hidepid"
                                    : "there is no process " + number);
  }
  const std::string who = number + " (" + stat.name + ")";
  if (stat.kernel_thread) throw std::runtime_error(who + " is a kernel thread: it has no memory of its own");
  if (stat.zombie()) throw std::runtime_error(who + " has ended, and waits for its parent: its memory is gone");
}

}  // namespace cmt::watch
