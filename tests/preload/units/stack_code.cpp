// The unwinder (preload/program/unwind/unwind.h) where code is not described, or wrongly: each capture is compared with
// a walk by rules alone and with libgcc's (tests/preload/units/stacks.h).
#include <cstring>

#include "tests/preload/units/stacks.h"

// They call `function`.
extern "C" {
void asm_without_rules(void (*function)());
void asm_embedded(void (*function)());
void asm_embedded_frameless(void (*function)());
void asm_with_wrong_rules(void (*function)(), int which);
}
__asm__(R"(
  .text
  .type asm_without_rules, @function
asm_without_rules:
  sub $24, %rsp
  call *%rdi
  add $24, %rsp
  ret
  .size asm_without_rules, . - asm_without_rules

  .skip 70000, 0xcc        # a large part without rules, as code of a JIT compiler that was put into a program
  .type asm_embedded, @function
asm_embedded:
  push %rbp
  mov %rsp, %rbp
  sub $32, %rsp
  call *%rdi
  leave
  ret
  .size asm_embedded, . - asm_embedded
  .type asm_embedded_frameless, @function
asm_embedded_frameless:
  push %rbp
  xor %ebp, %ebp
  call *%rdi
  pop %rbp
  ret
  .size asm_embedded_frameless, . - asm_embedded_frameless

  .macro wrong name
  .type \name, @function
\name:
  .cfi_startproc
  sub $24, %rsp
  .endm
  .macro wrong_end name
  call *%rdi
  add $24, %rsp
  ret
  .cfi_endproc
  .size \name, . - \name
  .endm

  wrong wrong_far          # beyond the end of any stack
  .cfi_def_cfa_offset 0x20000000
  wrong_end wrong_far
  wrong wrong_near         # a word that is no return address
  .cfi_def_cfa_offset 24
  wrong_end wrong_near
  wrong wrong_odd
  .cfi_def_cfa_offset 27
  wrong_end wrong_odd
  wrong wrong_rbp          # rbp is a pointer to nowhere
  .cfi_def_cfa rbp, 16
  wrong_end wrong_rbp
  wrong wrong_expression   # CFA = *(rsp + 2^30)
  .cfi_escape 0x0f, 0x07, 0x77, 0x80, 0x80, 0x80, 0x80, 0x04, 0x06
  wrong_end wrong_expression
  wrong wrong_self         # the same frame for ever
  .cfi_def_cfa_offset 8
  .cfi_escape 0x16, 0x10, 0x02, 0x80, 0x00
  wrong_end wrong_self
  wrong wrong_saved        # rbp saved far away
  .cfi_def_cfa_offset 32
  .cfi_offset rbp, -0x100000
  wrong_end wrong_saved

  .type asm_with_wrong_rules, @function
asm_with_wrong_rules:
  .cfi_startproc
  push %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset rbp, -16
  mov $0x7000000000001238, %rbp
  lea wrong_table(%rip), %rax
  movslq %esi, %rsi
  movslq (%rax, %rsi, 4), %rsi
  add %rsi, %rax
  call *%rax
  pop %rbp
  .cfi_def_cfa_offset 8
  ret
  .cfi_endproc
  .size asm_with_wrong_rules, . - asm_with_wrong_rules
  .section .rodata
wrong_table:
  .long wrong_far - wrong_table, wrong_near - wrong_table, wrong_odd - wrong_table, wrong_rbp - wrong_table
  .long wrong_expression - wrong_table, wrong_self - wrong_table, wrong_saved - wrong_table
  .text
)");

using stacks::check;
using stacks::recurse;
using stacks::sink;

namespace {

void must_be_cut() {
  check();
  if (!stacks::reader().last.is_cut) std::abort();
  sink = recurse(4, 1);
}

void no_rules() {
  for (int i = 0; i < 3; i++) {
    asm_without_rules(must_be_cut);
    check();
    if (stacks::reader().last.is_cut) std::abort();
  }
}

// They are followed by their frame pointers, where those are sound.
void embedded() {
  static int seen;
  struct Made {
    static void whole() {
      stacks::options.has_oracle = false;  // it ends at code without rules
      check();
      sink = recurse(3, 1);
      if (stacks::reader().last.is_cut) std::abort();
      ++seen;
      stacks::options.has_oracle = true;
    }
    static void cut() {
      stacks::options.has_oracle = false;
      must_be_cut();
      stacks::options.has_oracle = true;
    }
  };
  for (int i = 0; i < 3; i++) {
    asm_embedded(Made::whole);
    check();
    asm_embedded_frameless(Made::cut);
    check();
    if (stacks::reader().last.is_cut) std::abort();
  }
  if (seen != 3) std::abort();
}

void wrong_rules() {
  stacks::options.has_oracle = false;  // libgcc may crash
  for (int round = 0; round < 3; round++) {
    for (int which = 0; which < 7; which++) {
      asm_with_wrong_rules(must_be_cut, which);
      check();
      if (stacks::reader().last.is_cut) std::abort();
    }
  }
}

// Code without a module, as a JIT compiler makes: with frame pointers, and without. The trampoline of `python -X perf`
// has none, but its last two instructions give the place of the return address. Copies are at both ends
// of a page without neighbours.
void jit() {
  static const unsigned char framed[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, 0xff, 0xd7, 0xc9, 0xc3};
  static const unsigned char frameless[] = {0x48, 0x83, 0xec, 0x28, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x28, 0xc3};
  static const unsigned char trampoline[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x08, 0xc3};
  auto* memory =
      static_cast<unsigned char*>(mmap(nullptr, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) + 4096;
  if (mprotect(memory, 4096, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) std::abort();
  std::memcpy(memory, trampoline, sizeof trampoline);
  std::memcpy(memory + 32, framed, sizeof framed);
  std::memcpy(memory + 64, frameless, sizeof frameless);
  unsigned char* last = memory + 4096 - sizeof trampoline;
  std::memcpy(last, trampoline, sizeof trampoline);
  stacks::options.may_be_cut = true;
  using Code = void (*)(void (*)());
  struct Made {
    static void whole() {
      stacks::options.has_oracle = false;  // it ends at code without rules
      check();
      sink = recurse(3, 1);
      if (stacks::reader().last.is_cut) std::abort();
      stacks::options.has_oracle = true;
    }
    static void any() {
      stacks::options.has_oracle = false;
      check();
      stacks::options.has_oracle = true;
    }
  };
  for (int i = 0; i < 3; i++) {
    for (unsigned char* code : {memory, memory + 32, last}) {
      reinterpret_cast<Code>(code)(Made::whole);
      check();
    }
    reinterpret_cast<Code>(memory + 64)(Made::any);
    check();
  }
}

}  // namespace

int main(int count, char** arguments) {
  return stacks::run({{"no_rules", no_rules}, {"embedded", embedded}, {"wrong_rules", wrong_rules}, {"jit", jit}},
                     count, arguments);
}
