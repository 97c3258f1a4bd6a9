// Holds signals back by a signalfd, as interrupts.h describes.

#include "toolkit/command/interrupts.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <system_error>

namespace cmt::command {
namespace {

constexpr std::array<int, 2> failed_writes{SIGPIPE, SIGXFSZ};
std::array<bool, failed_writes.size()> were_ignored{};

}  // namespace

void ignore_failed_writes() {
  for (std::size_t i = 0; i < failed_writes.size(); ++i)
    were_ignored[i] = std::signal(failed_writes[i], SIG_IGN) == SIG_IGN;
}

sigset_t signals_of_failed_writes() {
  sigset_t signals = signal_set({});
  for (std::size_t i = 0; i < failed_writes.size(); ++i) {
    if (!were_ignored[i]) sigaddset(&signals, failed_writes[i]);
  }
  return signals;
}

sigset_t signal_set(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

sigset_t ending_signals() { return signal_set({SIGINT, SIGTERM, SIGHUP, SIGQUIT}); }

HeldSignals::HeldSignals(const sigset_t& signals) : fd_(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK)) {
  if (fd() < 0) throw std::system_error(errno, std::generic_category(), "signalfd");
  sigprocmask(SIG_BLOCK, &signals, &before_);
}

std::optional<signalfd_siginfo> HeldSignals::take_info() {
  signalfd_siginfo info;
  if (read(fd(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
  return info;
}

Interrupts::Interrupts(Holds holds)
    : HeldSignals(holds == Holds::endings ? ending_signals()
                                          : signal_set({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH})) {}

/// The program has ended its work early because of a pending signal, which must not kill it now.
Interrupts::~Interrupts() {
  const sigset_t signals = ending_signals();
  constexpr timespec now{};
  while (sigtimedwait(&signals, nullptr, &now) > 0) continue;
}

bool Interrupts::pending() const {
  pollfd wanted{.fd = fd(), .events = POLLIN, .revents = 0};
  return poll(&wanted, 1, 0) > 0;
}

int Interrupts::take() {
  const auto info = take_info();
  return info ? static_cast<int>(info->ssi_signo) : 0;
}

}  // namespace cmt::command
