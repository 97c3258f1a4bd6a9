// The unwinder (preload/program/unwind/unwind.h) with frames of all shapes: each capture is compared with a walk by
// rules alone and with libgcc's (tests/preload/units/stacks.h).
#include <pthread.h>

#include <csetjmp>
#include <stdexcept>
#include <thread>

#include "tests/preload/units/stacks.h"

#define VISIT_STACK stacks::check
#include "tests/preload/units/frame_shapes.h"

using stacks::check;
using stacks::recurse;
using stacks::sink;

namespace {

__attribute__((noinline)) int with_alloca(int depth) {
  char* block = static_cast<char*>(alloca(static_cast<size_t>(depth * 40 + 16)));
  block[0] = static_cast<char>(depth);
  sink = block[0];
  check();
  if (depth > 0) sink = with_alloca(depth - 1) + recurse(depth % 3, 2);
  check();
  return block[0];
}

__attribute__((noinline)) int with_vla(int count) {
  volatile int block[count];
  block[count - 1] = count;
  check();
  if (count > 1) sink = with_vla(count - 1);
  check();
  return block[count - 1];
}

__attribute__((noinline)) int with_alignment(int depth) {
  alignas(64) volatile char block[64];
  block[0] = static_cast<char>(depth);
  if (reinterpret_cast<uintptr_t>(block) % 64) std::abort();
  check();
  if (depth > 0) sink = depth % 2 ? with_alignment(depth - 1) : with_alloca(depth - 1);
  check();
  return block[0];
}

__attribute__((noinline, optimize("omit-frame-pointer"))) int thrower(int depth) {
  check();
  if (depth == 0) throw std::runtime_error("end");
  const int result = thrower(depth - 1) + 1;
  KEEP_FRAME;
  return result;
}

__attribute__((noinline)) int catcher(int rounds) {
  for (int i = 0; i < rounds; i++) {
    try {
      sink = thrower(i % 9);
    } catch (const std::exception&) {
      check();
      try {
        sink = i % 2 ? catcher(i / 2) : 0;
        throw;
      } catch (const std::runtime_error&) {
        check();
      }
    }
  }
  return rounds;
}

thread_local jmp_buf target;
void jumper(int depth);
void (*volatile jumpers[])(int) = {jumper, jumper};
__attribute__((noinline)) void jumper(int depth) {
  check();
  if (depth == 0) longjmp(target, 1);
  jumpers[depth % 2](depth - 1);
  KEEP_FRAME;
}
__attribute__((noinline)) void jump_home(int count) {
  volatile int rounds = 0;
  while (rounds < count) {
    rounds = rounds + 1;
    if (setjmp(target) == 0) jumper(rounds % 7);
    check();
  }
}

__attribute__((noinline, optimize("optimize-sibling-calls"))) int tail_end(int number) {
  check();
  KEEP_FRAME;
  return number;
}
__attribute__((noinline, optimize("O2"))) int tail_caller(int number) { return tail_end(number + 1); }
__attribute__((noinline, optimize("O2"))) int tail_chain(int number) {
  if (number % 2) check();
  return tail_caller(number * 2);
}

__attribute__((noinline)) void all_shapes(int rounds) {
  for (int i = 0; i < rounds; i++) {
    sink = recurse(i % 20, 3);
    sink = with_alloca(i % 5);
    sink = with_vla(i % 6 + 1);
    sink = with_alignment(i % 5);
    sink = catcher(i % 6);
    jump_home(i % 8);
    sink = tail_chain(i);
  }
}

// --- random walks over functions of different shapes, each with several calls of others

uint64_t seed = 88172645463325252u;
uint64_t random_number() {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  return seed ^= seed << 17;
}

__attribute__((noinline, optimize("no-omit-frame-pointer"))) int shape_pointer_large(int depth) {
  volatile char block[72];
  block[depth & 31] = 1;
  sink = block[depth & 31];
  SITES(depth);
}
// Frames of different sizes, whose sums are often equal: then old return addresses, which are right no more, lie where
// the last stack had them.
__attribute__((noinline)) int shape_varying(int depth) {
  volatile char* block = static_cast<volatile char*>(alloca(16 + random_number() % 3 * 16));
  block[0] = 1;
  if (depth == 0) {
    check();
    return 0;
  }
  const int sum = random_number() % 2 ? shape_varying(depth - 1) + 1 : shape_varying(depth - 1) * 2;
  KEEP_FRAME;
  return sum;
}

const Shape shapes_of[] = {shape_plain,  shape_pointer, shape_pointer_large,
                           shape_alloca, shape_aligned, shape_uses_rbp};

__attribute__((noinline)) int call_shape(int depth) {
  if (depth <= 0) {
    check();
    return 0;
  }
  return shapes_of[random_number() % 6](depth) + 1;
}

void random_walks() {
  for (int i = 0; i < 6000; i++) {
    sink = call_shape(12);
    sink = shape_varying(8);
    if (i % 3 == 0) sink = shape_pointer(9);
    if (i % 5 == 0) sink = shape_alloca(9) + shape_plain(5);
  }
}

void shapes() {
  all_shapes(40);
  const auto& mine = stacks::reader();
  if (2 * mine.thread.stepped > mine.seen) std::abort();  // or the last stack is of no use
}

void frame_pointers_outside() {
  volatile int count = 3;
  volatile int block[count];
  block[0] = 1;
  sink = block[0];
  for (int i = 0; i < 3; i++) all_shapes(5);
}

void in_threads() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; i++) threads.emplace_back([] { all_shapes(25); });
  for (auto& each : threads) each.join();
}

