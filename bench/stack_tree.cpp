// stack_tree DEPTH CALLS ROUNDS: a random tree walk that allocates and frees at a mean depth of DEPTH, for
// `bench/stack_cost tree`. Prints the processor time of a malloc and a free with the walk between them, in ns: the
// least of the rounds.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace {

uint64_t random_state, allocations;
int leaf_depth;
void* volatile blocks[64];

uint64_t random_number() {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  return random_state ^= random_state << 17;
}

// Some functions of different frames, that call each other in turn.
using Visit = uint64_t (*)(uint64_t seed, int depth);
uint64_t visit_small(uint64_t seed, int depth);
uint64_t visit_large(uint64_t seed, int depth);
uint64_t visit_twice(uint64_t seed, int depth);
Visit volatile visits[] = {visit_small, visit_large, visit_twice, visit_small};

__attribute__((noinline)) uint64_t allocate(uint64_t seed) {
  const uint64_t at = allocations++ % 64;
  free(blocks[at]);
  blocks[at] = malloc(32 + seed % 128);
  return seed + 1;
}

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

// Of this thread.
double processor_ns() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  leaf_depth = std::max(1, (std::atoi(arguments[1]) - 5) / 2);
  const uint64_t calls = std::strtoull(arguments[2], nullptr, 10);
  double least = 1e9;
  uint64_t sum = 0;
  for (int round = std::atoi(arguments[3]); round > 0; --round) {
    random_state = 88172645463325252ull;
    allocations = 0;
    const double begin = processor_ns();
    while (allocations < calls) sum += go_on(allocations, 0);
    least = std::min(least, (processor_ns() - begin) / static_cast<double>(allocations));
  }
  std::printf("%.2f\n", least);
  return sum == 42;
}
