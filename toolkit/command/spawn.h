#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cmt::command {

/// How a process is started.
struct SpawnOptions {
  std::vector<std::string> words;                                     ///< found in PATH unless the first has a slash
  std::vector<std::pair<std::string, std::string>> environment = {};  ///< set beside ours, or instead of it
  int input_fd = -1;                                                  ///< its standard input; -1: ours
  int output_fd = -1;
  int error_fd = -1;
  sigset_t held_signals = {};  ///< its signal mask; none are held unless this says so
};

/// Starts a process, with SIGPIPE and SIGXFSZ as usual although our tools ignore them. Throws std::system_error that
/// names the command.
pid_t spawn(const SpawnOptions& options);

/// How a process ended.
struct Ended {
  int status = 0;                         ///< of its exit
  int signal = 0;                         ///< that ended it; 0: it exited
  std::uint64_t resident_bytes_peak = 0;  ///< of the largest process among it and the children it waited for
};

/// From what wait4() tells.
Ended ended_of(int status, const rusage& usage);

/// "signal 11 (Segmentation fault)", "exit status 3".
std::string ending_text(const Ended& ended);

/// A process that is killed and waited for with its owner.
class ChildProcess {
 public:
  /// Throws std::system_error.
  explicit ChildProcess(const SpawnOptions& options) : pid_(spawn(options)) {}
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  void kill();
  /// Waits for its end.
  Ended wait();

 private:
  pid_t pid_;
  bool has_ended_ = false;
  Ended ended_;
};

}  // namespace cmt::command
