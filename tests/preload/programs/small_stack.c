// small_stack: prints how many bytes of a stack a call of malloc takes: in a coroutine, and in a signal handler on a
// stack of its own. The stacks are painted before.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { stack_bytes = 65536, paint = 0x5a };
static char stack[stack_bytes] __attribute__((aligned(64)));
static ucontext_t context_of_main, coroutine;
static void* volatile block;

static long painted_over(void) {
  long i = 0;
  while (i < stack_bytes && stack[i] == paint) i++;
  return stack_bytes - i;
}

static __attribute__((noinline)) void allocate(void) {
  block = malloc(100);
  free(block);
}

static __attribute__((noinline)) void allocate_large(void) {
  block = malloc(1 << 20);
  free(block);
}

static void idle(void) { block = NULL; }
static void busy(void) { allocate(); }
static void busy_large(void) { allocate_large(); }
static void idle_handler(int signal) { block = signal ? NULL : stack; }
static void busy_handler(int signal) {
  if (signal) allocate();
}

static long in_coroutine(void (*work)(void)) {
  getcontext(&coroutine);
  coroutine.uc_stack.ss_sp = stack;
  coroutine.uc_stack.ss_size = stack_bytes;
  coroutine.uc_link = &context_of_main;
  memset(stack, paint, stack_bytes);
  makecontext(&coroutine, work, 0);
  swapcontext(&context_of_main, &coroutine);
  return painted_over();
}

static long in_handler(void (*work)(int)) {
  stack_t alternate = {.ss_sp = stack, .ss_size = stack_bytes};
  struct sigaction action = {.sa_handler = work, .sa_flags = SA_ONSTACK};
  sigaltstack(&alternate, NULL);
  sigaction(SIGUSR1, &action, NULL);
  memset(stack, paint, stack_bytes);
  raise(SIGUSR1);
  return painted_over();
}

int main(void) {
  free(malloc(10));
  for (int i = 0; i < 2; i++) {
    const long nothing = in_coroutine(idle);
    printf("coroutine %ld\n", in_coroutine(busy) - nothing);
    printf("large %ld\n", in_coroutine(busy_large) - nothing);
  }
  for (int i = 0; i < 2; i++) {
    const long nothing = in_handler(idle_handler);
    printf("handler %ld\n", in_handler(busy_handler) - nothing);
  }
  return 0;
}
