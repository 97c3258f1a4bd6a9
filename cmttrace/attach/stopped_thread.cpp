// Stops a thread by ptrace(2) and lets it go on. The hard part is to lose no signal and to stay stopped for a short
// time.
#include "cmttrace/attach/stopped_thread.h"

#include <elf.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <future>
#include <system_error>
#include <thread>
#include <utility>

namespace cmt::attach {
namespace {

constexpr std::chrono::seconds stop_within(1);  // one that waits for a processor stops when it has one
constexpr std::chrono::microseconds glance_after(100), look_after(250);
constexpr std::chrono::milliseconds glances_for(1);
constexpr int is_event = 0xff00, runs_still = -1;
constexpr int system_call_stop = SIGTRAP | 0x80;
constexpr int own_stop = SIGTRAP | PTRACE_EVENT_STOP << 8;

struct RseqConfiguration {
  std::uint64_t address;
  std::uint32_t size, signature, flags, unused;
};
constexpr int get_rseq_configuration = 0x420f;  // PTRACE_GET_RSEQ_CONFIGURATION, since Linux 5.13

/// A stop by SIGSTOP and its like, which lasts until SIGCONT.
bool is_group_stop(int status) { return status >> 8 == PTRACE_EVENT_STOP && (status & 0xff) != SIGTRAP; }

void* pointer(std::uint64_t number) { return reinterpret_cast<void*>(number); }

[[noreturn]] void throw_gone(int tid) { throw ThreadGone("thread " + std::to_string(tid) + " has ended"); }

/// Returns the status of a thread's stop (a signal, and above it an event), or runs_still. Throws ThreadGone.
int status_of(int pid, int tid) {
  constexpr int options = WSTOPPED | WEXITED | WNOHANG | __WALL;
  siginfo_t what{};
  if (waitid(P_PID, static_cast<id_t>(tid), &what, options | WNOWAIT) != 0) throw_gone(tid);
  if (what.si_pid == 0) return runs_still;
  if (what.si_code == CLD_TRAPPED || what.si_code == CLD_STOPPED) return what.si_status;
  // An execve in the process waits until the end of another thread than the first has been seen.
  if (tid != pid) waitid(P_PID, static_cast<id_t>(tid), &what, WEXITED | WNOHANG | __WALL);
  throw_gone(tid);
}

}  // namespace

FrameRegisters frame_registers(const user_regs_struct& r) {
  return {{{r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14,
            r.r15, r.rip}}};
}

/// While a thread is stopped, this thread must not queue for a processor after the program's busy threads. A child has
/// the usual priority again. If the priority is not permitted, the pause is longer.
static void take_precedence() {
  const sched_param least{.sched_priority = 1};
  sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &least);
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
  if (ptrace(PTRACE_SEIZE, tid, nullptr, pointer(PTRACE_O_TRACESYSGOOD)) != 0) {
    if (errno == ESRCH) return std::nullopt;
    throw std::system_error(errno, std::generic_category(), "ptrace");
  }
  StoppedThread thread(pid, tid);
  try {
    ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr);
    thread.runs_ = true;
    if (!thread.await_own_stop(Clock::now() + stop_within)) {
      if (thread.runs_) late.push_back(tid);
      return std::nullopt;
    }
    calls.begin_anew(pid, tid);
    return thread;
  } catch (const ThreadGone&) {
    return std::nullopt;
  }
}

std::optional<StoppedThread> StoppedThread::begin_stop(int pid, int tid) {
  if (ptrace(PTRACE_SEIZE, tid, nullptr, pointer(PTRACE_O_TRACESYSGOOD)) != 0) return std::nullopt;
  StoppedThread thread(pid, tid);
  ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr);
  thread.runs_ = true;
  return thread;
}

bool StoppedThread::has_stopped(process::InterruptedCalls& calls) {
  const auto now = Clock::now();
  const int status = status_of(pid_, tid_);
  if (status == runs_still) {
    since_ = now;
    return false;
  }
  runs_ = false;
  if (status != own_stop && !is_group_stop(status)) {
    go_on(PTRACE_CONT, status);
    return false;
  }
  has_stopped_ = true;
  if (status == own_stop) calls.begin_anew(pid_, tid_);
  return true;
}

void StoppedThread::release_late(int pid, std::vector<int>& late) {
  std::erase_if(late, [pid](int tid) {
    StoppedThread thread(pid, tid);
    thread.runs_ = true;
    thread.detach();
    return !thread.runs_;
  });
}

