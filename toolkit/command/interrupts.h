#pragma once

#include <signal.h>

namespace cmt::command {

/// Those by which somebody wants us to end.
sigset_t ending_signals();

/// While it lives, what ends a process politely (Ctrl-C, SIGTERM, SIGHUP, SIGQUIT) does not, but can be asked for. A
/// child in the foreground gets its own.
class Interrupts {
 public:
  /// What is held back: `resizes`, also that the terminal has another size (SIGWINCH).
  enum class Holds { endings, resizes };

  explicit Interrupts(Holds holds = Holds::endings);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// Readable from the first signal on, for poll().
  int fd() const { return fd_; }
  /// Whether one has come.
  bool pending() const;
  /// Takes the next one that has come; 0: none has.
  int take();

 private:
  sigset_t before_;
  int fd_;
};

}  // namespace cmt::command
