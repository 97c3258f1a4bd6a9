// stack_tree DEPTH CALLS ROUNDS: a random tree walk that allocates and frees at a mean depth of DEPTH, for
// `bench/stack_cost tree`. Prints the processor time of a malloc and a free with the walk between them, in ns: the
// least of the rounds.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "bench/programs/tree_walk.h"

namespace {

uint64_t allocations;
void* volatile blocks[64];

__attribute__((noinline)) uint64_t allocate(uint64_t seed) {
  const uint64_t at = allocations++ % 64;
  free(blocks[at]);
  blocks[at] = malloc(32 + seed % 128);
  return seed + 1;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  leaf_depth = std::max(1, (std::atoi(arguments[1]) - 5) / 2);
  const uint64_t calls = std::strtoull(arguments[2], nullptr, 10);
  double least = 1e9;
  uint64_t sum = 0;
  for (int round = std::atoi(arguments[3]); round > 0; --round) {
    restart_walks();
    allocations = 0;
    const double begin = processor_ns();
    while (allocations < calls) sum += go_on(allocations, 0);
    least = std::min(least, (processor_ns() - begin) / static_cast<double>(allocations));
  }
  std::printf("%.2f\n", least);
  return sum == 42;
}
