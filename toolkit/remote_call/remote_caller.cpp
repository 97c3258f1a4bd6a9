// Chooses a thread whose filter of system calls allows the call, lets it make the call, and waits for the effect.
#include "toolkit/remote_call/remote_caller.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>
#include <vector>

#include "toolkit/process/stat.h"
#include "toolkit/process/stopping/interrupted_calls.h"

namespace cmt::remote_call {
namespace {

constexpr std::chrono::seconds choose_within(20), return_within(10);
constexpr std::chrono::milliseconds look_first_after(20), look_at_most_after(500);

/// Returns the mode of a thread's filter: 0 none, 1 strict, 2 a filter.
int filter_mode(const Target& target, int tid) {
  const std::string path = process::path_of(target.pid(), "task/" + std::to_string(tid) + "/status");
  return static_cast<int>(process::find_figure(process::read_file(path), "Seccomp").value_or(0));
}

/// "openat" for a system call by which a library is loaded; null: another one.
const char* loading_call(std::int64_t number) {
  return number == SYS_openat ? "openat" : number == SYS_mmap ? "mmap" : number == SYS_mprotect ? "mprotect" : nullptr;
}

}  // namespace

void refuse(const Target& target, const std::string& why) {
  throw Refused("process " + target.called() + " cannot be attached to: " + why);
}

/// Returns why the filter of a stopped thread forbids the calls; empty if it allows all of them.
std::string RemoteCaller::why_filter_forbids(const StoppedThread& thread, const std::vector<CallUse>& uses) const {
  const SystemFilters filters = read_filters(thread.tid());
  if (filters.error != 0 && rules_.ignores_unread) return {};
  if (filters.error != 0) {
    return "its filter of system calls (seccomp) cannot be read: " + error_text(filters.error) + "; " +
           rules_.unread_remedy;
  }
  const FilterVerdict verdict = judge_filters(filters, uses);
  if (!verdict.killed_by.empty()) return "its filter of system calls (seccomp) would end it for " + verdict.killed_by;
  if (!verdict.refused.empty()) return "its filter of system calls (seccomp) refuses " + verdict.refused;
  return {};
}

void RemoteCaller::check_filters(bool touches) {
  const auto threads = threads_.list_all(SafeThreads::Clock::now() + choose_within);
  if (!threads) refuse(target_, "its threads come and go too fast to look at the filters of all; try again");
  for (const int tid : *threads) {
    const int mode = filter_mode(target_, tid);
    if (mode == 0) continue;
    if (mode == 1) refuse(target_, "a thread of it is in a sandbox (seccomp, strict), which would end it");
    auto thread = threads_.stop(tid);
    if (!thread) {
      if (filter_mode(target_, tid) == 0 || rules_.ignores_unread) continue;  // it has ended
      refuse(target_,
             "the filter of system calls (seccomp) of a thread cannot be read now: it does not stop; try again");
    }
    const std::string why = touches ? why_filter_forbids(*thread, {CallUse::record, CallUse::touch})
                                    : why_filter_forbids(*thread, {CallUse::record});
    threads_.release(std::move(*thread));
    if (!why.empty()) refuse(target_, why);
  }
}

bool RemoteCaller::are_all_avoided() const {
  const std::vector<int> threads = process::read_threads(target_.pid());
  return std::all_of(threads.begin(), threads.end(), [&](int tid) { return avoided_.contains(tid); }) &&
         process::are_all_threads(target_.pid(), threads);
}

/// Threads may have filters of their own. A thread whose filter forbids the call is left alone while there are others.
StoppedThread RemoteCaller::choose(bool is_long) {
  for (const auto deadline = SafeThreads::Clock::now() + choose_within;;) {
    StoppedThread thread = threads_.choose(deadline, avoided_, is_long);
    const int mode = filter_mode(target_, thread.tid());
    if (mode == 0) return thread;
    const std::string why = mode == 1 ? "it is in a sandbox (seccomp, strict), which would end it"
                                      : why_filter_forbids(thread, rules_.uses);
    if (why.empty()) return thread;
    avoided_.insert(thread.tid());
    threads_.release(std::move(thread));
    if (are_all_avoided()) refuse(target_, why);
  }
}

Pauses RemoteCaller::pauses() const {
  return {std::max(pauses_.stopped, threads_.longest_stop()), std::max(pauses_.kept, threads_.longest_stop())};
}

void RemoteCaller::call(const Call& wanted, const Watch& asked) {
  StoppedThread thread = choose(!asked.is_done);
  const int tid = thread.tid();
  const auto begin = thread.since();
  calling_thread_ = {tid, thread.registers().fs_base};
  Injector injector(target_.memory(), thread, target_.functions().return_trampoline);
  const bool was_waiting = injector.was_waiting();
  injector.begin(wanted);
  assert(injector.frame() != 0);
  Watch watch = asked;
  if (!watch.is_done) watch.is_done = [&, frame = injector.frame()] { return waits_outside(tid, frame); };
  if (watch.is_traced || injector.has_saved_time()) {
    see_failures(injector, watch);
  } else if (injector.was_waiting()) {
    see_through(thread, injector, watch);
  }
  pauses_.stopped = std::max(pauses_.stopped, thread.release());
  if (!was_waiting && !watch.is_traced) await_return(tid, injector.frame(), watch);
  pauses_.kept = std::max<std::chrono::nanoseconds>(pauses_.kept, SafeThreads::Clock::now() - begin);
}

void RemoteCaller::call_in_turn(std::span<const Call> calls,
                                const std::function<void(std::size_t, const std::string&)>& see_bytes) {
  StoppedThread thread = choose(false);
  const auto begin = thread.since();
  Injector injector(target_.memory(), thread, target_.functions().return_trampoline);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    injector.begin(calls[i]);
    injector.await_return([](const SystemCall&) {});
    see_bytes(i, injector.read_bytes());
  }
  injector.finish();
  pauses_.stopped = std::max(pauses_.stopped, thread.release());
  pauses_.kept = std::max<std::chrono::nanoseconds>(pauses_.kept, SafeThreads::Clock::now() - begin);
}