void deep() {
  stacks::options.has_oracle = false;
  auto& mine = stacks::reader();
  struct Deep {
    __attribute__((noinline)) static int go(int depth) {
      auto& last = stacks::reader();
      if (depth % 4096 == 0 || (depth < 20000 && depth % 64 == 0)) {
        check();
        const bool is_large = last.frames.size() >= unwind_limit_max / 2;
        if (!is_large && last.last.is_cut) std::abort();
        if (last.frames.size() > unwind_limit_max) std::abort();
      }
      if (depth == 0) return 0;
      const int result = go(depth - 1) + 1;
      if (depth % 4096 == 0 || (depth < 20000 && depth % 64 == 0)) check();
      KEEP_FRAME;
      return result;
    }
  };
  std::thread([] {
    stacks::options.has_oracle = false;
    sink = Deep::go(3000);
  }).join();
  // 10^6 frames need a larger stack than a thread has by default.
  pthread_attr_t large;
  pthread_attr_init(&large);
  pthread_attr_setstacksize(&large, size_t{256} << 20);
  pthread_t id;
  pthread_create(
      &id, &large,
      [](void*) -> void* {
        check();
        const auto whole = stacks::reader().frames.size();
        sink = Deep::go(1000000);
        check();
        if (stacks::reader().last.is_cut || stacks::reader().frames.size() != whole) std::abort();
        return nullptr;
      },
      nullptr);
  pthread_join(id, nullptr);
  if (mine.captures) std::abort();
}

// Stacks beyond the limit that grow and shrink by a frame are not walked anew each time.
void deep_by_steps() {
  constexpr int depth = 9000;
  struct Deep {
    __attribute__((noinline)) static int go(int left) {
      check();
      const int gone = depth - left, frames = static_cast<int>(stacks::reader().frames.size());
      if (frames > unwind_limit_max || (gone > unwind_limit_max && frames < unwind_limit_max * 3 / 4)) std::abort();
      if (left == 0) return 0;
      const int result = go(left - 1) + 1;
      check();
      KEEP_FRAME;
      return result;
    }
  };
  std::thread([] {
    stacks::options.has_oracle = false;
    sink = Deep::go(depth);
    if (stacks::reader().thread.stepped > uint64_t{8} * depth) std::abort();
  }).join();
}

void limited() {
  stacks::begin(12);
  stacks::options.may_be_cut = true;
  struct Limited {
    __attribute__((noinline)) static int go(int depth) {
      check();
      if (depth > 9 && (stacks::reader().frames.size() != 12 || !stacks::reader().last.is_cut)) std::abort();
      const int result = depth < 30 ? go(depth + 1) + 1 : 0;
      check();
      return result;
    }
  };
  sink = Limited::go(0);
  sink = Limited::go(0);
  check();
  if (stacks::reader().last.is_cut) std::abort();
}

}  // namespace

int main(int count, char** arguments) {
  return stacks::run({{"shapes", shapes},
                      {"random_walks", random_walks},
                      {"frame_pointers_outside", frame_pointers_outside},
                      {"in_threads", in_threads},
                      {"deep", deep},
                      {"deep_by_steps", deep_by_steps},
                      {"limited", limited}},
                     count, arguments);
}
