/// Processes that tools start: with chosen streams and signals, traced from their first instruction if wanted.
#pragma once

#include <signal.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cmt::launch {

/// How a process is started.
struct SpawnOptions {
  std::vector<std::string> words;                                     ///< found in PATH unless the first has a slash
  std::vector<std::pair<std::string, std::string>> environment = {};  ///< set beside ours, or instead of it
  int input_fd = -1;                                                  ///< its standard input; -1: ours
  int output_fd = -1;
  int error_fd = -1;
  sigset_t held_signals = {};  ///< its signal mask; none are held unless this says so
  /// The process gets a group of its own, and so no Ctrl-C from the terminal. ChildProcess then kills the whole group.
  bool has_own_group = false;
  /// The process gets SIGTERM when the thread that has started it ends, for whatever reason. It has a group of its own.
  bool ends_with_us = false;
};

/// Starts a process, with SIGPIPE and SIGXFSZ as our tool got them, although it ignores them. Throws std::system_error
/// that names the command.
pid_t spawn(const SpawnOptions& options);

/// The same, traced by this thread (PTRACE_SEIZE) from before it executes its program, so that even the shortest stops
/// at its end (PTRACE_EVENT_EXIT). The process runs untraced if tracing is forbidden.
pid_t spawn_traced(const SpawnOptions& options);

/// Begins to trace a process. Returns false if that is forbidden or the process is traced already.
bool seize(pid_t pid);

/// Ends the tracing until the next seize(). Returns false if the process was not traced.
bool detach_traced(pid_t pid);

/// Lets a traced process go on after a stop that waitpid() reported, as if it were not traced. Its signals reach it,
/// and a signal that stops it does so. Returns false if the process is no longer traced. This function ends the tracing
/// of a program with LeakSanitizer, which attaches to its own process at its end and fails if it is traced.
bool resume_traced(pid_t pid, int status);

/// How a process ended.
struct Ended {
  int status = 0;  ///< of its exit
  int signal = 0;  ///< that ended it; 0: it exited
};

/// The end of a process, from the status that waitpid() returned.
Ended ended_of(int status);

/// "signal 11 (Segmentation fault)", "exit status 3".
std::string ending_text(const Ended& ended);

/// A process that is killed and waited for with its owner. If it has a group of its own, so are the processes that it
/// has started and that are still in the group.
class ChildProcess {
 public:
  /// Throws std::system_error.
  explicit ChildProcess(const SpawnOptions& options)
      : pid_(spawn(options)), has_own_group_(options.has_own_group || options.ends_with_us) {}
  ~ChildProcess();
  /// The reverse, for a debugger that has started this process. This process executes the program. A child of it, in a
  /// group of its own, returns from the call. The result is the program, and neither kills it nor waits for it.
  static std::unique_ptr<ChildProcess> become(const SpawnOptions& options);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  void kill();
  /// Whether it has ended. Does not wait.
  bool has_ended() const;
  /// Waits for its end, and kills the others of its group.
  Ended wait();
  /// Waits for its end so many seconds at most, and returns whether it ended. A time in which this process was stopped
  /// (Ctrl-Z, a halted virtual machine) counts as half a second. Waits as wait() does if the kernel has no
  /// pidfd_open(2).
  bool ends_within(unsigned seconds);

 private:
  explicit ChildProcess(pid_t parent) : pid_(parent), has_own_group_(false), is_parent_(true), is_reaped_(true) {}

  pid_t pid_;
  bool has_own_group_;
  bool is_parent_ = false;
  bool is_reaped_ = false;
  Ended ended_;
};

}  // namespace cmt::launch