StoppedThread::StoppedThread(StoppedThread&& other) noexcept
    : pid_(other.pid_),
      tid_(other.tid_),
      since_(other.since_),
      is_seized_(std::exchange(other.is_seized_, false)),
      has_stopped_(other.has_stopped_),
      runs_(other.runs_) {}

StoppedThread::~StoppedThread() {
  if (is_seized_) detach();
}

/// Waits for a stop. It may have precedence over the thread, so it sleeps long enough for the thread to get the same
/// processor. It does not sleep longer, because `since_` is the time of its last look.
int StoppedThread::await_stop(Clock::time_point deadline) {
  const auto begin = Clock::now();
  for (;;) {
    const auto now = Clock::now();
    const int status = status_of(pid_, tid_);
    if (status != runs_still || now > deadline) return status;
    if (!has_stopped_) since_ = now;
    await_notice(now - begin < glances_for ? glance_after : look_after);
  }
}

/// Lets a stopped thread go on as it would have without us.
void StoppedThread::go_on(int request, int status) {
  const int signal = (status & is_event) == 0 && status != system_call_stop ? status : 0;
  if (is_group_stop(status)) request = PTRACE_LISTEN;
  if (ptrace(static_cast<__ptrace_request>(request), tid_, nullptr, pointer(static_cast<std::uint64_t>(signal))) != 0)
    throw_gone(tid_);
  runs_ = true;
}

/// Waits for the stop that PTRACE_INTERRUPT has asked for. Returns false if a signal holds the process, or the stop
/// takes too long.
bool StoppedThread::await_own_stop(Clock::time_point deadline) {
  for (;;) {
    const int status = await_stop(deadline);
    if (status == runs_still) return false;
    runs_ = false;
    has_stopped_ = true;
    if (status == own_stop) return true;
    if (is_group_stop(status)) return false;
    go_on(PTRACE_CONT, status);
  }
}

std::optional<SystemCall> StoppedThread::run_to_system_call(Clock::time_point deadline) {
  for (int status = own_stop;;) {
    go_on(PTRACE_SYSCALL, status);
    status = await_stop(deadline);
    if (status == runs_still) return std::nullopt;
    runs_ = false;
    if (status != system_call_stop) continue;
    __ptrace_syscall_info info{};
    if (ptrace(PTRACE_GET_SYSCALL_INFO, tid_, pointer(sizeof info), &info) <= 0) throw_gone(tid_);
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
      return SystemCall{static_cast<std::int64_t>(info.entry.nr), false, 0, info.stack_pointer};
    if (info.op == PTRACE_SYSCALL_INFO_EXIT) return SystemCall{-1, true, info.exit.rval, info.stack_pointer};
  }
}

bool StoppedThread::run_until(const std::function<bool()>& is_enough) {
  go_on(PTRACE_CONT, own_stop);
  while (!is_enough()) {
    const int status = status_of(pid_, tid_);
    if (status == runs_still)
      await_notice(glance_after);
    else
      go_on(PTRACE_CONT, status);
  }
  ptrace(PTRACE_INTERRUPT, tid_, nullptr, nullptr);
  return await_own_stop(Clock::now() + stop_within);
}

bool StoppedThread::finish_system_call(Clock::time_point deadline) {
  assert(!runs_);
  ptrace(PTRACE_INTERRUPT, tid_, nullptr, nullptr);
  go_on(PTRACE_CONT, system_call_stop);
  return await_own_stop(deadline);
}

/// A thread that runs cannot be detached. The kernel detaches it when its tracer ends, which is soon.
void StoppedThread::detach() {
  is_seized_ = false;
  try {
    const int status = runs_ ? status_of(pid_, tid_) : own_stop;
    if (status == runs_still) return;
    runs_ = false;
    const int signal = (status & is_event) == 0 && status != system_call_stop ? status : 0;
    ptrace(PTRACE_DETACH, tid_, nullptr, pointer(static_cast<std::uint64_t>(signal)));
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

std::uint64_t StoppedThread::signal_mask() const {
  std::uint64_t mask = 0;
  if (ptrace(PTRACE_GETSIGMASK, tid_, pointer(sizeof mask), &mask) != 0) throw_gone(tid_);
  return mask;
}

void StoppedThread::set_signal_mask(std::uint64_t mask) {
  assert(has_stopped_ && !runs_);
  if (ptrace(PTRACE_SETSIGMASK, tid_, pointer(sizeof mask), &mask) != 0) throw_gone(tid_);
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

}  // namespace cmt::attach
