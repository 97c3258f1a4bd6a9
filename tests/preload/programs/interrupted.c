// interrupted EVENT THEN STEP: makes an event (malloc or calloc), which a signal handler interrupts after STEP
// instructions of the tracer. The handler leaves by longjmp (`jump`; and `run`, which then makes more events than a
// ring has slots), or never. Then come two events, of 50,002 and 50,003 bytes, and it prints "+"; or "." if the event
// had fewer instructions.
#include <dlfcn.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/preload/programs/single_step.h"

static uintptr_t code_begin, code_end;
static volatile long steps_left;
static bool jumps, runs;
static sigjmp_buf behind;

static int find_code(struct dl_phdr_info* object, size_t size, void* unused) {
  (void)size, (void)unused;
  if (!strstr(object->dlpi_name, "libcmttrace")) return 0;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr)* part = &object->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
    code_begin = object->dlpi_addr + part->p_vaddr;
    code_end = code_begin + part->p_memsz;
  }
  return 1;
}

static void* volatile blocks[3];

static void later_events(void) {
  blocks[0] = malloc(50002);
  blocks[1] = malloc(50003);
}

static void say(const char* text) {
  if (write(STDOUT_FILENO, text, 2) != 2) abort();
}

static void at_step(int signal, siginfo_t* info, void* context) {
  (void)signal, (void)info;
  greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
  const uintptr_t at = (uintptr_t)registers[REG_RIP];
  if (at < code_begin || at >= code_end || steps_left-- != 0) return;
  registers[REG_EFL] &= ~trap_flag;
  if (jumps) siglongjmp(behind, 1);
  later_events();
  say("+\n");
  for (;;) pause();
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  dl_iterate_phdr(find_code, NULL);
  sigaction(SIGTRAP, &(struct sigaction){.sa_sigaction = at_step, .sa_flags = SA_SIGINFO}, NULL);
  const bool counts = strcmp(argv[1], "calloc") == 0;
  runs = strcmp(argv[2], "run") == 0;
  jumps = runs || strcmp(argv[2], "jump") == 0;
  steps_left = atol(argv[3]);
  free(counts ? calloc(3, 7) : malloc(7));  // symbols are bound
  if (sigsetjmp(behind, 1) == 0) {
    set_trap(trap_flag);
    blocks[2] = counts ? calloc(3, 50001) : malloc(50001);
    set_trap(0);
    say(".\n");
    return 0;
  }
  later_events();
  for (int i = 0; runs && i < 40000; i++) free(malloc(8));
  say("+\n");
  return 0;
}
