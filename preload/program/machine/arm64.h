/// machine.h for arm64. Its compilers have no functions without a frame, so those are written in assembly as a whole.
#pragma once

enum {
  relocation_of_call = R_AARCH64_JUMP_SLOT,
  relocation_of_data = R_AARCH64_GLOB_DAT,
  relocation_absolute = R_AARCH64_ABS64,
};

static inline long sys6(long number, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory", "cc");
  return x0;
}

enum { machine_thread_word_at = 1 };
static inline uint32_t machine_thread_word(uintptr_t at) { return (uint32_t)at; }

// One instruction, or a loop that begins anew where a signal handler has come between.
static inline uint64_t machine_add(uint64_t* word, uint64_t count, const uint32_t* other, uint32_t* seen) {
  *seen = __atomic_load_n(other, __ATOMIC_RELAXED);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  return __atomic_fetch_add(word, count, __ATOMIC_RELAXED);
}

// A handler returns to an address that no frame need have. So the frame is recognized by the mark and the size of the
// floating-point registers, which the kernel puts directly after the other registers.
static inline uintptr_t machine_interrupted_stack(const uintptr_t* word, const char* end, uintptr_t handlers_return) {
  enum { mark = 0x46508001, bytes = 528 };
  const mcontext_t* context = (const mcontext_t*)word;
  (void)handlers_return;
  if ((uintptr_t)word % 16 != 0 || (const char*)(context->__reserved + 8) > end) return 0;
  const uint32_t* first = (const uint32_t*)context->__reserved;
  return first[0] == mark && first[1] == bytes ? context->sp : 0;
}

static_assert(SYS_prctl == 167 && SYS_seccomp == 277, "named in MACHINE_SYSCALL");

// A function of the tracer's with this name, and what hooks.c knows it by. x16: also where branches are checked.
#define MACHINE_FUNCTION(visible, name, code)                                                                 \
  __asm__(".pushsection .text\n\t.balign 16\n\t" visible ".globl ours_" #name "\n\t.hidden ours_" #name       \
          "\n\t.type ours_" #name ", %function\nours_" #name ":\n\thint #34\n\t" code "\n\t.size ours_" #name \
          ", . - ours_" #name "\n\t.popsection")
#define MACHINE_VISIBLE(name) ".globl " #name "\n\t.type " #name ", %function\n" #name ":\n\t"
#define MACHINE_LOAD_REAL(name) "adrp x16, real_" #name "\n\tldr x16, [x16, :lo12:real_" #name "]\n\t"

#define MACHINE_SYSCALL                                                                        \
  MACHINE_FUNCTION(MACHINE_VISIBLE(syscall), syscall,                                          \
                   "cmp x0, #167\n\tb.eq 1f\n\tcmp x0, #277\n\tb.eq 1f\n\t" MACHINE_LOAD_REAL( \
                       syscall) "cbz x16, 1f\n\tbr x16\n1:\tb watched_syscall")

// The return address is in a register: so it has no place, and what follows the call is not seen.
#define MACHINE_NOTED(visible, name)                                                                            \
  MACHINE_FUNCTION(visible, name,                                                                               \
                   "stp x29, x30, [sp, #-48]!\n\tmov x29, sp\n\tstp x0, x1, [sp, #16]\n\tstr x2, [sp, #32]\n\t" \
                   "mov x3, #0\n\tbl note_" #name                                                               \
                   "\n\tldp x0, x1, [sp, #16]\n\tldr x2, [sp, #32]\n\t"                                         \
                   "ldp x29, x30, [sp], #48\n\t" MACHINE_LOAD_REAL(name) "br x16")
#define MACHINE_NOTED_EXPORT(type, name, parameters) MACHINE_NOTED(MACHINE_VISIBLE(name), name)
#define MACHINE_NOTED_HIDDEN(type, name, parameters) MACHINE_NOTED("", name);
