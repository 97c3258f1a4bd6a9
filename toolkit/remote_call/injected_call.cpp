// A call that finishes without us.
//
// A debugger that makes a program call a function saves its registers, sets others, puts a breakpoint where the
// function returns, and then restores them. Killed in between, it leaves a program that runs into the breakpoint. Here
// the function returns to what restores all registers in the program itself: the end of a signal handler.
//
//     rsp before   ........................................
//                  Red zone, 128 bytes, which leaf functions use.
//                  Extended state: the XSAVE area, with the marks by which the kernel knows its size; 64-aligned.
//                  Bytes that arguments point to.
//                  `ucontext`: all registers, signal mask, address of the extended state.
//     rsp in call  address of __restore_rt                   16-aligned + 8, as after a call instruction
//
// The function's `ret` goes to __restore_rt, which makes the system call rt_sigreturn, and the kernel restores what the
// frame has. We never wait for anything that we have to undo: writing below the red zone changes nothing, and then one
// PTRACE_SETREGSET begins the call. Signals are blocked only after that; the frame has the mask.
//
// # System calls that the stop has interrupted
//
// The kernel has left its code for "begin anew" in rax (-ERESTARTSYS and its like), and would look at it when the
// thread goes on. In the frame rip is therefore set back to the system call, and rax to its number. If we live, we do
// better after the call. The thread stops once more after rt_sigreturn, in the same sort of stop as at first, and gets
// its original registers back. So the kernel decides, as without us: if a signal with a handler has come, pause(2)
// ends.
//
// -ERESTART_RESTARTBLOCK means that the kernel has saved how long the call has still to wait: poll, nanosleep, and a
// futex with a timeout. rt_sigreturn forgets that. So we do its work by ptrace instead, at its begin: vector state,
// signal mask, and then by one change the registers with no system call. If we are killed before that change, the
// kernel makes the call; after it, the thread makes its interrupted call once more. In both cases the call waits for
// its whole time again, and nothing worse happens. The same is done on purpose if the saved time may be another call's:
// the function has waited itself, or a signal has come. And for a thread with a filter of system calls, which would
// see the call that is none.
//
// A thread in restart_syscall(2) has been interrupted before. The instruction before the system call, `mov $number,
// %eax` in libc, has the number of its call. If there is another instruction, rt_sigreturn can only end the call with
// EINTR. The thread is used all the same if we do that work, and is not used if it has a filter.
//
// # A thread that did not wait
//
// There is nothing to bring back that rt_sigreturn does not. So the thread is let go as soon as the call has begun, and
// we see the effect elsewhere: in memory, or in /proc. If more threads want to run than there are processors, each stop
// would put the thread at the end of their queue, for tens of milliseconds.
//
// A thread that did wait is stopped when the effect is there, and then at each of the few system calls before the
// function's return. If the kernel has saved its time, it is stopped at each system call from the first.

#include "toolkit/remote_call/injected_call.h"

#include <cpuid.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <optional>

