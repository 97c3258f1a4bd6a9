/* held_mappings COUNT: a process with COUNT resident mappings of two pages, besides its own. Every second one is
 * read-only, so that the kernel does not merge them. Prints its pid and sleeps until a signal. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char** argv) {
  const long count = argc > 1 ? atol(argv[1]) : 2000, page = sysconf(_SC_PAGESIZE);
  for (long i = 0; i < count; ++i) {
    char* const block = mmap(NULL, (size_t)(2 * page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) return perror("mmap"), 1;
    block[0] = block[page] = 1;
    if (i % 2) mprotect(block, (size_t)(2 * page), PROT_READ);
  }
  printf("%d\n", (int)getpid());
  fflush(stdout);
  pause();
}
