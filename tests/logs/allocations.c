/* allocations: what the samples in this folder were recorded of. Every call of malloc's family once, NULL, refusals,
 * and two threads. The one argument "plain" leaves out what stops valgrind (pvalloc) or what ltrace does not show (the
 * block of posix_memalign). */
#include <malloc.h>
#include <mcheck.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static volatile size_t too_much = (size_t)1 << 60;

static void* worker(void* argument) {
  for (int i = 0; i < 3; i++) {
    char* block = malloc(40 + i);
    block = realloc(block, 400 + i);
    free(block);
  }
  return argument;
}

int main(int argc, char** argv) {
  const int plain = argc > 1 && strcmp(argv[1], "plain") == 0;
  mtrace();
  char *first = malloc(10), *array = calloc(3, 8), *grown = realloc(NULL, 20);
  grown = realloc(grown, 2000);
  void* aligned[4] = {memalign(64, 128), aligned_alloc(32, 96), NULL, NULL};
  if (!plain && posix_memalign(&aligned[2], 256, 100) != 0) return 1;
  void *refused = malloc(too_much), *empty = malloc(0);
  array = reallocarray(array, 5, 16);
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, worker, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  void* ended = realloc(malloc(5), 0);
  if (realloc(first, too_much) != NULL) return 1;
  aligned[3] = valloc(100);
  if (!plain) free(pvalloc(100));
  for (int i = 0; i < 4; i++) free(aligned[i]);
  free(first);
  free(grown);
  free(empty);
  free(refused);
  free(ended);
  return array == NULL;
}
