#include "cmtreplay/interrupts.h"

#include <poll.h>
#include <sys/signalfd.h>

#include <cerrno>
#include <ctime>
#include <system_error>

namespace cmt::replay {
namespace {

sigset_t ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  return signals;
}

}  // namespace

Interrupts::Interrupts() {
  const sigset_t signals = ending_signals();
  sigprocmask(SIG_BLOCK, &signals, &before_);
  fd_ = Fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (fd_.get() < 0) throw std::system_error(errno, std::generic_category(), "signalfd");
}

/// What came meanwhile was answered by stopping early; it must not end us after all.
Interrupts::~Interrupts() {
  const sigset_t signals = ending_signals();
  constexpr timespec now{};
  while (sigtimedwait(&signals, nullptr, &now) > 0) continue;
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

bool Interrupts::pending() const {
  pollfd wanted{.fd = fd(), .events = POLLIN, .revents = 0};
  return poll(&wanted, 1, 0) > 0;
}

}  // namespace cmt::replay
