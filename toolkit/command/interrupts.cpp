#include "toolkit/command/interrupts.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <system_error>

namespace cmt::command {
sigset_t ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGHUP);
  sigaddset(&signals, SIGQUIT);
  return signals;
}

Interrupts::Interrupts(Holds holds) {
  sigset_t signals = ending_signals();
  if (holds == Holds::resizes) sigaddset(&signals, SIGWINCH);
  fd_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "signalfd");
  sigprocmask(SIG_BLOCK, &signals, &before_);
}

/// The program has ended its work early because of a pending signal, which must not kill it now.
Interrupts::~Interrupts() {
  const sigset_t signals = ending_signals();
  constexpr timespec now{};
  while (sigtimedwait(&signals, nullptr, &now) > 0) continue;
  sigprocmask(SIG_SETMASK, &before_, nullptr);
  close(fd_);
}

bool Interrupts::pending() const {
  pollfd wanted{.fd = fd(), .events = POLLIN, .revents = 0};
  return poll(&wanted, 1, 0) > 0;
}

int Interrupts::take() {
  signalfd_siginfo info;
  return read(fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info) ? static_cast<int>(info.ssi_signo) : 0;
}

}  // namespace cmt::command
