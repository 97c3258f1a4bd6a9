// Stops a thread by ptrace(2) and lets it go on. The hard part is to lose no signal and to stay stopped for a short
// time.
#include "toolkit/remote_call/stopped_thread.h"

#include <elf.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <future>
#include <system_error>
#include <thread>
#include <utility>

#include "toolkit/process/proc_file.h"

namespace cmt::remote_call {
namespace {

using StopKind = process::ThreadStop::Kind;

constexpr std::chrono::seconds stop_within(1);  // one that waits for a processor stops when it has one
constexpr std::chrono::microseconds glance_after(100), look_after(250);
constexpr std::chrono::milliseconds glances_for(1);
constexpr process::ThreadStop own_stop{process::ThreadStop::Kind::asked, 0};

struct RseqConfiguration {
  std::uint64_t address;
  std::uint32_t size, signature, flags, unused;
};
constexpr int get_rseq_configuration = 0x420f;  // PTRACE_GET_RSEQ_CONFIGURATION, since Linux 5.13

void* pointer(std::uint64_t number) { return reinterpret_cast<void*>(number); }

[[noreturn]] void throw_gone(int tid) { throw ThreadGone("thread " + std::to_string(tid) + " has ended"); }

}  // namespace

FrameRegisters frame_registers(const user_regs_struct& r) {
  return {{{r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14,
            r.r15, r.rip}}};
}

/// While a thread is stopped, this thread must not queue for a processor after the program's busy threads. A child has
/// the usual priority again. If the priority is not permitted, the pause is longer. A real-time priority would keep
/// others from the processor, should this thread ever loop.
static void take_precedence() {
  const sched_param ordinary{};
  sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &ordinary);
  setpriority(PRIO_PROCESS, 0, -20);  // of this thread alone (sched(7))
}

static sigset_t stop_notices() {
  sigset_t notices;
  sigemptyset(&notices);
  sigaddset(&notices, SIGCHLD);
  return notices;
}

/// The kernel reports each stop and each end to the tracer by SIGCHLD, which as_tracer() has blocked.
void await_notice(std::chrono::nanoseconds at_most) {
  const sigset_t notices = stop_notices();
  const timespec time{.tv_sec = 0, .tv_nsec = at_most.count()};
  sigtimedwait(&notices, nullptr, &time);
}

void as_tracer(const std::function<void()>& work) {
  pid_t tracer = 0;
  sigset_t before;
  const sigset_t notices = stop_notices();
  pthread_sigmask(SIG_BLOCK, &notices, &before);
  std::packaged_task<void()> task([&] {
    tracer = gettid();
    prctl(PR_SET_TIMERSLACK, 1);
    take_precedence();
    work();
  });
  std::future<void> done = task.get_future();
  std::thread(std::move(task)).join();
  while (tgkill(getpid(), tracer, 0) == 0) usleep(50);  // join() returns before the kernel has let go of all
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  done.get();
}

std::optional<StoppedThread> StoppedThread::stop(int pid, int tid, process::InterruptedCalls& calls,
                                                 std::vector<int>& late) {
  if (const int error = process::ask_to_stop(tid, PTRACE_O_TRACESYSGOOD); error != 0) {
    if (error == ESRCH) return std::nullopt;
    throw std::system_error(error, std::generic_category(), "ptrace");
  }
  StoppedThread thread(pid, tid, calls);
  try {
    if (thread.await_own_stop(Clock::now() + stop_within)) return thread;
    if (thread.runs_) late.push_back(tid);
  } catch (const ThreadGone&) {
  }
  return std::nullopt;
}

std::optional<StoppedThread> StoppedThread::begin_stop(int pid, int tid, process::InterruptedCalls& calls) {
  if (const int error = process::ask_to_stop(tid, PTRACE_O_TRACESYSGOOD); error != 0) {
    if (error == ESRCH) return std::nullopt;
    throw std::system_error(error, std::generic_category(), "ptrace");
  }
  return StoppedThread(pid, tid, calls);
}

