// live_blocks COUNT: makes so many blocks of 16 to 79 bytes, and two million times ends one of them at random and makes
// another. For `bench/collector_speed`, which measures the collector's memory meanwhile.
#include <stdint.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const size_t live = strtoull(argv[1], NULL, 10);
  void** blocks = malloc(live * sizeof *blocks);
  if (!blocks) return 1;
  uint64_t random = 1;
  for (size_t i = 0; i < live; i++) blocks[i] = malloc(16 + i % 64);
  for (size_t i = 0; i < 2000000; i++) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    void** const place = &blocks[(random >> 33) % live];
    free(*place);
    *place = malloc(16 + i % 64);
  }
  return blocks[live - 1] == NULL;
}