/// Whether a thread waits in the kernel outside of a call, whose function uses the stack below its frame only.
bool RemoteCaller::waits_outside(int tid, std::uint64_t frame) const {
  const auto waiting = process::read_waiting_call(target_.pid(), tid);
  return waiting && waiting->stack_pointer > frame;
}

/// Stops the thread at each system call of the function.
void RemoteCaller::see_failures(Injector& injector, const Watch& watch) {
  failed_.clear();
  const char* name = nullptr;
  injector.await_return([&](const SystemCall& seen) {
    if (!seen.is_end) name = loading_call(seen.number);
    if (seen.is_end && seen.result < 0 && seen.result > -4096 && name != nullptr && failed_.empty())
      failed_ = std::string(name) + ": " + error_text(static_cast<int>(-seen.result));
    watch.see();
  });
  injector.finish();
}

/// The times at which to check whether the function has returned without the effect.
class RemoteCaller::Patience {
 public:
  /// Throws CallStuck.
  bool is_over() const {
    const auto now = SafeThreads::Clock::now();
    if (now > begin_ + return_within) throw CallStuck("a function that a thread was made to call does not return");
    return now > look_at_;
  }
  void begin_again() {
    look_after_ = std::min(2 * look_after_, look_at_most_after);
    look_at_ = SafeThreads::Clock::now() + look_after_;
  }

 private:
  const SafeThreads::Clock::time_point begin_ = SafeThreads::Clock::now();
  std::chrono::milliseconds look_after_ = look_first_after;
  SafeThreads::Clock::time_point look_at_ = begin_ + look_first_after;
};

/// Finishes a call on a thread that was waiting: the thread is stopped again at the function's end.
void RemoteCaller::see_through(StoppedThread& thread, Injector& injector, const Watch& watch) {
  Patience patience;
  for (;; patience.begin_again()) {
    const bool is_stopped = thread.run_until([&] {
      watch.see();
      return watch.is_done() || patience.is_over();
    });
    if (!is_stopped) throw CallStuck("a thread does not stop in a function that it was made to call");
    const WalkedStack stack = walk_stack(target_.memory(), target_.modules(), frame_registers(thread.registers()));
    if (!is_in_call(stack, injector.frame(), target_.functions().return_trampoline)) return;
    if (watch.is_done()) break;
  }
  injector.await_return([](const SystemCall&) {});
  injector.finish();
}

/// Finishes a call on a thread that runs on: it is stopped rarely, to see whether the call is still on its stack.
void RemoteCaller::await_return(int tid, std::uint64_t frame, const Watch& watch) {
  for (Patience patience; !watch.is_done();) {
    watch.see();
    usleep(50);
    if (target_.has_ended()) throw ThreadGone("process " + target_.called() + " has ended");
    if (!patience.is_over()) continue;
    if (!threads_.is_in_call(tid, frame)) return;
    patience.begin_again();
  }
}

}  // namespace cmt::remote_call
