// strace(1) and others wait with __WALL until they have no child, and see the keeper (collector_link.c), which no other
// wait() sees: it waits for the collector, the collector for the program's end, and the program for the keeper. The
// kernel says all that there is to know: what call the process is in, and which children it has.

#include "preload/collector/parent_wait.h"

#include <sys/syscall.h>
#include <sys/wait.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace cmt::collector {

bool is_wait_for_any(const std::string& line) {
  std::istringstream words(line);
  long call = -1;
  std::uint64_t arguments[4] = {};
  words >> call >> std::hex;
  for (std::uint64_t& argument : arguments) words >> argument;
  if (!words) return false;
  const bool is_any = (call == SYS_wait4 && static_cast<std::int32_t>(arguments[0]) == -1) ||
                      (call == SYS_waitid && arguments[0] == P_ALL);
  const std::uint64_t options = call == SYS_wait4 ? arguments[2] : arguments[3];
  return is_any && (options & (__WALL | __WCLONE)) != 0 && (options & WNOHANG) == 0;
}

bool waits_for_only(int process, int child) {
  const std::string folder = "/proc/" + std::to_string(process);
  std::string line;
  if (!std::getline(std::ifstream(folder + "/syscall"), line) || !is_wait_for_any(line)) return false;
  bool has_child = false;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator(folder + "/task", error)) {
    std::ifstream children(task.path() / "children");
    for (int other = 0; children >> other; has_child = true) {
      if (other != child) return false;
    }
  }
  return has_child;
}

}  // namespace cmt::collector
