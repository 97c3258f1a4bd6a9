// Changes the result of an interrupted system call, as interrupted_calls.h describes. x86-64 only.

#include "toolkit/process/stopping/interrupted_calls.h"

#include <charconv>
#include <string>
#include <system_error>

#include "toolkit/process/proc_file.h"

namespace cmt::process {
namespace {

/// Takes the next number of a line; nothing at its end or at a word. Hexadecimal ones begin with "0x".
std::optional<std::uint64_t> take_number(std::string_view& line) {
  std::string_view word = take_word(line);
  const int base = word.starts_with("0x") ? 16 : 10;
  if (base == 16) word.remove_prefix(2);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number, base);
  if (word.empty() || error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return number;
}

}  // namespace

std::optional<WaitingCall> parse_waiting_call(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  WaitingCall call;
  const auto number = take_number(text);
  if (!number) return std::nullopt;
  call.number = static_cast<std::int64_t>(*number);
  for (std::uint64_t& argument : call.arguments) argument = take_number(text).value_or(0);
  const auto stack_pointer = take_number(text), instruction = take_number(text);
  if (!stack_pointer || !instruction) return std::nullopt;
  call.stack_pointer = *stack_pointer;
  call.instruction = *instruction;
  return call;
}

std::optional<WaitingCall> read_waiting_call(int pid, int tid) {
  try {
    return parse_waiting_call(read_file(path_of(pid, "task/" + std::to_string(tid) + "/syscall")));
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

}  // namespace cmt::process

#if defined(__x86_64__)

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <ctime>

#include "toolkit/process/stat.h"
#include "toolkit/process/system.h"

namespace cmt::process {
namespace {

constexpr std::int64_t restart_unless_handled = 514;  // ERESTARTNOHAND, include/linux/errno.h
constexpr std::int64_t ns_per_second = 1'000'000'000;
constexpr std::int64_t seconds_max = 9'000'000'000;
constexpr std::size_t threads_max = 10000;
constexpr std::uint64_t has_extended_argument = 8;  // IORING_ENTER_EXT_ARG
constexpr std::uint64_t has_deadline = 32;          // IORING_ENTER_ABS_TIMER
constexpr std::uint64_t switches_of_stop = 2;       // into the stop, and into the call again

/// How long a call may wait.
struct Wait {
  bool is_known = false;
  std::optional<std::int64_t> timeout_ns{};  ///< nothing: until something happens
  std::int64_t when_over = -EINTR;           ///< its result when the time is over
};

constexpr Wait for_ever{.is_known = true};

/// Longer than 285 years is for ever.
Wait lasting(std::int64_t seconds, std::int64_t ns) {
  if (seconds < 0 || seconds > seconds_max) return for_ever;
  return {true, seconds * ns_per_second + ns % ns_per_second};
}

Wait ending_with(std::int64_t result, Wait wait) {
  wait.when_over = result;
  return wait;
}

/// How often a thread gave up its processor. 0 if the thread is gone.
std::uint64_t switches_of(int pid, int tid) {
  try {
    const std::string path = path_of(pid, "task/" + std::to_string(tid) + "/status");
    return parse_status(process::read_file(path)).switches;
  } catch (const std::system_error&) {
    return 0;
  }
}

template <class T>
bool read_memory(int pid, std::uint64_t address, T& value) {
  const iovec here{&value, sizeof value}, there{reinterpret_cast<void*>(address), sizeof value};
  return process_vm_readv(pid, &here, 1, &there, 1, 0) == static_cast<ssize_t>(sizeof value);
}

/// By a pointer to a timespec; null: for ever.
Wait wait_by_timespec(int pid, std::uint64_t address) {
  if (address == 0) return for_ever;
  timespec time{};
  if (!read_memory(pid, address, time)) return {};
  return lasting(time.tv_sec, time.tv_nsec);
}

/// By the argument of io_uring_enter, a struct io_uring_getevents_arg.
Wait wait_of_ring(int pid, const user_regs_struct& registers) {
  if ((registers.r10 & has_extended_argument) == 0 || (registers.r10 & has_deadline) != 0) return for_ever;
  struct {
    std::uint64_t mask;
    std::uint32_t mask_size, least_wait_us;
    std::uint64_t timespec;
  } argument{};
  return read_memory(pid, registers.r8, argument) ? wait_by_timespec(pid, argument.timespec) : Wait{};
}

/// The wait of a call on a socket, by the socket's option. Not known for other descriptors.
Wait wait_of_socket(int pid, std::uint64_t descriptor, int option) {
  const Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (process.get() < 0) return {};
  const Fd socket(static_cast<int>(syscall(SYS_pidfd_getfd, process.get(), static_cast<int>(descriptor), 0)));
  timeval time{};
  socklen_t size = sizeof time;
  if (socket.get() < 0 || getsockopt(socket.get(), SOL_SOCKET, option, &time, &size) != 0) return {};
  if (time.tv_sec == 0 && time.tv_usec == 0) return for_ever;
  return lasting(time.tv_sec, time.tv_usec * 1000);
}

/// By a pointer to a timeval; null: for ever.
Wait wait_by_timeval(int pid, std::uint64_t address) {
  if (address == 0) return for_ever;
  timeval time{};
  if (!read_memory(pid, address, time)) return {};
  return lasting(time.tv_sec, time.tv_usec * 1000);
}

/// The wait of calls that may be begun anew: when they end with EINTR, they have done nothing yet.
Wait wait_of(int pid, const user_regs_struct& registers) {
  switch (registers.orig_rax) {
    case SYS_epoll_wait:
    case SYS_epoll_pwait: {
      const auto ms = static_cast<std::int32_t>(registers.r10);
      return ms < 0 ? for_ever : ending_with(0, {true, ms * (ns_per_second / 1000)});
    }
    case SYS_epoll_pwait2:
      return ending_with(0, wait_by_timespec(pid, registers.r10));
    case SYS_semtimedop:
      return ending_with(-EAGAIN, wait_by_timespec(pid, registers.r10));
    case SYS_semop:
      return for_ever;
    case SYS_rt_sigtimedwait:
      return ending_with(-EAGAIN, wait_by_timespec(pid, registers.rdx));
    case SYS_io_getevents:
    case SYS_io_pgetevents:
      return ending_with(0, wait_by_timespec(pid, registers.r8));
    case SYS_io_uring_enter:
      return ending_with(-ETIME, wait_of_ring(pid, registers));
    // The next three end with EINTR only if the kernel cannot write the rest of their time. They would have to empty
    // their sets when it is over.
    case SYS_select:
      return wait_by_timeval(pid, registers.r8);
    case SYS_pselect6:
      return wait_by_timespec(pid, registers.r8);
    case SYS_ppoll:
      return wait_by_timespec(pid, registers.rdx);
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_accept:
    case SYS_accept4:
      return ending_with(-EAGAIN, wait_of_socket(pid, registers.rdi, SO_RCVTIMEO));
    case SYS_write:
    case SYS_writev:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
      return ending_with(-EAGAIN, wait_of_socket(pid, registers.rdi, SO_SNDTIMEO));
    case SYS_connect:
      return ending_with(-EINPROGRESS, wait_of_socket(pid, registers.rdi, SO_SNDTIMEO));
    default:
      return {};
  }
}

}  // namespace

bool InterruptedCalls::may_wait(int tid, const Call& call, std::int64_t timeout_ns) {
  if (timed_calls_.size() >= threads_max) timed_calls_.clear();
  Call& last = timed_calls_[tid];
  assert(timed_calls_.size() <= threads_max);
  const bool is_same = last.registers == call.registers && call.switches <= last.switches + switches_of_stop;
  const std::int64_t first_ns = is_same ? last.interrupted_ns : call.interrupted_ns;
  last = call;
  last.interrupted_ns = first_ns;
  return call.interrupted_ns - first_ns < timeout_ns || !is_same;
}

void InterruptedCalls::begin_anew(int pid, int tid) {
  user_regs_struct registers{};
  iovec all{&registers, sizeof registers};
  void* const general = reinterpret_cast<void*>(NT_PRSTATUS);
  // A program of 32 bits has fewer registers.
  if (ptrace(PTRACE_GETREGSET, tid, general, &all) != 0 || all.iov_len != sizeof registers) return;
  const bool is_in_call = static_cast<std::int64_t>(registers.orig_rax) >= 0;
  if (!is_in_call || static_cast<std::int64_t>(registers.rax) != -EINTR) return;
  const Wait wait = wait_of(pid, registers);
  if (!wait.is_known) return;
  std::int64_t result = -restart_unless_handled;
  if (wait.timeout_ns) {
    const Call call{{registers.orig_rax, registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8,
                     registers.r9, registers.rip, registers.rsp, registers.rbp, registers.rbx, registers.r12,
                     registers.r13, registers.r14, registers.r15},
                    switches_of(pid, tid),
                    now_ns()};
    if (!may_wait(tid, call, *wait.timeout_ns)) result = wait.when_over;
  }
  registers.rax = static_cast<unsigned long long>(result);
  ptrace(PTRACE_SETREGSET, tid, general, &all);
}

bool may_be_disturbed(const WaitingCall& call) {
  const auto& a = call.arguments;
  switch (call.number) {
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
      return static_cast<std::int32_t>(a[3]) >= 0;
    case SYS_epoll_pwait2:
    case SYS_semtimedop:
      return a[3] != 0;
    case SYS_rt_sigtimedwait:
      return a[2] != 0;
    case SYS_io_getevents:
    case SYS_io_pgetevents:
      return a[4] != 0;
    // A socket may have a timeout, and a call that writes may have written a part.
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_accept:
    case SYS_accept4:
    case SYS_connect:
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_pwritev:
    case SYS_pwritev2:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_sendfile:
    case SYS_splice:
    case SYS_tee:
    case SYS_vmsplice:
    case SYS_ioctl:
    case SYS_io_uring_enter:
      return true;
    default:
      return false;
  }
}

}  // namespace cmt::process

#else

namespace cmt::process {

void InterruptedCalls::begin_anew(int, int) {}
bool may_be_disturbed(const WaitingCall&) { return true; }

}  // namespace cmt::process

#endif
