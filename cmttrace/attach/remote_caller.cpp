#include "cmttrace/attach/remote_caller.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "cmttrace/attach/system_filter.h"

namespace cmt::attach {
namespace {

constexpr std::chrono::seconds choose_within(20), return_within(10);
constexpr std::chrono::milliseconds look_first_after(20), look_at_most_after(500);

/// Of a thread: 0 none, 1 strict, 2 a filter.
int filter_mode(const Target& target, int tid) {
  const std::string path = process::path_of(target.pid(), "task/" + std::to_string(tid) + "/status");
  return static_cast<int>(process::find_figure(process::read_file(path), "Seccomp").value_or(0));
}

/// The thread has not been changed yet.
void check_filter(const Target& target, const StoppedThread& thread, bool may_ignore) {
  const int mode = filter_mode(target, thread.tid());
  if (mode == 0) return;
  if (mode == 1) refuse(target, "it is in a sandbox (seccomp, strict), which would end it");
  const SystemFilters filters = read_filters(thread.tid());
  if (filters.error != 0) {
    if (may_ignore) return;
    refuse(target, "its filter of system calls (seccomp) cannot be read: " + error_text(filters.error) +
                       "; CAP_SYS_ADMIN is needed, or --force, if the filter ends nobody");
  }
  const FilterVerdict verdict = judge_filters(filters);
  if (!verdict.killed_by.empty())
    refuse(target, "its filter of system calls (seccomp) would end it for " + verdict.killed_by);
  if (!verdict.refused.empty()) refuse(target, "its filter of system calls (seccomp) refuses " + verdict.refused);
}

/// "openat" for a system call by which a library is loaded; null: another one.
const char* loading_call(std::int64_t number) {
  return number == SYS_openat ? "openat" : number == SYS_mmap ? "mmap" : number == SYS_mprotect ? "mprotect" : nullptr;
}

}  // namespace

void refuse(const Target& target, const std::string& why) {
  throw AttachRefused("process " + target.called() + " cannot be attached to: " + why);
}

Pauses RemoteCaller::pauses() const {
  return {std::max(pauses_.stopped, threads_.longest_stop()), std::max(pauses_.kept, threads_.longest_stop())};
}

void RemoteCaller::call(const Call& wanted, const Watch& watch) {
  StoppedThread thread = threads_.choose(SafeThreads::Clock::now() + choose_within);
  const int tid = thread.tid();
  const auto begin = thread.since();
  check_filter(target_, thread, ignores_filter_);
  Injector injector(target_.memory(), thread, target_.functions().return_trampoline);
  injector.begin(wanted);
  if (watch.is_traced) {
    see_failures(injector, watch);
  } else if (injector.was_waiting()) {
    see_through(thread, injector, watch);
  }
  pauses_.stopped = std::max(pauses_.stopped, thread.release());
  if (!injector.was_waiting() && !watch.is_traced) await_return(tid, injector.frame(), watch);
  pauses_.kept = std::max<std::chrono::nanoseconds>(pauses_.kept, SafeThreads::Clock::now() - begin);
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

/// When to look whether a function has returned though what was wanted has not been done.
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

/// For a thread that was waiting: it is stopped again at the function's end.
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

/// For a thread that runs on: it is stopped rarely, to see whether the call is still on its stack.
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

}  // namespace cmt::attach
