// The unwinder (preload/program/unwind/unwind.h) with several stacks: each capture is compared with a walk by
// rules alone and with libgcc's (tests/preload/units/stacks.h).
#include <sys/time.h>
#include <ucontext.h>

#include <csetjmp>
#include <csignal>

#include "tests/preload/units/stacks.h"

#define KEEP_FRAME __asm__ volatile("" ::: "memory")  // no tail call

using stacks::check;
using stacks::recurse;
using stacks::sink;

namespace {

void on_signal(int) {
  check();
  sink = recurse(5, 2);
}

__attribute__((noinline)) int raise_often(int depth) {
  raise(SIGUSR1);
  if (depth > 0) sink = raise_often(depth - 1);
  raise(SIGUSR1);
  check();
  return depth;
}

void handle(int flags, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(SIGUSR1, &action, nullptr);
  sigaction(SIGPROF, &action, nullptr);
}

void on_this_stack() {
  handle(0, on_signal);
  for (int i = 0; i < 20; i++) sink = raise_often(i % 6);
}

void on_alternate_stack() {
  static char memory[1 << 18];
  const auto run = [](char* at, size_t bytes) {
    stack_t stack = {};
    stack.ss_sp = at;
    stack.ss_size = bytes;
    sigaltstack(&stack, nullptr);
    handle(SA_ONSTACK, on_signal);
    for (int i = 0; i < 20; i++) sink = raise_often(i % 6);
  };
  run(memory, sizeof memory);
  char local[1 << 17];  // on the thread's own stack
  run(local, sizeof local);
  stack_t none = {};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
}

// Interrupts at any instruction, also within a capture: then the handler's stack is apart.
uint64_t apart;
volatile bool jumps;
__attribute__((noinline)) void capture_in_handler() {
  auto& mine = stacks::reader();
  UnwindStack stack;
  const bool was_busy = mine.thread.busy != 0, is_third = mine.thread.busy_apart != 0;
  unwind_capture(&mine.thread, __builtin_frame_address(0), &stack);
  if (stack.is_apart && !was_busy) std::abort();
  if (was_busy && !stack.is_apart && !jumps) std::abort();  // a jump may have left a capture unfinished
  if (stack.frames < 4 && !is_third) std::abort();
  apart += stack.is_apart;
  if (!stack.is_apart) {
    mine.frames.resize(static_cast<size_t>(stack.kept));
    for (int i = stack.kept; i < stack.frames; i++) mine.frames.push_back(unwind_frame(&mine.thread, &stack, i));
  }
  unwind_release(&mine.thread, __builtin_frame_address(0));
  if (!was_busy && mine.thread.busy) std::abort();
}
volatile bool in_capture;
void on_profile(int) {
  if (in_capture) capture_in_handler();
}

jmp_buf out_of_handler;
void on_profile_jump(int) {
  if (!in_capture) return;
  capture_in_handler();
  if (jumps && stacks::reader().thread.busy) {
    in_capture = false;
    longjmp(out_of_handler, 1);
  }
}

__attribute__((noinline)) int capture_only(int depth) {
  auto& mine = stacks::reader();
  UnwindStack stack;
  in_capture = true;
  unwind_capture(&mine.thread, __builtin_frame_address(0), &stack);
  if (stack.is_apart) std::abort();
  unwind_release(&mine.thread, __builtin_frame_address(0));
  in_capture = false;
  mine.frames.resize(0);  // not followed here: the handler's captures come between
  unwind_forget(&mine.thread);
  const int result = depth > 0 ? capture_only(depth - 1) + 1 : 0;
  KEEP_FRAME;
  return result;
}

void storm(bool with_jumps) {
  handle(SA_NODEFER, with_jumps ? on_profile_jump : on_profile);
  itimerval often = {{0, 200}, {0, 200}};
  setitimer(ITIMER_PROF, &often, nullptr);
  apart = 0;
  jumps = with_jumps;
  for (int i = 0; i < 3000 || (apart < 3 && i < 2000000); i++) {
    if (setjmp(out_of_handler) == 0)
      sink = capture_only(i % 12);
    else
      sink = recurse(40, 3);  // far inside of the frame at which the capture was left
  }
  often = {};
  setitimer(ITIMER_PROF, &often, nullptr);
  unwind_forget(&stacks::reader().thread);
  stacks::reader().frames.clear();
  check();
}
void storm_of_signals() { storm(false); }
void jumps_out_of_captures() { storm(true); }

ucontext_t main_context, coroutine[3];
int turns;
void coroutine_body(int number) {
  while (turns-- > 0) {
    check();
    sink = recurse(turns % 7, 2);
    swapcontext(&coroutine[number], turns % 5 ? &coroutine[(number + 1) % 3] : &main_context);
    check();
  }
  swapcontext(&coroutine[number], &main_context);
}

void coroutines() {
  enum { bytes = 1 << 16, page = 4096 };
  for (int round = 0; round < 5; round++) {
    // Between pages that cannot be read; the memory is used again in the next round, at other borders.
    const size_t all = 3 * (bytes + page) + page;
    char* memory = static_cast<char*>(mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (int i = 0; i < 3; i++) {
      char* stack = memory + page + i * (bytes + page);
      const size_t size = static_cast<size_t>(bytes - round * page);
      mprotect(stack, size, PROT_READ | PROT_WRITE);
      getcontext(&coroutine[i]);
      coroutine[i].uc_stack.ss_sp = stack;
      coroutine[i].uc_stack.ss_size = size;
      coroutine[i].uc_link = &main_context;
      makecontext(&coroutine[i], reinterpret_cast<void (*)()>(coroutine_body), 1, i);
    }
    turns = 60;
    for (int i = 0; turns > 0; i++) {
      swapcontext(&main_context, &coroutine[i % 3]);
      check();
    }
    munmap(memory, all);
  }
}

// A handler that interrupted a capture on another stack has left it by longjmp: later captures are soon not apart.
void leave_capture() {
  UnwindStack stack;
  unwind_capture(&stacks::reader().thread, __builtin_frame_address(0), &stack);
  swapcontext(&coroutine[0], &main_context);
}

__attribute__((noinline)) bool is_apart() {
  auto& mine = stacks::reader();
  UnwindStack stack;
  unwind_capture(&mine.thread, __builtin_frame_address(0), &stack);
  if (!stack.is_apart) unwind_release(&mine.thread, __builtin_frame_address(0));
  return stack.is_apart;
}

void capture_left_elsewhere() {
  static char memory[1 << 16];
  check();
  getcontext(&coroutine[0]);
  coroutine[0].uc_stack.ss_sp = memory;
  coroutine[0].uc_stack.ss_size = sizeof memory;
  makecontext(&coroutine[0], leave_capture, 0);
  swapcontext(&main_context, &coroutine[0]);
  int captures_apart = 0;
  while (is_apart()) {
    if (++captures_apart == 1000) std::abort();
  }
  unwind_forget(&stacks::reader().thread);
  stacks::reader().frames.clear();
  check();
}

void vfork_child() {
  for (int i = 0; i < 20; i++) {
    const pid_t child = vfork();
    if (child == 0) {
      check();
      sink = recurse(3, 1);
      _exit(0);
    }
    check();
    int status;
    waitpid(child, &status, 0);
    if (status) std::abort();
  }
}

void forked_child() {
  check();
  const pid_t child = fork();
  if (child == 0) {
    stacks::begin();
    unwind_forget(&stacks::reader().thread);
    check();
    if (stacks::reader().last.kept) std::abort();
    sink = recurse(9, 2);
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  if (status) std::abort();
}

}  // namespace

int main(int count, char** arguments) {
  return stacks::run({{"on_this_stack", on_this_stack},
                      {"on_alternate_stack", on_alternate_stack},
                      {"storm_of_signals", storm_of_signals},
                      {"jumps_out_of_captures", jumps_out_of_captures},
                      {"coroutines", coroutines},
                      {"capture_left_elsewhere", capture_left_elsewhere},
                      {"vfork_child", vfork_child},
                      {"forked_child", forked_child}},
                     count, arguments);
}
