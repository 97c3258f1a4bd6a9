// A launcher between a shell and a command must not change what either sees. Three things need care:
//
// - A signal from the terminal goes to every process in the foreground. It must not be passed on, or the command would
//   get it twice. The si_code distinguishes it from a signal that kill() sent.
//
// - Signals are blocked in the launcher, which reads them from a signalfd. The command starts with the mask that the
//   launcher had before.
//
// - Our tools ignore SIGPIPE and SIGXFSZ. The command gets them as the launcher did: their defaults, or ignored.

#include "toolkit/launch/launch.h"

#include <poll.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <cassert>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "toolkit/command/command_line.h"

namespace cmt::launch {
namespace {

/// SIGCHLD, and the signals that are passed on. The others: faults of our own; SIGKILL and SIGSTOP, which nothing can
/// block; SIGPIPE and SIGXFSZ, which our tools ignore; SIGXCPU, SIGTTIN and SIGTTOU, which are about this process.
sigset_t awaited() {
  sigset_t signals =
      command::signal_set({SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH,
                           SIGABRT, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGURG, SIGSTKFLT});
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) sigaddset(&signals, signal);
  return signals;
}

/// Whether the kernel has sent it for the terminal, and so to the command, too.
bool is_of_terminal(const signalfd_siginfo& info) {
  const sigset_t signals = command::signal_set({SIGINT, SIGQUIT, SIGTSTP, SIGHUP, SIGCONT, SIGWINCH});
  return info.ssi_code == SI_KERNEL && sigismember(&signals, static_cast<int>(info.ssi_signo)) == 1;
}

/// Sends a signal with the value that came with it.
void pass_on(pid_t process, const signalfd_siginfo& info) {
  const int signal = static_cast<int>(info.ssi_signo);
  if (info.ssi_code == SI_QUEUE)
    sigqueue(process, signal, {.sival_ptr = reinterpret_cast<void*>(static_cast<std::uintptr_t>(info.ssi_ptr))});
  else
    kill(process, signal);
}

void raise_unblocked(int signal) {
  const sigset_t set = command::signal_set({signal});
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  raise(signal);
}

}  // namespace

bool asks_to_end(int signal) {
  const sigset_t signals = command::ending_signals();
  return sigismember(&signals, signal) == 1;
}

RunningCommand::RunningCommand(const Launch& launch)
    : signals_(awaited()), before_stop_(launch.before_stop), at_end_(launch.at_end) {
  const process::Fd output = process::create_file(launch.output), error = process::create_file(launch.error);
  try {
    const SpawnOptions options{.words = launch.words,
                               .environment = launch.environment,
                               .output_fd = output.get(),
                               .error_fd = error.get(),
                               .held_signals = signals_.before()};
    pid_ = at_end_ ? spawn_traced(options) : spawn(options);
  } catch (const std::system_error& failure) {
    throw LaunchError(failure.what(),
                      failure.code().value() == ENOENT ? command::status_not_found : command::status_cannot_start);
  }
}

LaunchEvent RunningCommand::handle() {
  assert(pid_ > 0);
  LaunchEvent event;
  while (const auto info = signals_.take_info()) {
    const int signal = static_cast<int>(info->ssi_signo);
    if (signal == SIGCHLD) continue;
    if (!is_of_terminal(*info) && !is_reaped_) pass_on(pid_, *info);
    if (signal == SIGTSTP)
      stop();
    else if (!asks_to_end(event.signal))
      event.signal = signal;
  }
  reap(event);
  return event;
}

/// Stops this process, as SIGTSTP would if it were not blocked. Meanwhile the command is not traced, because nobody
/// would let it handle its own SIGTSTP.
void RunningCommand::stop() {
  if (sigismember(&signals_.before(), SIGTSTP) == 1) return;
  if (before_stop_) before_stop_();
  const bool was_traced = at_end_ && !is_reaped_ && end_status_ == 0 && detach_traced(pid_);
  raise_unblocked(SIGTSTP);
  if (was_traced) seize(pid_);
  const sigset_t set = command::signal_set({SIGTSTP});
  sigprocmask(SIG_BLOCK, &set, nullptr);
}

/// Also resumes the command where it is traced and has stopped; at its end, when it is called again.
void RunningCommand::reap(LaunchEvent& event) {
  if (end_status_ != 0) resume_traced(pid_, std::exchange(end_status_, 0));
  int status = 0;
  for (pid_t pid; !event.at_end && (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (WIFSTOPPED(status) && status >> 16 == PTRACE_EVENT_EXIT) {
      event.at_end = true;
      end_status_ = status;
      at_end_();
    } else if (WIFSTOPPED(status)) {
      if (!resume_traced(pid, status)) at_end_ = nullptr;
    } else if (pid == pid_) {
      assert(!is_reaped_);
      event.ended = ended_of(status);
      is_reaped_ = true;
    }
  }
}

Ended RunningCommand::wait() {
  for (;;) {
    const LaunchEvent event = handle();
    if (event.ended) return *event.ended;
    if (event.at_end) continue;
    pollfd ready{fd(), POLLIN, 0};
    poll(&ready, 1, -1);
  }
}

void exit_like(const Ended& ended) {
  assert(ended.signal >= 0 && ended.signal < NSIG);
  if (ended.signal == 0) std::exit(ended.status);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  std::signal(ended.signal, SIG_DFL);
  raise_unblocked(ended.signal);
  std::exit(128 + ended.signal);
}

}  // namespace cmt::launch
