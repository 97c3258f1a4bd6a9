// Changes the result of an interrupted system call, as interrupted_calls.h describes. x86-64 only.

#include "toolkit/process/interrupted_calls.h"

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
#include <optional>
#include <string>
#include <system_error>

#include "toolkit/process/proc_file.h"
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
};

constexpr Wait for_ever{.is_known = true};

/// Longer than 285 years is for ever.
Wait lasting(std::int64_t seconds, std::int64_t ns) {
  if (seconds < 0 || seconds > seconds_max) return for_ever;
  return {true, seconds * ns_per_second + ns % ns_per_second};
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

/// The wait of calls that may be begun anew: when they end with EINTR, they have done nothing yet.
Wait wait_of(int pid, const user_regs_struct& registers) {
  switch (registers.orig_rax) {
    case SYS_epoll_wait:
    case SYS_epoll_pwait: {
      const auto ms = static_cast<std::int32_t>(registers.r10);
      return ms < 0 ? for_ever : Wait{true, ms * (ns_per_second / 1000)};
    }
    case SYS_epoll_pwait2:
    case SYS_semtimedop:
      return wait_by_timespec(pid, registers.r10);
    case SYS_semop:
      return for_ever;
    case SYS_rt_sigtimedwait:
      return wait_by_timespec(pid, registers.rdx);
    case SYS_io_getevents:
    case SYS_io_pgetevents:
      return wait_by_timespec(pid, registers.r8);
    case SYS_io_uring_enter:
      return wait_of_ring(pid, registers);
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_accept:
    case SYS_accept4:
      return wait_of_socket(pid, registers.rdi, SO_RCVTIMEO);
    case SYS_write:
    case SYS_writev:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_connect:
      return wait_of_socket(pid, registers.rdi, SO_SNDTIMEO);
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
  if (wait.timeout_ns) {
    const Call call{{registers.orig_rax, registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8,
                     registers.r9, registers.rip, registers.rsp},
                    switches_of(pid, tid),
                    now_ns()};
    if (!may_wait(tid, call, *wait.timeout_ns)) return;
  }
  registers.rax = static_cast<unsigned long long>(-restart_unless_handled);
  ptrace(PTRACE_SETREGSET, tid, general, &all);
}

}  // namespace cmt::process

#else

namespace cmt::process {

void InterruptedCalls::begin_anew(int, int) {}

}  // namespace cmt::process

#endif
