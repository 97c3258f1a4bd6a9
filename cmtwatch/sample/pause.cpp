// A process is stopped by stopping its threads one by one with ptrace(2): PTRACE_SEIZE attaches to a thread without a
// signal that it or its parent would see, and PTRACE_INTERRUPT stops it. SIGSTOP would be seen, and the process would
// stay stopped if we were killed.
//
// The tracer is a thread, not a process. When it ends, for whatever reason, the kernel detaches all that it traced and
// leaves their pending signals alone. So each pause has a thread of its own, and ends when that thread ends after the
// measurement. Nothing else ends a pause, so nothing else has to work when we are killed. Two rules follow:
//
//   - Stops are looked at and not reaped (toolkit/process/stopping/thread_stop.h): a stop that is reaped takes its
//     signal with it.
//
//   - The ends of processes are not reaped either: their parents wait for them, and we may be a parent.
//
// The end of a thread other than the first has to be reaped. An execve in the process waits for it, and holds a lock
// that PTRACE_SEIZE waits for. Another thread of ours reaps it.
//
// A process that SIGSTOP had stopped stays stopped afterwards, and a signal that comes meanwhile is delivered
// afterwards.

#include "cmtwatch/sample/pause.h"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <exception>
#include <future>
#include <system_error>
#include <thread>

#include "toolkit/command/interrupts.h"
#include "toolkit/output/numbers.h"
#include "toolkit/process/proc_file.h"
#include "toolkit/process/stat.h"
#include "toolkit/process/stopping/thread_stop.h"
#include "toolkit/process/stopping/traceable.h"
#include "toolkit/process/system.h"

