/// machine.h for x86-64.
#pragma once

enum {
  relocation_of_call = R_X86_64_JUMP_SLOT,
  relocation_of_data = R_X86_64_GLOB_DAT,
  relocation_absolute = R_X86_64_64,
};

static inline long sys6(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

// The upper half of a thread pointer: the word at the thread pointer is its own address.
enum { machine_thread_word_at = 4 };
static inline uint32_t machine_thread_word(uintptr_t at) {
  uint32_t word;
  __asm__ volatile("movl %%fs:(%1), %0" : "=r"(word) : "r"(at));
  return word;
}

static inline uint64_t machine_add(uint64_t* word, uint64_t count, const uint32_t* other, uint32_t* seen) {
  uint32_t value;
  __asm__ volatile("movl %3, %2\n\txaddq %0, %1"
                   : "+r"(count), "+m"(*word), "=&r"(value)
                   : "m"(*other)
                   : "memory", "cc");
  *seen = value;
  return count;
}

// The return address of a handler, and the ucontext_t after it. An earlier call, such as sigaction, may have left that
// address on the stack, where frames with unused space lie over it now. So the flags have to be possible ones: bit 1 is
// set, and those without a meaning are not.
static inline uintptr_t machine_interrupted_stack(const uintptr_t* word, const char* end, uintptr_t handlers_return) {
  enum { flags_with_meaning = 0x3f7fd5, flag_always_set = 2 };
  const greg_t* registers = ((const ucontext_t*)(word + 1))->uc_mcontext.gregs;
  if ((const char*)(registers + NGREG) > end || *word != handlers_return) return 0;
  if ((registers[REG_EFL] & ~(greg_t)flags_with_meaning) != flag_always_set) return 0;
  return (uintptr_t)registers[REG_RSP];
}

static_assert(SYS_prctl == 157 && SYS_seccomp == 317, "named in MACHINE_SYSCALL");

#define MACHINE_SYSCALL                                                                  \
  EXPORT __attribute__((naked)) long syscall(__attribute__((unused)) long number, ...) { \
    __asm__(                                                                             \
        "cmp $157, %rdi\n\t"                                                             \
        "je 1f\n\t"                                                                      \
        "cmp $317, %rdi\n\t"                                                             \
        "je 1f\n\t"                                                                      \
        "mov real_syscall(%rip), %rax\n\t"                                               \
        "test %rax, %rax\n\t"                                                            \
        "je 1f\n\t"                                                                      \
        "jmp *%rax\n"                                                                    \
        "1:\tjmp watched_syscall");                                                      \
  }                                                                                      \
  OURS(syscall)

#define MACHINE_NOTED(scope, type, function, parameters, name) \
  scope __attribute__((naked)) type function parameters {      \
    __asm__(                                                   \
        "push %rdi\n\t"                                        \
        "push %rsi\n\t"                                        \
        "push %rdx\n\t"                                        \
        "lea 24(%rsp), %rcx\n\t"                               \
        "call note_" #name                                     \
        "\n\t"                                                 \
        "pop %rdx\n\t"                                         \
        "pop %rsi\n\t"                                         \
        "pop %rdi\n\t"                                         \
        "mov real_" #name                                      \
        "(%rip), %rax\n\t"                                     \
        "jmp *%rax");                                          \
  }
#define MACHINE_NOTED_EXPORT(type, name, parameters)  \
  MACHINE_NOTED(EXPORT, type, name, parameters, name) \
  OURS(name)
#define MACHINE_NOTED_HIDDEN(type, name, parameters) \
  HIDDEN type ours_##name parameters;                \
  MACHINE_NOTED(, type, ours_##name, parameters, name)