bool StoppedThread::has_stopped() {
  const auto now = Clock::now();
  const process::ThreadStop stop = look();
  if (stop.kind == StopKind::runs) {
    since_ = now;
    return false;
  }
  runs_ = false;
  if (stop.kind != StopKind::asked && stop.kind != StopKind::group) {
    go_on(stop, PTRACE_CONT);
    return false;
  }
  has_stopped_ = true;
  return true;
}

void StoppedThread::release_late(int pid, process::InterruptedCalls& calls, std::vector<int>& late) {
  std::erase_if(late, [&](int tid) {
    StoppedThread thread(pid, tid, calls);
    thread.detach();
    return !thread.runs_;
  });
}

StoppedThread::StoppedThread(StoppedThread&& other) noexcept
    : pid_(other.pid_),
      tid_(other.tid_),
      calls_(other.calls_),
      since_(other.since_),
      is_seized_(std::exchange(other.is_seized_, false)),
      has_stopped_(other.has_stopped_),
      runs_(other.runs_),
      had_signal_(other.had_signal_) {}

StoppedThread::~StoppedThread() {
  if (is_seized_) detach();
}

/// Throws ThreadGone.
process::ThreadStop StoppedThread::look() const {
  const process::ThreadStop stop = process::look_at(pid_, tid_, *calls_);
  if (stop.kind == StopKind::ended && tid_ != pid_) process::reap_if_ended(tid_);
  if (stop.kind == StopKind::ended || stop.kind == StopKind::gone) throw_gone(tid_);
  return stop;
}

/// Waits for a stop. It may have precedence over the thread, so it sleeps long enough for the thread to get the same
/// processor. It does not sleep longer, because `since_` is the time of its last look.
process::ThreadStop StoppedThread::await_stop(Clock::time_point deadline) {
  const auto begin = Clock::now();
  for (;;) {
    const auto now = Clock::now();
    const process::ThreadStop stop = look();
    if (stop.is_stopped() || now > deadline) return stop;
    if (!has_stopped_) since_ = now;
    await_notice(now - begin < glances_for ? glance_after : look_after);
  }
}

/// Lets a stopped thread go on as it would have without us.
void StoppedThread::go_on(const process::ThreadStop& stop, int request) {
  had_signal_ = had_signal_ || stop.signal != 0;
  if (!process::let_go_on(tid_, stop, request)) throw_gone(tid_);
  runs_ = true;
}

/// Waits for the stop that was asked for. Returns false if a signal holds the process, or the stop takes too long.
bool StoppedThread::await_own_stop(Clock::time_point deadline) {
  for (;;) {
    const process::ThreadStop stop = await_stop(deadline);
    if (!stop.is_stopped()) return false;
    runs_ = false;
    has_stopped_ = true;
    if (stop.kind == StopKind::asked) return true;
    if (stop.kind == StopKind::group) return false;
    go_on(stop, PTRACE_CONT);
  }
}

std::optional<SystemCall> StoppedThread::run_to_system_call(Clock::time_point deadline) {
  for (process::ThreadStop stop = own_stop;;) {
    go_on(stop, PTRACE_SYSCALL);
    stop = await_stop(deadline);
    if (!stop.is_stopped()) return std::nullopt;
    runs_ = false;
    if (stop.kind != StopKind::system_call) continue;
    __ptrace_syscall_info info{};
    if (ptrace(PTRACE_GET_SYSCALL_INFO, tid_, pointer(sizeof info), &info) <= 0) throw_gone(tid_);
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
      return SystemCall{static_cast<std::int64_t>(info.entry.nr), false, 0, info.stack_pointer};
    if (info.op == PTRACE_SYSCALL_INFO_EXIT) return SystemCall{-1, true, info.exit.rval, info.stack_pointer};
  }
}

bool StoppedThread::run_until(const std::function<bool()>& is_enough) {
  go_on(own_stop, PTRACE_CONT);
  while (!is_enough()) {
    const process::ThreadStop stop = look();
    if (stop.is_stopped())
      go_on(stop, PTRACE_CONT);
    else
      await_notice(glance_after);
  }
  process::ask_again(tid_);
  return await_own_stop(Clock::now() + stop_within);
}