namespace cmt::watch {
namespace {

constexpr std::int64_t yield_only_ns = 100'000;       // until then we only yield, and do not sleep
constexpr std::int64_t inspect_after_ns = 5'000'000;  // then we look why a thread does not stop
constexpr std::int64_t give_up_after_ns = 1'000'000'000;
constexpr std::chrono::milliseconds reap_interval(1);

/// Returns the state of a thread as in proc(5); X if it is gone.
char state_of(int pid, int tid) {
  try {
    return process::parse_stat(process::read_file(process::path_of(pid, "task/" + std::to_string(tid) + "/stat")))
        .state;
  } catch (const std::exception&) {
    return 'X';
  }
}

/// The tracer of a thread; 0: it has none, or is gone.
int tracer_of(int tid) {
  try {
    return process::read_status(tid).tracer;
  } catch (const std::system_error&) {
    return 0;
  }
}

bool has_ended(int pid, int tid) {
  const char state = state_of(pid, tid);
  return state == 'Z' || state == 'X';
}

std::string refusal(int pid, int tid, int error) {
  return "process " + process::called(pid) + " cannot be paused: " + process::why_not_traceable(tid, error);
}

/// Asks a thread to stop. An attach of cmttrace may trace it for moments, and its end may come before it can be named.
int ask_patiently(int pid, int tid) {
  constexpr int tries_max = 20;
  int error = process::ask_to_stop(tid);
  for (int tries = 1; error == EPERM && tries < tries_max && !has_ended(pid, tid); ++tries) {
    if (tracer_of(tid) == 0) usleep(500);
    error = process::ask_to_stop(tid);
  }
  return error;
}

/// Ends a measurement, also one that throws.
struct LastLook {
  Pause& pause;
  ~LastLook() { pause.see_late_stops(); }
};

sigset_t all_signals() {
  sigset_t all;
  sigfillset(&all);
  return all;
}

}  // namespace

void check_pausable(int pid, const std::string& root) {
  try {
    if (process::read_stat(pid, root).start_ticks == process::read_stat(pid).start_ticks) return;
  } catch (const std::system_error&) {  // it is in one of the two only
  }
  throw PauseRefused("process " + std::to_string(pid) + " of " + root +
                     " is none of this machine: it cannot be paused");
}

void Pause::stop_all(const std::function<std::vector<int>()>& pids, const std::set<int>& must) {
  std::size_t seized;
  do {
    seized = seized_.size();
    for (const int pid : pids()) {
      if (pid == getpid() || not_paused_.contains(pid)) continue;
      try {
        stop(pid);
      } catch (const PauseRefused&) {
        if (must.contains(pid)) throw;
        not_paused_.insert(pid);
      }
    }
  } while (seized != seized_.size());
}

/// Gives up threads that will not stop, but only after a second look at all threads finds no new one. A thread that had
/// not been seized yet may have been about to wake them.
void Pause::stop(int pid) {
  for (int looks = 0; looks < 2;) {
    bool found = false;
    const std::vector<int> threads = process::read_threads(pid);
    for (const int tid : threads) found |= seize({pid, tid});
    const bool all_stopped = await_stops(looks == 0 ? inspect_after_ns : 0);
    found = found || !process::are_all_threads(pid, threads);
    if (all_stopped && !found) return;
    looks = found ? 0 : looks + 1;
  }
  for (const Thread& thread : awaited_) not_paused_.insert(thread.pid);
  late_.insert(late_.end(), awaited_.begin(), awaited_.end());
  awaited_.clear();
}

void Pause::see_late_stops() {
  await_stops(inspect_after_ns);  // of a process that was then refused
  for (const Thread& thread : late_) has_settled(thread);
}

/// Attaches to a thread and stops it. Returns false if there is nothing to stop.
bool Pause::seize(const Thread& thread) {
  assert(thread.pid != getpid());  // we would stop ourselves
  if (known_.contains(thread.tid)) return false;
  const std::int64_t asked_ns = process::now_ns();
  if (const int error = ask_patiently(thread.pid, thread.tid); error != 0) {
    if (error == ESRCH || has_ended(thread.pid, thread.tid)) return false;
    throw PauseRefused(refusal(thread.pid, thread.tid, error));
  }
  if (begin_ns_ == 0) begin_ns_ = asked_ns;
  known_.insert(thread.tid);
  const std::scoped_lock lock(mutex_);
  seized_.push_back(thread);
  awaited_.push_back(thread);
  return true;
}

/// Whether a thread need not be waited for any more.
bool Pause::has_settled(const Thread& thread) {
  const process::ThreadStop stop = process::look_at(thread.pid, thread.tid, calls_);
  if (stop.kind == process::ThreadStop::Kind::gone) known_.erase(thread.tid);
  return stop.kind != process::ThreadStop::Kind::runs;
}

/// Waits for all seized threads together, because a thread that calls execve waits for the ends of the others. Returns
/// false if the rest does not stop, or all sleep uninterruptibly in the kernel, which is checked after `inspect_after`.
bool Pause::await_stops(std::int64_t inspect_after) {
  for (const std::int64_t begin = process::now_ns(); !awaited_.empty();) {
    if (has_settled(awaited_.back())) {
      awaited_.pop_back();
      continue;
    }
    const std::int64_t waited = process::now_ns() - begin;
    if (waited > inspect_after && !awaits_runner()) return awaited_.empty();
    if (waited > give_up_after_ns) return false;
    if (waited < yield_only_ns)
      sched_yield();
    else
      usleep(50);
  }
  return true;
}

void Pause::reap_threads() {
  const std::scoped_lock lock(mutex_);
  for (const auto& [pid, tid] : seized_) {
    const bool first = tid == pid;
    if (!first) process::reap_if_ended(tid);
  }
}

/// Drops the threads that need not be waited for. If we are not the tracer, the thread that we seized is gone: another
/// thread of its process called execve and took its number. Returns whether a thread is awaited that runs, or ran just
/// now: one that was dropped may have woken another first.
bool Pause::awaits_runner() {
  bool one_runs = false;
  const std::size_t dropped = std::erase_if(awaited_, [&](const Thread& thread) {
    if (has_settled(thread) || has_ended(thread.pid, thread.tid)) return true;
    const bool lost = tracer_of(thread.tid) != gettid();
    if (lost) known_.erase(thread.tid);
    one_runs = one_runs || (!lost && state_of(thread.pid, thread.tid) != 'D');
    return lost;
  });
  return one_runs || (dropped != 0 && !awaited_.empty());
}

std::int64_t while_paused(process::InterruptedCalls& calls, const std::function<void(Pause&)>& measure) {
  const command::HeldSignals held(all_signals());  // none stops or ends us meanwhile
  Pause pause(calls);
  pid_t tracer = 0;
  std::packaged_task<void()> work([&] {
    tracer = gettid();
    const LastLook last_look{pause};
    measure(pause);
  });
  std::future<void> done = work.get_future();
  std::thread thread(std::move(work));
  while (done.wait_for(reap_interval) == std::future_status::timeout) pause.reap_threads();
  thread.join();
  assert(tracer != 0 && tracer != gettid());
  while (tgkill(getpid(), tracer, 0) == 0) sched_yield();  // join() returns before the kernel has detached all
  done.get();
  return pause.begin_ns() == 0 ? 0 : process::now_ns() - pause.begin_ns();
}

void PauseCost::add(std::int64_t paused_ns) {
  assert(paused_ns >= 0);
  if (paused_ns == 0) return;
  ++count;
  total_ns += paused_ns;
  max_ns = std::max(max_ns, paused_ns);
}

std::string PauseCost::text() const {
  return "paused " + output::with_commas(count) + (count == 1 ? " time, " : " times, ") +
         output::time_text(static_cast<double>(total_ns)) + " in all, " +
         output::time_text(static_cast<double>(max_ns)) + " at most";
}

}  // namespace cmt::watch
