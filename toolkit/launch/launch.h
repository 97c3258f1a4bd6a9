/// Launchers: they run a command, pass signals on to it, wait for it, and end as it ended.
#pragma once

#include <signal.h>

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "toolkit/command/interrupts.h"
#include "toolkit/launch/spawn.h"

namespace cmt::launch {

/// A command that a launcher runs as if it had been started itself: with the launcher's terminal, streams and signals.
struct Launch {
  std::vector<std::string> words;                                ///< found in PATH unless there is a slash in the first
  std::string output;                                            ///< a file for its standard output; empty: ours
  std::string error;                                             ///< a file for its standard error; empty: ours
  std::vector<std::pair<std::string, std::string>> environment;  ///< variables that are added to ours or replace them
  std::function<void()> before_stop{};                           ///< called before Ctrl-Z stops us
  std::function<void()> at_end{};  ///< called when the command is about to end and its memory is still there, by means
                                   ///< of ptrace; not where that is forbidden
};

/// Whether a signal is one of ending_signals().
bool asks_to_end(int signal);

/// The result of RunningCommand::handle().
struct LaunchEvent {
  int signal = 0;  ///< a signal that came to us and was passed on; of several, one that asks_to_end(); 0: none came
  std::optional<Ended> ended;  ///< set by one call: when the command has ended
  bool at_end = false;         ///< the command has come to Launch::at_end, and waits for the next handle()
};

/// A command that was started. While this object exists, signals that ask this process to end are blocked. The
/// function handle() passes them on to the command, except those that the terminal has sent to both.
class RunningCommand {
 public:
  /// Throws LaunchError if the command cannot be started, std::system_error if a file cannot be opened.
  explicit RunningCommand(const Launch& launch);

  pid_t pid() const { return pid_; }

  /// Readable, for poll(), when handle() has something to do.
  int fd() const { return signals_.fd(); }

  /// Passes on the signals that have come, and reaps the command and processes that were reparented to us. Does not
  /// wait, but for SIGTSTP: that stops this process, and the call returns when it continues.
  LaunchEvent handle();

  /// Waits for the end.
  Ended wait();

 private:
  void stop();
  void reap(LaunchEvent& event);

  command::HeldSignals signals_;
  std::function<void()> before_stop_, at_end_;
  pid_t pid_ = -1;
  bool is_reaped_ = false;  // the kernel may reuse the pid
  int end_status_ = 0;      ///< of the stop at its end, while it waits; 0: it does not
};

/// A command that could not be started; `status` is what a launcher exits with.
struct LaunchError : std::runtime_error {
  LaunchError(const std::string& what, int its_status) : std::runtime_error(what), status(its_status) {}
  int status;
};

/// Ends this process as the command ended: with its status, or by its signal, but without a core dump.
[[noreturn]] void exit_like(const Ended& ended);

}  // namespace cmt::launch
