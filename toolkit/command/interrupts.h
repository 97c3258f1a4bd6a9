#pragma once

#include <signal.h>

namespace cmt::command {

/// SIGINT, SIGTERM, SIGHUP and SIGQUIT: the signals that ask a process to end, and that it may handle.
sigset_t ending_signals();

/// Blocks ending_signals() while it exists; the program asks for them instead. A child in the terminal's foreground
/// gets its own Ctrl-C.
class Interrupts {
 public:
  /// `resizes`: SIGWINCH is blocked too, by which the terminal tells that its size has changed.
  enum class Holds { endings, resizes };

  explicit Interrupts(Holds holds = Holds::endings);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// For poll(): readable once a signal has come.
  int fd() const { return fd_; }
  /// Whether a signal has come.
  bool pending() const;
  /// Removes the next signal from those that have come, and returns it; 0: none has come.
  int take();

 private:
  sigset_t before_;
  int fd_;
};

}  // namespace cmt::command
