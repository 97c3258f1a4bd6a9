/// Stops threads of other processes by ptrace(2), so that the threads do not notice it. Everything here that stops a
/// thread does so by these functions: cmttrace's attach and cmtwatch's pauses.
#pragma once

#include "toolkit/process/stopping/interrupted_calls.h"

namespace cmt::process {

/// The state of a traced thread at a moment.
struct ThreadStop {
  enum class Kind {
    runs,         ///< it has not stopped, or goes on already
    asked,        ///< it has stopped because ask_to_stop() or ask_again() asked for it
    group,        ///< SIGSTOP or its like has stopped the process, until SIGCONT
    signal,       ///< it has stopped before it gets a signal
    system_call,  ///< at the begin or the end of a system call, after PTRACE_SYSCALL
    event,        ///< another stop by ptrace
    ended,        ///< it has ended, and was not reaped
    gone,         ///< it is not traced by this thread any more: its process called execve in another thread
  };

  Kind kind = Kind::runs;
  int signal = 0;  ///< with Kind::signal

  bool is_stopped() const { return kind != Kind::runs && kind != Kind::ended && kind != Kind::gone; }
};

/// Begins to trace a thread, and asks it to stop. Neither it nor its parent sees a signal. `options` are those of
/// PTRACE_SETOPTIONS. Returns 0, or the errno of PTRACE_SEIZE.
int ask_to_stop(int tid, unsigned long options = 0);

/// Asks a thread to stop that is traced already, and runs.
void ask_again(int tid);

/// Looks at a traced thread without waiting.
///
/// Contract: a system call in which the thread was stopped goes on, or begins anew, when the thread does. It returns
/// what it would have returned without the stop (interrupted_calls.h has the exceptions). For that, each stop must be
/// seen by this function before the thread goes on. A signal with a handler still ends the call with EINTR.
///
/// The stop is looked at and not reaped. So no signal is lost if this process ends, or detaches from the thread.
ThreadStop look_at(int pid, int tid, InterruptedCalls& calls);

/// Reaps a traced thread if it has ended: an execve in its process waits for that. Not for the first thread of a
/// process, for whose end its parent waits. Any thread of the tracer's process may call it.
void reap_if_ended(int tid);

/// Lets a stopped thread go on as it would have without us: it gets the signal before which it was stopped, and stays
/// stopped by SIGSTOP. `request`: PTRACE_CONT or PTRACE_SYSCALL. Returns false if the thread is gone.
bool let_go_on(int tid, const ThreadStop& stop, int request);

/// The same, and ends the tracing.
void let_go(int tid, const ThreadStop& stop);

}  // namespace cmt::process