namespace cmt::remote_call {
namespace {

constexpr std::uint64_t red_zone_bytes = 128, trampoline_bytes = 10;
constexpr std::chrono::seconds call_within(10);
constexpr std::int64_t restart_codes[] = {-512, -513, -514, -516};  // ERESTARTSYS, NOINTR, NOHAND, _RESTARTBLOCK
constexpr std::int64_t restart_unless_handled = -514, restart_by_block = -516;
constexpr std::uint64_t no_call = ~std::uint64_t{0};  // in orig_rax
constexpr std::uint64_t direction_flag = 0x400, trap_flag = 0x100;

/// The kernel's signal frame (arch/x86/include/uapi/asm/sigcontext.h, ucontext.h). The siginfo that follows is not
/// read.
struct SignalFrame {
  std::uint64_t return_address;
  std::uint64_t flags;
  std::uint64_t link;
  std::uint64_t stack_pointer;  ///< of sigaltstack(2)
  std::uint32_t stack_flags, unused;
  std::uint64_t stack_size;
  std::uint64_t r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags;
  std::uint16_t cs, gs, fs, ss;
  std::uint64_t error, trap, old_mask, cr2, extended_state, reserved[8];
  std::uint64_t signal_mask;
};
static_assert(offsetof(SignalFrame, signal_mask) == 8 + 40 + 256, "as rt_sigreturn reads it");

constexpr std::uint64_t has_extended_state = 1, has_ss = 2, restores_ss = 4;  // UC_FP_XSTATE...
/// No valid mode: so rt_sigreturn leaves the alternate stack, which we cannot ask for, as it is.
constexpr std::uint32_t no_stack_mode = 3;

constexpr std::size_t software_bytes_at = 464, features_in_use_at = 512, legacy_bytes = 576;
constexpr std::uint32_t state_begin_mark = 0x46505853, state_end_mark = 0x46505845;  // FP_XSTATE_MAGIC1, 2
constexpr std::uint64_t tile_features = 1 << 17 | 1 << 18;  // AMX: saved only for processes that asked for it

template <class T>
T value_at(const std::vector<char>& bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <class T>
void set_value_at(std::vector<char>& bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

/// Returns where the state of a feature ends in the XSAVE area. In a virtual machine one cpuid takes 10 us.
std::size_t end_of_feature(unsigned feature) {
  static std::array<std::size_t, 64> ends{};
  if (ends[feature] == 0) {
    unsigned size = 0, offset = 0, c = 0, d = 0;
    __cpuid_count(0xd, feature, size, offset, c, d);
    ends[feature] = std::max<std::size_t>(legacy_bytes, offset + size);
  }
  return ends[feature];
}

std::size_t end_of_features(std::uint64_t features) {
  std::size_t end = legacy_bytes;
  for (unsigned feature = 2; feature < 63; ++feature) {
    if ((features >> feature & 1) != 0) end = std::max(end, end_of_feature(feature));
  }
  return end;
}

/// Returns the state in the form of a signal frame: with the marks by which the kernel trusts its length. Empty if its
/// form is not known.
std::vector<char> state_for_frame(std::vector<char> state) {
  if (state.size() < legacy_bytes) return {};
  auto features = value_at<std::uint64_t>(state, software_bytes_at);
  if ((value_at<std::uint64_t>(state, features_in_use_at) & tile_features) == 0) features &= ~tile_features;
  const std::size_t size = end_of_features(features);
  if (size > state.size()) return {};
  state.resize(size + sizeof state_end_mark);
  std::memset(state.data() + software_bytes_at, 0, 48);
  set_value_at(state, software_bytes_at, state_begin_mark);
  set_value_at(state, software_bytes_at + 4, static_cast<std::uint32_t>(size + sizeof state_end_mark));
  set_value_at(state, software_bytes_at + 8, features);
  set_value_at(state, software_bytes_at + 16, static_cast<std::uint32_t>(size));
  set_value_at(state, size, state_end_mark);
  return state;
}

SignalFrame frame_of(const user_regs_struct& r, std::uint64_t signal_mask) {
  SignalFrame frame{};
  frame.flags = has_extended_state | has_ss | restores_ss;
  frame.stack_flags = no_stack_mode;
  frame.r8 = r.r8;
  frame.r9 = r.r9;
  frame.r10 = r.r10;
  frame.r11 = r.r11;
  frame.r12 = r.r12;
  frame.r13 = r.r13;
  frame.r14 = r.r14;
  frame.r15 = r.r15;
  frame.rdi = r.rdi;
  frame.rsi = r.rsi;
  frame.rbp = r.rbp;
  frame.rbx = r.rbx;
  frame.rdx = r.rdx;
  frame.rax = r.rax;
  frame.rcx = r.rcx;
  frame.rsp = r.rsp;
  frame.rip = r.rip;
  frame.eflags = r.eflags;
  frame.cs = static_cast<std::uint16_t>(r.cs);
  frame.ss = static_cast<std::uint16_t>(r.ss);
  frame.signal_mask = signal_mask;
  return frame;
}

/// Signals that the thread's own instructions raise stay possible, and the one by which libc changes the user in all
/// threads, for which the other threads wait.
std::uint64_t blocked_in_call() {
  constexpr int set_user_signal = 33;
  std::uint64_t mask = ~std::uint64_t{0};
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, set_user_signal})
    mask &= ~(std::uint64_t{1} << (signal - 1));
  return mask;
}

bool is_interrupted_call(const user_regs_struct& registers) {
  const auto result = static_cast<std::int64_t>(registers.rax);
  return static_cast<std::int64_t>(registers.orig_rax) >= 0 &&
         std::find(std::begin(restart_codes), std::end(restart_codes), result) != std::end(restart_codes);
}

/// Whether the thread was let go from an earlier stop, and has not made restart_syscall yet, by which its call
/// continues. It is in the state of that stop then, but for three registers.
bool is_about_to_continue(const RemoteMemory& memory, const user_regs_struct& registers) {
  unsigned char code[2];
  return registers.rax == SYS_restart_syscall && memory.read(registers.rip, code, sizeof code) && code[0] == 0x0f &&
         code[1] == 0x05;
}

/// Returns the number of the call that restart_syscall continues.
std::optional<std::uint32_t> restarted_call(const RemoteMemory& memory, std::uint64_t call_end) {
  unsigned char code[7];
  if (!memory.read_kept(call_end - sizeof code, code, sizeof code) || code[0] != 0xb8) return std::nullopt;
  std::uint32_t number;
  std::memcpy(&number, code + 1, sizeof number);
  return code[5] == 0x0f && code[6] == 0x05 ? std::optional(number) : std::nullopt;
}

/// Whether the kernel saves another call's time when the function makes this call, even without an interruption.
bool replaces_saved_time(std::int64_t call) {
  return call == SYS_nanosleep || call == SYS_clock_nanosleep || call == SYS_rt_sigreturn;
}

}  // namespace

Injector::Injector(const RemoteMemory& memory, StoppedThread& thread, std::uint64_t return_trampoline)
    : memory_(memory),
      thread_(thread),
      return_trampoline_(return_trampoline),
      original_(thread.registers()),
      original_state_(thread.extended_state()),
      extended_state_(state_for_frame(original_state_)),
      signal_mask_(thread.signal_mask()) {
  is_possible_ = !extended_state_.empty() && (original_.eflags & trap_flag) == 0;
  if (is_about_to_continue(memory, original_)) {
    original_.orig_rax = SYS_restart_syscall;
    original_.rax = static_cast<std::uint64_t>(restart_by_block);
    original_.rip += 2;
  }
  was_waiting_ = is_interrupted_call(original_);
  anew_ = original_;
  if (was_waiting_) {
    has_saved_time_ = static_cast<std::int64_t>(original_.rax) == restart_by_block && !thread.has_filter();
    if (original_.orig_rax == SYS_restart_syscall) {
      const auto number = restarted_call(memory, original_.rip);
      is_possible_ = is_possible_ && (number || has_saved_time_);
      anew_.orig_rax = number.value_or(SYS_restart_syscall);
    }
    if (static_cast<std::int64_t>(original_.rax) == restart_by_block)
      anew_.rax = static_cast<std::uint64_t>(restart_unless_handled);
  }
  resumed_ = anew_;
  if (was_waiting_) {
    resumed_.rax = anew_.orig_rax;
    resumed_.rip -= 2;
  }
  resumed_.orig_rax = no_call;
}

/// Returns the address of the return address, or 0 if the stack cannot be written to.
std::uint64_t Injector::put_frame(const Call& wanted) {
  const std::uint64_t state_at = (original_.rsp - red_zone_bytes - extended_state_.size()) & ~std::uint64_t{63};
  bytes_ = wanted.bytes.size();
  bytes_at_ = (state_at - bytes_) & ~std::uint64_t{15};
  SignalFrame frame = frame_of(resumed_, signal_mask_);
  frame.return_address = return_trampoline_;
  frame.extended_state = state_at;
  const std::uint64_t frame_at = ((bytes_at_ - sizeof frame) & ~std::uint64_t{15}) - 8;
  assert(state_at % 64 == 0 && bytes_at_ % 16 == 0 && frame_at % 16 == 8);
  assert(frame_at + sizeof frame <= bytes_at_);
  const bool is_written = memory_.write(state_at, extended_state_.data(), extended_state_.size()) &&
                          memory_.write(bytes_at_, wanted.bytes.data(), bytes_) &&
                          memory_.write(frame_at, &frame, sizeof frame);
  return is_written ? frame_at : 0;
}

void Injector::begin(const Call& wanted) {
  frame_at_ = put_frame(wanted);
  if (frame_at_ == 0) throw CallStuck("the stack of a thread cannot be written to");
  user_regs_struct registers = resumed_;
  unsigned long long* const arguments[] = {&registers.rdi, &registers.rsi, &registers.rdx,
                                           &registers.rcx, &registers.r8,  &registers.r9};
  assert(wanted.arguments.size() <= std::size(arguments));
  for (std::size_t i = 0; i < std::min(wanted.arguments.size(), std::size(arguments)); ++i)
    *arguments[i] = wanted.arguments[i];
  for (const std::size_t i : wanted.bytes_arguments) {
    assert(i < wanted.arguments.size() && wanted.arguments[i] < wanted.bytes.size());
    *arguments[i] += bytes_at_;
  }
  registers.rip = wanted.function;
  registers.rsp = frame_at_;
  registers.rax = 0;
  registers.eflags &= ~direction_flag;
  thread_.set_registers(registers);
  thread_.set_signal_mask(blocked_in_call());
  is_changed_ = true;
}

void Injector::await_return(const std::function<void(const SystemCall&)>& at_stop) {
  assert(is_changed_);  // begin() was called
  const auto deadline = StoppedThread::Clock::now() + call_within;
  for (;;) {
    if (static_cast<std::int64_t>(thread_.registers().rax) == restart_by_block || thread_.had_signal())
      has_saved_time_ = false;
    const auto system_call = thread_.run_to_system_call(deadline);
    if (!system_call) throw CallStuck("a function that a thread was made to call does not return");
    at_stop(*system_call);
    if (system_call->is_end) continue;
    if (system_call->number == SYS_rt_sigreturn && system_call->stack_pointer == frame_at_ + 8) break;
    if (replaces_saved_time(system_call->number)) has_saved_time_ = false;
  }
  has_saved_time_ = has_saved_time_ && !thread_.had_signal();
  if (has_saved_time_) return_in_place_of_kernel();
  if (!thread_.finish_system_call(deadline)) throw CallStuck("a thread does not stop after a call");
}

/// At the begin of rt_sigreturn: restores what that restores, and has the kernel make no call.
void Injector::return_in_place_of_kernel() {
  thread_.set_extended_state(original_state_);
  thread_.set_signal_mask(signal_mask_);
  thread_.set_registers(resumed_);
}

std::string Injector::read_bytes() const {
  std::string bytes(bytes_, '\0');
  return memory_.read(bytes_at_, bytes.data(), bytes.size()) ? bytes : std::string();
}

void Injector::finish() {
  if (is_changed_) thread_.set_registers(has_saved_time_ ? original_ : anew_);
  is_changed_ = false;
}

bool is_in_call(const WalkedStack& stack, std::uint64_t frame, std::uint64_t return_trampoline) {
  const bool is_found = std::any_of(stack.frames.begin(), stack.frames.end(), [&](const Frame& f) {
    return f.sp == frame + 8 && f.pc - return_trampoline < trampoline_bytes;
  });
  return is_found || (stack.unknown_from != 0 && stack.unknown_from <= frame);
}

}  // namespace cmt::remote_call
