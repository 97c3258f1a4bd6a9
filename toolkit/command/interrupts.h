/// Signals that end or resize a tool, held until it asks for them: so they interrupt no system call.
#pragma once

#include <signal.h>
#include <sys/signalfd.h>

#include <initializer_list>
#include <optional>

#include "toolkit/process/proc_file.h"

namespace cmt::command {

sigset_t signal_set(std::initializer_list<int> signals);

/// SIGINT, SIGTERM, SIGHUP and SIGQUIT: the signals that ask a process to end, and that it may handle.
sigset_t ending_signals();

/// Ignores SIGPIPE and SIGXFSZ, so that write() fails instead.
void ignore_failed_writes();

/// The ones of the two that a command gets as their defaults. A service may have been started with SIGPIPE ignored:
/// then its command ignores it, too.
sigset_t signals_of_failed_writes();

/// Blocks signals while it exists; the program asks for them instead.
class HeldSignals {
 public:
  explicit HeldSignals(const sigset_t& signals);
  ~HeldSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  /// For poll(): readable once a signal has come.
  int fd() const { return fd_.get(); }
  /// The signals that were blocked before.
  const sigset_t& before() const { return before_; }
  /// Takes the next of the signals that have come. Returns nothing if there is none.
  std::optional<signalfd_siginfo> take_info();

 private:
  process::Fd fd_;
  sigset_t before_;
};

/// Holds ending_signals(). A child in the terminal's foreground gets its own Ctrl-C.
class Interrupts : public HeldSignals {
 public:
  /// `resizes`: SIGWINCH is blocked too, which the terminal sends when its size has changed.
  enum class Holds { endings, resizes };

  explicit Interrupts(Holds holds = Holds::endings);
  ~Interrupts();

  /// Whether a signal has come.
  bool pending() const;
  /// Takes the next of the signals that have come. Returns 0 if there is none.
  int take();
};

}  // namespace cmt::command
