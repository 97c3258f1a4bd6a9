// A filter may end the program for a system call that it does not allow. The default filters of containers refuse some
// calls and end no program; a sandbox's filter may. So the filter is asked: the kernel gives it to a process with
// CAP_SYS_ADMIN (PTRACE_SECCOMP_GET_FILTER), and it is executed here for each call that an injected function makes.
//
// A filter may look at arguments too. It is asked with those that the calls mostly have.

#include "toolkit/remote_call/system_filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace cmt::remote_call {
namespace {

constexpr std::size_t programs_max = 1000;

const FilteredCall calls[] = {
    {"memfd_create", SYS_memfd_create, {0x1000, 1}},
    {"openat", SYS_openat, {static_cast<std::uint64_t>(AT_FDCWD), 0x1000, O_RDONLY | O_CLOEXEC}},
    {"read", SYS_read, {3, 0x1000, 832}},
    {"pread64", SYS_pread64, {3, 0x1000, 784, 64}},
    {"newfstatat", SYS_newfstatat, {3, 0x1000, 0x2000, 0x1000}},
    {"fstat", SYS_fstat, {3, 0x1000}},
    {"mmap", SYS_mmap, {0, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_DENYWRITE, 3}},
    {"mmap", SYS_mmap, {0x10000, 1 << 20, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED | MAP_DENYWRITE, 3, 4096}},
    {"mmap", SYS_mmap, {0, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, 3}},
    {"mprotect", SYS_mprotect, {0x10000, 4096, PROT_READ}},
    {"mprotect", SYS_mprotect, {0x10000, 4096, PROT_READ | PROT_WRITE}},
    {"close", SYS_close, {3}},
    {"ftruncate", SYS_ftruncate, {3, 1 << 20}},
    {"rt_sigreturn", SYS_rt_sigreturn},
    {"getppid", SYS_getppid},
    {"getcwd", SYS_getcwd, {0x1000, 4095}},
    {"prlimit64", SYS_prlimit64, {0, 9, 0, 0x1000}},
    {"mmap", SYS_mmap, {0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, ~0ull}, CallUse::record},
    {"munmap", SYS_munmap, {0x10000, 4096}, CallUse::record},
    {"madvise", SYS_madvise, {0x10000, 4096, MADV_DONTDUMP}, CallUse::record},
    {"madvise", SYS_madvise, {0x10000, 4096, 23}, CallUse::record},
    {"fallocate", SYS_fallocate, {3, 0, 0, 1 << 20}, CallUse::record},
    {"futex", SYS_futex, {0x1000, FUTEX_WAIT, 0, 0x2000}, CallUse::record},
    {"futex", SYS_futex, {0x1000, FUTEX_WAKE, 1}, CallUse::record},
    {"rt_sigprocmask", SYS_rt_sigprocmask, {2, 0x1000, 0x2000, 8}, CallUse::record},
    {"prctl", SYS_prctl, {PR_GET_NAME, 0x1000}, CallUse::record},
    {"getpid", SYS_getpid, {}, CallUse::record},
    {"gettid", SYS_gettid, {}, CallUse::record},
    {"clock_gettime", SYS_clock_gettime, {1, 0x1000}, CallUse::record},
    {"tgkill", SYS_tgkill, {1, 1, 0}, CallUse::record},
    {"getcpu", SYS_getcpu, {0x1000}, CallUse::record},
    {"mincore", SYS_mincore, {0x10000, 1 << 20, 0x1000}, CallUse::touch},
    {"move_pages", SYS_move_pages, {0, 32, 0x1000, 0, 0x2000}, CallUse::touch},
    {"open", SYS_open, {0x1000, O_RDONLY | O_CLOEXEC}, CallUse::touch},
    {"ioctl", SYS_ioctl, {3, 0xc0606610, 0x1000}, CallUse::touch},
    {"rt_sigreturn", SYS_rt_sigreturn, {}, CallUse::allocator},
    {"madvise", SYS_madvise, {0x10000, 4096, MADV_DONTNEED}, CallUse::allocator},
    {"brk", SYS_brk, {0x10000}, CallUse::allocator},
    {"mmap", SYS_mmap, {0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, ~0ull}, CallUse::allocator},
    {"futex", SYS_futex, {0x1000, FUTEX_WAIT_PRIVATE, 2}, CallUse::allocator},
    {"futex", SYS_futex, {0x1000, FUTEX_WAKE_PRIVATE, 1}, CallUse::allocator},
};

/// Without these calls an attach is impossible. If another one fails, libcmttrace copes or reports it. A function of an
/// allocator needs all of its calls.
constexpr const char* needed[] = {"memfd_create", "openat", "read", "mmap", "mprotect", "close", "ftruncate"};

/// Struct seccomp_data as a filter reads it, by words.
std::uint32_t word_of(const FilteredCall& call, std::uint64_t instruction_pointer, std::uint32_t offset) {
  seccomp_data data{};
  data.nr = call.number;
  data.arch = AUDIT_ARCH_X86_64;
  data.instruction_pointer = instruction_pointer;
  std::copy(call.arguments.begin(), call.arguments.end(), data.args);
  std::uint32_t word = 0;
  if (offset % 4 == 0 && offset <= sizeof data - sizeof word)
    std::memcpy(&word, reinterpret_cast<const char*>(&data) + offset, sizeof word);
  return word;
}

/// Returns the accumulator after an operation of the class ALU, or nullopt for a division by 0 or an unknown operation.
std::optional<std::uint32_t> compute(std::uint16_t code, std::uint32_t a, std::uint32_t operand) {
  switch (BPF_OP(code)) {
    case BPF_ADD:
      return a + operand;
    case BPF_SUB:
      return a - operand;
    case BPF_MUL:
      return a * operand;
    case BPF_DIV:
      return operand != 0 ? std::optional(a / operand) : std::nullopt;
    case BPF_OR:
      return a | operand;
    case BPF_AND:
      return a & operand;
    case BPF_XOR:
      return a ^ operand;
    case BPF_LSH:
      return operand < 32 ? a << operand : 0;
    case BPF_RSH:
      return operand < 32 ? a >> operand : 0;
    case BPF_NEG:
      return 0 - a;
    default:
      return std::nullopt;
  }
}

bool is_taken(std::uint16_t code, std::uint32_t a, std::uint32_t operand) {
  switch (BPF_OP(code)) {
    case BPF_JEQ:
      return a == operand;
    case BPF_JGT:
      return a > operand;
    case BPF_JGE:
      return a >= operand;
    default:
      return (a & operand) != 0;  // BPF_JSET
  }
}

/// A filter's state: accumulator, index register, and memory.
struct FilterMachine {
  std::uint32_t a = 0, x = 0;
  std::array<std::uint32_t, BPF_MEMWORDS> memory{};