bool StoppedThread::finish_system_call(Clock::time_point deadline) {
  assert(!runs_);
  process::ask_again(tid_);
  go_on({StopKind::system_call, 0}, PTRACE_CONT);
  return await_own_stop(deadline);
}

/// A thread that runs cannot be detached. The kernel detaches it when its tracer ends, which is soon.
void StoppedThread::detach() {
  is_seized_ = false;
  try {
    const process::ThreadStop stop = runs_ ? look() : own_stop;
    if (!stop.is_stopped()) return;
    runs_ = false;
    process::let_go(tid_, stop);
  } catch (const ThreadGone&) {
    runs_ = false;
  }
}

std::chrono::nanoseconds StoppedThread::release() {
  detach();
  return Clock::now() - since_;
}

user_regs_struct StoppedThread::registers() const {
  user_regs_struct registers{};
  iovec all{&registers, sizeof registers};
  // A 32-bit program has fewer.
  const bool is_read = ptrace(PTRACE_GETREGSET, tid_, pointer(NT_PRSTATUS), &all) == 0;
  if (!is_read || all.iov_len != sizeof registers) throw_gone(tid_);
  return registers;
}

void StoppedThread::set_registers(const user_regs_struct& registers) {
  assert(has_stopped_ && !runs_);
  user_regs_struct copy = registers;
  iovec all{&copy, sizeof copy};
  if (ptrace(PTRACE_SETREGSET, tid_, pointer(NT_PRSTATUS), &all) != 0) throw_gone(tid_);
}

std::vector<char> StoppedThread::extended_state() const {
  std::vector<char> state(64 << 10);
  iovec all{state.data(), state.size()};
  if (ptrace(PTRACE_GETREGSET, tid_, pointer(NT_X86_XSTATE), &all) != 0) throw_gone(tid_);
  state.resize(all.iov_len);
  return state;
}

void StoppedThread::set_extended_state(std::vector<char> state) {
  assert(has_stopped_ && !runs_);
  iovec all{state.data(), state.size()};
  if (ptrace(PTRACE_SETREGSET, tid_, pointer(NT_X86_XSTATE), &all) != 0) throw_gone(tid_);
}

std::uint64_t StoppedThread::signal_mask() const {
  std::uint64_t mask = 0;
  if (ptrace(PTRACE_GETSIGMASK, tid_, pointer(sizeof mask), &mask) != 0) throw_gone(tid_);
  return mask;
}

void StoppedThread::set_signal_mask(std::uint64_t mask) {
  assert(has_stopped_ && !runs_);
  if (ptrace(PTRACE_SETSIGMASK, tid_, pointer(sizeof mask), &mask) != 0) throw_gone(tid_);
}

bool StoppedThread::has_filter() const {
  try {
    const std::string path = process::path_of(pid_, "task/" + std::to_string(tid_) + "/status");
    return process::find_figure(process::read_file(path), "Seccomp").value_or(0) != 0;
  } catch (const std::system_error&) {
    return true;
  }
}

bool StoppedThread::is_in_restartable_sequence(std::uint64_t pc) const {
  RseqConfiguration area{};
  constexpr auto request = static_cast<__ptrace_request>(get_rseq_configuration);
  if (ptrace(request, tid_, pointer(sizeof area), &area) <= 0 || area.address == 0) return false;
  struct {
    std::uint32_t version, flags;
    std::uint64_t begin, bytes, abort;
  } sequence{};
  std::uint64_t at = 0;
  const iovec there{pointer(area.address + 8), sizeof at}, here{&at, sizeof at};
  if (process_vm_readv(pid_, &here, 1, &there, 1, 0) != sizeof at || at == 0) return false;
  const iovec sequence_there{pointer(at), sizeof sequence}, sequence_here{&sequence, sizeof sequence};
  if (process_vm_readv(pid_, &sequence_here, 1, &sequence_there, 1, 0) != sizeof sequence) return true;
  return pc - sequence.begin < sequence.bytes;
}

}  // namespace cmt::remote_call
