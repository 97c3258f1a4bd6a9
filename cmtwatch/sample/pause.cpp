// A process is stopped by stopping its threads, one by one, with ptrace(2): PTRACE_SEIZE takes a thread without a
// signal that it or its parent would see, PTRACE_INTERRUPT stops it. SIGSTOP would be seen, and would outlive us.
//
// Who traces is a thread, not a process, and when it ends the kernel lets go of all that it traced, with their pending
// signals as they are, whatever ended it. So there is a thread for each pause, it ends after the measurement, and that
// is the only way in which a pause ends: no other one has to be right when we are killed. Two things keep it so:
//
//   - Stops are looked at (WNOWAIT) and not taken. A stop that is taken leaves behind that its signal was, too.
//   - The ends of processes are not taken either: their parents, of which we may be one, wait for them.
//
// The end of a thread that is not its process's first has to be taken: an exec() in its process waits for that, and
// holds a lock that PTRACE_SEIZE waits for. So another thread of ours does it.
//
// What was stopped by SIGSTOP before stays so afterwards, and a signal that comes meanwhile is delivered afterwards.

#include "cmtwatch/sample/pause.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <future>
#include <system_error>
#include <thread>

#include "cmtwatch/sample/sampling.h"
#include "toolkit/output/numbers.h"
#include "toolkit/process/proc_file.h"
#include "toolkit/process/process_tree.h"
#include "toolkit/process/stat.h"

namespace cmt::watch {
namespace {

constexpr std::int64_t at_once_ns = 100'000;        // so long the processor is not given away for more than a moment
constexpr std::int64_t undisturbed_ns = 5'000'000;  // then it is asked why a thread does not stop
constexpr std::int64_t patience_ns = 1'000'000'000;
constexpr std::chrono::milliseconds reap_interval(1);

/// The state of a thread, as proc(5) has it; X where it is gone.
char state_of(int pid, int tid) {
  try {
    return process::parse_stat(process::read_file(process::path_of(pid, "task/" + std::to_string(tid) + "/stat")))
        .state;
  } catch (const std::exception&) {
    return 'X';
  }
}

/// Who traces a thread; 0: nobody, or it is gone.
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

/// "4711 (name)".
std::string called(int pid) {
  try {
    return std::to_string(pid) + " (" + process::read_stat(pid).name + ")";
  } catch (const std::exception&) {
    return std::to_string(pid);
  }
}

std::string refusal(int pid, int tid, int error) {
  const int tracer = tracer_of(tid);
  const std::string who = "process " + called(pid);
  if (tracer != 0) return who + " cannot be paused: " + called(tracer) + " traces it already";
  return who + " cannot be paused: ptrace: " + std::strerror(error);
}

enum class Trace { runs, stopped, ended, lost };

/// What became of a thread that was seized. The kernel tells of a traced one's stop whether it is asked for or not, so
/// that an end must not be taken unseen.
Trace trace_of(int tid) {
  constexpr int look = WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL;
  siginfo_t what{};
  if (waitid(P_PID, static_cast<id_t>(tid), &what, look) != 0) return Trace::lost;
  if (what.si_pid == 0) return Trace::runs;
  return what.si_code == CLD_TRAPPED || what.si_code == CLD_STOPPED ? Trace::stopped : Trace::ended;
}

/// Signals wait until it goes: none stops or ends us between a pause's begin and its end.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_;
};

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

void Pause::stop(int pid) {
  for (bool found = true; found;) {
    found = false;
    for (const int tid : process::read_threads(pid)) found |= seize({pid, tid});
    await();
  }
}

/// False where there is nothing to stop.
bool Pause::seize(const Thread& thread) {
  if (known_.contains(thread.tid)) return false;
  if (ptrace(PTRACE_SEIZE, thread.tid, nullptr, nullptr) != 0) {
    const int error = errno;
    if (error == ESRCH || has_ended(thread.pid, thread.tid)) return false;
    throw PauseRefused(refusal(thread.pid, thread.tid, error));
  }
  if (begin_ns_ == 0) begin_ns_ = now_ns();
  ptrace(PTRACE_INTERRUPT, thread.tid, nullptr, nullptr);
  known_.insert(thread.tid);
  const std::scoped_lock lock(mutex_);
  seized_.push_back(thread);
  awaited_.push_back(thread);
  return true;
}

/// Whether there is nothing to wait for any more.
bool Pause::has_settled(const Thread& thread) {
  const Trace trace = trace_of(thread.tid);
  if (trace == Trace::lost) known_.erase(thread.tid);
  return trace != Trace::runs;
}

/// Waits for all that were seized together: one that executes a program waits for the others' ends.
void Pause::await() {
  for (const std::int64_t begin = now_ns(); !awaited_.empty();) {
    if (has_settled(awaited_.back())) {
      awaited_.pop_back();
      continue;
    }
    const std::int64_t waited = now_ns() - begin;
    if (waited < at_once_ns) {
      sched_yield();
      continue;
    }
    if (waited > undisturbed_ns) give_up_hopeless(waited);
    usleep(50);
  }
}

void Pause::reap_threads() {
  const std::scoped_lock lock(mutex_);
  for (const auto& [pid, tid] : seized_) {
    const bool first = tid == pid;
    if (!first && trace_of(tid) == Trace::ended)
      waitid(P_PID, static_cast<id_t>(tid), nullptr, WEXITED | WNOHANG | __WALL);
  }
}

/// Looks why threads do not stop. One that we do not trace has the number of one that we did: it executed a program.
/// One that sleeps in the kernel is waited for while another runs that may wake it.
void Pause::give_up_hopeless(std::int64_t waited_ns) {
  bool all_sleep = true;
  std::erase_if(awaited_, [&](const Thread& thread) {
    if (has_settled(thread) || has_ended(thread.pid, thread.tid)) return true;
    const bool lost = tracer_of(thread.tid) != gettid();
    if (lost) known_.erase(thread.tid);
    all_sleep = all_sleep && (lost || state_of(thread.pid, thread.tid) == 'D');
    return lost;
  });
  if (!all_sleep && waited_ns < patience_ns) return;
  for (const Thread& thread : awaited_) not_paused_.insert(thread.pid);
  awaited_.clear();
}

std::int64_t while_paused(const std::function<void(Pause&)>& measure) {
  const SignalsHeld held;
  Pause pause;
  pid_t tracer = 0;
  std::packaged_task<void()> work([&] {
    tracer = gettid();
    measure(pause);
  });
  std::future<void> done = work.get_future();
  std::thread thread(std::move(work));
  while (done.wait_for(reap_interval) == std::future_status::timeout) pause.reap_threads();
  thread.join();
  while (tgkill(getpid(), tracer, 0) == 0) sched_yield();  // a thread is joined before it has let go
  done.get();
  return pause.begin_ns() == 0 ? 0 : now_ns() - pause.begin_ns();
}

void PauseCost::add(std::int64_t paused_ns) {
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