  /// The operand that an instruction names.
  std::uint32_t operand(const sock_filter& instruction) const {
    return BPF_SRC(instruction.code) == BPF_X ? x : instruction.k;
  }

  std::uint32_t loaded(const sock_filter& instruction, const FilteredCall& call, std::uint64_t pointer) const {
    switch (BPF_MODE(instruction.code)) {
      case BPF_ABS:
        return word_of(call, pointer, instruction.k);
      case BPF_MEM:
        return memory[instruction.k % memory.size()];
      case BPF_LEN:
        return sizeof(seccomp_data);
      default:
        return instruction.k;  // BPF_IMM
    }
  }
};

/// The smaller it is, the stronger, as the kernel chooses between several filters.
std::int32_t strength(std::uint32_t answer) { return static_cast<std::int32_t>(answer & SECCOMP_RET_ACTION_FULL); }

bool is_fatal(std::uint32_t answer) {
  const std::uint32_t action = answer & SECCOMP_RET_ACTION_FULL;
  return action == SECCOMP_RET_KILL_PROCESS || action == SECCOMP_RET_KILL_THREAD || action == SECCOMP_RET_TRAP;
}

bool is_refusal(std::uint32_t answer) {
  return (answer & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO && (answer & SECCOMP_RET_DATA) != 0;
}

}  // namespace

std::optional<std::uint32_t> run_filter(std::span<const sock_filter> program, const FilteredCall& call,
                                        std::uint64_t instruction_pointer) {
  FilterMachine machine;
  for (std::size_t at = 0; at < program.size();) {  // jumps go forwards only
    const sock_filter& instruction = program[at++];
    switch (BPF_CLASS(instruction.code)) {
      case BPF_LD:
        machine.a = machine.loaded(instruction, call, instruction_pointer);
        break;
      case BPF_LDX:
        machine.x = machine.loaded(instruction, call, instruction_pointer);
        break;
      case BPF_ST:
        machine.memory[instruction.k % machine.memory.size()] = machine.a;
        break;
      case BPF_STX:
        machine.memory[instruction.k % machine.memory.size()] = machine.x;
        break;
      case BPF_ALU: {
        const auto result = compute(instruction.code, machine.a, machine.operand(instruction));
        if (!result) return std::nullopt;
        machine.a = *result;
        break;
      }
      case BPF_JMP: {
        const bool always = BPF_OP(instruction.code) == BPF_JA;
        const bool taken = !always && is_taken(instruction.code, machine.a, machine.operand(instruction));
        at += always ? instruction.k : taken ? instruction.jt : instruction.jf;
        break;
      }
      case BPF_RET:
        return BPF_RVAL(instruction.code) == BPF_A ? machine.a : instruction.k;
      default:  // BPF_MISC
        if (BPF_MISCOP(instruction.code) == BPF_TAX)
          machine.x = machine.a;
        else
          machine.a = machine.x;
    }
  }
  return std::nullopt;
}

SystemFilters read_filters(int tid) {
  SystemFilters filters;
  constexpr auto get_filter = static_cast<__ptrace_request>(PTRACE_SECCOMP_GET_FILTER);
  while (filters.programs.size() < programs_max) {
    const auto index = reinterpret_cast<void*>(filters.programs.size());
    const long length = ptrace(get_filter, tid, index, nullptr);
    if (length < 0 && errno == ENOENT) return filters;
    std::vector<sock_filter> program(length < 0 ? 0 : static_cast<std::size_t>(length));
    if (length < 0 || ptrace(get_filter, tid, index, program.data()) != length) {
      filters.error = errno != 0 ? errno : EINVAL;
      return filters;
    }
    filters.programs.push_back(std::move(program));
  }
  return filters;
}

FilterVerdict judge_filters(const SystemFilters& filters, const std::vector<CallUse>& uses) {
  FilterVerdict verdict;
  for (const FilteredCall& call : calls) {
    if (std::find(uses.begin(), uses.end(), call.use) == uses.end()) continue;
    std::uint32_t strongest = SECCOMP_RET_ALLOW;
    for (const auto& program : filters.programs) {
      const std::uint32_t answer = run_filter(program, call, 0x7f0000000000).value_or(SECCOMP_RET_KILL_PROCESS);
      if (strength(answer) < strength(strongest)) strongest = answer;
    }
    const bool is_needed = call.use == CallUse::allocator ||
                           std::any_of(std::begin(needed), std::end(needed),
                                       [&](const char* name) { return std::strcmp(name, call.name) == 0; });
    if (is_fatal(strongest) && verdict.killed_by.empty()) verdict.killed_by = call.name;
    if (is_refusal(strongest) && is_needed && verdict.refused.empty()) verdict.refused = call.name;
  }
  return verdict;
}

}  // namespace cmt::remote_call
