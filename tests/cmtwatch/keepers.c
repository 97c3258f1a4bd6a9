/* keepers: fills its heap, and frees all but a block in 40 of one function and a block in 200 of another. A large block
 * with a mapping of its own raises malloc's threshold for mappings. Then it prints its number and waits. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { blocks = 40000, large_bytes = 3000000 };
static __thread void* held[blocks];

static void* xmalloc(size_t bytes) {
  void* block = malloc(bytes);
  if (!block) exit(1);
  memset(block, 1, bytes);
  return block;
}

__attribute__((noinline)) static void* load_row(void) { return xmalloc(100); }
__attribute__((noinline)) static void* open_session(void) { return xmalloc(300); }
__attribute__((noinline)) static void* make_text(void) { return xmalloc(200); }
__attribute__((noinline)) static void* read_file(void) { return xmalloc(large_bytes); }

int main(void) {
  free(read_file());
  for (int i = 0; i < blocks; ++i) held[i] = i % 40 == 7 ? load_row() : i % 200 == 9 ? open_session() : make_text();
  for (int i = 0; i < blocks; ++i) {
    if (i % 40 != 7 && i % 200 != 9) free(held[i]);
  }
  printf("%d\n", getpid());
  fflush(stdout);
  for (;;) pause();
}
