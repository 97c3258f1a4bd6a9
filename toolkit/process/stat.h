#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cmt::process {

/// What /proc/PID/stat says. A pid is used again after its process; pid and start together name one process for good.
struct Stat {
  int pid = 0;
  std::string name;  ///< at most 15 bytes, whatever they are: blanks and brackets too
  char state = '?';  ///< R running, S sleeping, Z zombie…
  int parent = 0;
  std::uint64_t minor_faults = 0;
  std::uint64_t major_faults = 0;  ///< those that read from a disk
  std::uint64_t user_ticks = 0;    ///< of processor time, sysconf(_SC_CLK_TCK) a second
  std::uint64_t system_ticks = 0;
  std::uint64_t threads = 0;
  std::uint64_t start_ticks = 0;  ///< after the machine's start
  bool kernel_thread = false;
  std::optional<int> exit_signal{};  ///< what its parent gets at its end; 0: nothing, and wait() does not see it

  bool zombie() const { return state == 'Z' || state == 'X'; }
};

/// Throws FormatError for what is no such text.
Stat parse_stat(std::string_view text);

/// Throws std::system_error where the process is gone.
Stat read_stat(int pid, const std::string& root = "/proc");

}  // namespace cmt::process
