// spread_malloc: a program with a malloc of its own, in which the linker has put one function far from the others. This
// happens where a linker folds functions of the same content (Chromium's malloc_stats). The code that waits is between
// them. The program prints a line when it begins to wait, and ends with its input.
#include <stddef.h>
#include <unistd.h>

#define SECTION(name) __attribute__((section(name), used, noinline))

// The linker's order: .text.unlikely, .text.startup, .text.hot, .text (in which _start is), .text.*
SECTION(".text.startup") static void lie_before(void) { __asm__(".skip 0x90000"); }
SECTION(".text") static void lie_behind(void) { __asm__(".skip 0x90000"); }

static _Alignas(16) char memory[1 << 20];
static size_t used;

SECTION(".text.unlikely") void* malloc(size_t size) {
  const size_t begin = __atomic_fetch_add(&used, (size + 15) & ~(size_t)15, __ATOMIC_RELAXED);
  return begin + size > sizeof memory ? NULL : memory + begin;
}

SECTION(".text.unlikely") void free(void* block) { (void)block; }

SECTION(".text.unlikely") void* calloc(size_t count, size_t size) { return malloc(count * size); }

SECTION(".text.unlikely") void* realloc(void* block, size_t size) { return block ? NULL : malloc(size); }

SECTION(".text.last") void malloc_stats(void) {}

SECTION(".text.hot") int main(void) {
  char byte = 0;
  __asm__ volatile("" : : "r"(lie_before), "r"(lie_behind));  // no linker drops them
  if (write(1, "waits\n", 6) != 6) return 1;
  return read(0, &byte, 1) != 0;
}
