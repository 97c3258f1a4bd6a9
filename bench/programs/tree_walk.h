// A random walk of trees, for stack_walk and stack_tree: functions of different frames call each other in turn, to a
// mean depth of `leaf_depth` and a little more. The program that includes this file defines allocate(), which the
// leaves and some nodes call.
#pragma once

#include <cstdint>
#include <ctime>

namespace {

uint64_t allocate(uint64_t seed);

uint64_t random_state;
int leaf_depth;

void restart_walks() { random_state = 88172645463325252ull; }

uint64_t random_number() {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  return random_state ^= random_state << 17;
}

using Visit = uint64_t (*)(uint64_t seed, int depth);
uint64_t visit_small(uint64_t seed, int depth);
uint64_t visit_large(uint64_t seed, int depth);
uint64_t visit_twice(uint64_t seed, int depth);
Visit volatile visits[] = {visit_small, visit_large, visit_twice, visit_small};

__attribute__((noinline)) uint64_t go_on(uint64_t seed, int depth) {
  const uint64_t now = random_number();
  if (depth >= leaf_depth) return allocate(seed) + (now & 1 ? allocate(seed + 1) : 0);
  return visits[now & 3](seed, depth + 1) + 1;
}

__attribute__((noinline)) uint64_t visit_small(uint64_t seed, int depth) { return go_on(seed * 3, depth) ^ seed; }
__attribute__((noinline)) uint64_t visit_large(uint64_t seed, int depth) {
  volatile uint64_t local[40];
  local[seed % 40] = seed;
  const uint64_t first = go_on(seed + 7, depth);
  return first + local[seed % 40];
}
__attribute__((noinline)) uint64_t visit_twice(uint64_t seed, int depth) {
  const uint64_t first = go_on(seed + 1, depth), second = go_on(seed + 2, depth);
  return first + second + allocate(seed);
}

// Returns the processor time of this thread.
double processor_ns() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

}  // namespace
