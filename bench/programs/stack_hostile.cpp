// A program whose stacks are hard to follow, for `bench/stack_cost check`, which counts captures that differ from a
// walk by rules alone.
//
// stack_hostile THREADS ROUNDS: each thread walks at random through functions of different frames: plain, with frame
// pointers, alloca, aligned, and with rbp as a common register. At some allocations it does one of these:
//
//   - throws, or jumps by longjmp
//   - goes on in a coroutine
//   - sorts by a callback
//   - loads a module of iconv
//
//   - raises a signal, whose handler allocates on a stack of its own
#include <iconv.h>
#include <pthread.h>
#include <ucontext.h>

#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace {
void allocate();
}
#define VISIT_STACK allocate
#include "tests/preload/units/frame_shapes.h"

namespace {

struct State {
  uint64_t seed = 88172645463325252u;
  jmp_buf home{};
  ucontext_t main{}, other{};
  char* other_stack = nullptr;
  void* blocks[64] = {};
};
thread_local State* state;

uint64_t random_number() {
  uint64_t& seed = state->seed;
  seed ^= seed << 13;
  seed ^= seed >> 7;
  return seed ^= seed << 17;
}

__attribute__((noinline)) void allocate() {
  void*& block = state->blocks[random_number() % 64];
  free(block);
  block = malloc(random_number() % 200);
  KEEP_FRAME;
}

void on_signal(int) { allocate(); }

__attribute__((noinline, optimize("O2"))) int shape_tail(int depth) { return shape_plain(depth); }

__attribute__((noinline)) int shape_throws(int depth) {
  try {
    if (random_number() % 2 == 0) throw std::runtime_error(std::string(40, 'x'));
    allocate();
  } catch (const std::exception&) {
    SITES(depth);
  }
  return depth;
}

__attribute__((noinline)) int shape_sorts(int depth) {
  int numbers[6] = {5, 3, 4, 1, 2, 0};
  qsort(numbers, 6, sizeof(int), [](const void* a, const void* b) {
    allocate();
    return *static_cast<const int*>(a) - *static_cast<const int*>(b);
  });
  return depth + numbers[0];
}

__attribute__((noinline)) int shape_raises(int depth) {
  raise(SIGUSR1);
  allocate();
  return depth;
}

void other_body() {
  for (;;) {
    call_shape(4);
    swapcontext(&state->other, &state->main);
    allocate();
  }
}
// On one coroutine at a time.
thread_local bool is_in_other;
__attribute__((noinline)) int shape_switches(int depth) {
  if (is_in_other) {
    allocate();
    return depth;
  }
  is_in_other = true;
  swapcontext(&state->main, &state->other);
  is_in_other = false;
  allocate();
  return depth;
}

__attribute__((noinline)) int shape_jumps(int depth) {
  if (random_number() % 64 == 0 && !is_in_other) longjmp(state->home, 1);
  allocate();
  return depth;
}

__attribute__((noinline)) int shape_converts(int depth) {
  static const char* const sets[] = {"ISO-8859-7", "KOI8-R", "EUC-JP", "CP1251"};
  if (random_number() % 512 != 0) return depth;
  const iconv_t conversion = iconv_open(sets[random_number() % 4], "UTF-8");
  if (conversion != reinterpret_cast<iconv_t>(-1)) iconv_close(conversion);
  allocate();
  return depth;
}

const Shape shapes[] = {shape_plain,  shape_pointer, shape_alloca, shape_aligned, shape_uses_rbp, shape_tail,
                        shape_throws, shape_plain,   shape_sorts,  shape_raises,  shape_pointer,  shape_switches,
                        shape_plain,  shape_jumps,   shape_plain,  shape_converts};

__attribute__((noinline)) int call_shape(int depth) {
  allocate();
  return depth <= 0 ? 0 : shapes[random_number() % std::size(shapes)](depth) + 1;
}

int rounds;
void* run(void* number) {
  state = new State;
  state->seed += static_cast<uint64_t>(reinterpret_cast<uintptr_t>(number)) * 7919;
  constexpr size_t stack_bytes = 256 << 10;
  state->other_stack = new char[stack_bytes];
  getcontext(&state->other);
  state->other.uc_stack.ss_sp = state->other_stack;
  state->other.uc_stack.ss_size = stack_bytes;
  makecontext(&state->other, other_body, 0);
  std::vector<char> signal_stack(64 << 10);
  stack_t stack{};
  stack.ss_sp = signal_stack.data();
  stack.ss_size = signal_stack.size();
  sigaltstack(&stack, nullptr);
  volatile int left = rounds;
  while (left > 0) {
    left = left - 1;
    if (setjmp(state->home) == 0) call_shape(30);
  }
  stack.ss_flags = SS_DISABLE;
  sigaltstack(&stack, nullptr);
  return nullptr;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const int threads = std::atoi(arguments[1]);
  rounds = std::atoi(arguments[2]);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK | SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
  std::vector<pthread_t> all(static_cast<size_t>(threads));
  for (size_t i = 0; i < all.size(); i++)
    pthread_create(&all[i], nullptr, run, reinterpret_cast<void*>(static_cast<uintptr_t>(i)));
  for (const pthread_t thread : all) pthread_join(thread, nullptr);
}
