#pragma once

#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "toolkit/command/spawn.h"

namespace cmt::command {

/// A command that a launcher starts in its own place: same terminal, same streams, and what it is sent goes on.
struct Launch {
  std::vector<std::string> words;  ///< found in PATH unless there is a slash in the first
  std::string output;              ///< its standard output goes to this file; empty: to ours
  std::string error;               ///< the same for its standard error
  std::vector<std::pair<std::string, std::string>> environment;  ///< set beside ours, or instead of it
  std::function<void()> before_stop{};  ///< called when Ctrl-Z is to stop us, as it does the command
};

/// Whether a signal that came to us is one by which somebody wants us to end.
bool asks_to_end(int signal);

/// What befell a launched command, or us.
struct Happening {
  int signal = 0;              ///< one that came to us and was passed on, of several one that asks_to_end(); 0: none
  std::optional<Ended> ended;  ///< set once
};

/// A launched command. From before its start until the object goes, the signals that end a process politely are held
/// back here: one that is sent to us is sent on; one that the terminal sent has reached the command already.
class Launched {
 public:
  /// Throws LaunchError where the command cannot be started, std::system_error where a file cannot be opened.
  explicit Launched(const Launch& launch);

  pid_t pid() const { return pid_; }

  /// Readable, for poll(), when handle() has something to do.
  int fd() const { return signals_.fd; }

  /// Takes what has come, without waiting: passes a signal on, reaps the command and what was reparented to us. Where
  /// that is to stop (SIGTSTP), it returns when we go on.
  Happening handle();

  /// Waits for the end.
  Ended wait();

 private:
  struct HeldSignals {
    HeldSignals();
    ~HeldSignals();
    HeldSignals(const HeldSignals&) = delete;
    HeldSignals& operator=(const HeldSignals&) = delete;

    sigset_t before;
    int fd = -1;
  };

  void stop() const;
  std::optional<Ended> reap();

  HeldSignals signals_;
  std::function<void()> before_stop_;
  pid_t pid_ = -1;
  bool is_reaped_ = false;  // its number may be another one's
};

/// A command that could not be started; `status` is what a launcher exits with.
struct LaunchError : std::runtime_error {
  LaunchError(const std::string& what, int its_status) : std::runtime_error(what), status(its_status) {}
  int status;
};

/// Ends this process as the command ended: with its status, or by its signal, without a core of our own.
[[noreturn]] void end_alike(const Ended& ended);

}  // namespace cmt::command
