// sampled WHAT: allocates known bytes, to be compared with the sampler's estimates (checks/sampled.py).
//
//   sizes     10,000 blocks each of 100, 1,000, 10,000 and 100,000 bytes from two threads, of which every fourth lives
//
//   crowd     40,000 blocks of 64 bytes that all live, and as many of 640; half of them are freed again
//
//   fork      blocks before and after a fork, freed by parent and child
//
//   growing   blocks that realloc makes larger and smaller, and one that it refuses
//
//   pausing   blocks of which half are freed while the recording is paused
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/cmttrace.h"

enum { kept_max = 80000 };
static void* kept[kept_max];

static void* allocate_and_free(void* unused) {
  static const size_t sizes[] = {100, 1000, 10000, 100000};
  for (int i = 0; i < 5000; i++) {
    for (int s = 0; s < 4; s++) {
      void* block = malloc(sizes[s]);
      if (i % 4 != 0) free(block);
    }
  }
  return unused;
}

static int sizes(void) {
  pthread_t other;
  pthread_create(&other, NULL, allocate_and_free, NULL);
  allocate_and_free(NULL);
  return pthread_join(other, NULL);
}

static int crowd(void) {
  for (int i = 0; i < kept_max; i++) kept[i] = malloc(i % 2 ? 64 : 640);
  for (int i = 0; i < kept_max / 2; i++) free(kept[i]);
  return 0;
}

static int forks(void) {
  for (int i = 0; i < 2000; i++) kept[i] = malloc(1000);
  const pid_t child = fork();
  const size_t size = child == 0 ? 2000 : 3000;
  for (int i = 0; i < 2000; i++) free(kept[i]);
  for (int i = 0; i < 1000; i++) kept[i] = malloc(size);
  int status = 0;
  if (child != 0) waitpid(child, &status, 0);
  return status;
}

static volatile size_t huge = SIZE_MAX / 2;

static int growing(void) {
  for (int i = 0; i < 1000; i++) {
    kept[i] = realloc(NULL, 5000);
    kept[i] = realloc(kept[i], 50000);
    if (realloc(kept[i], huge) != NULL) return 1;
    kept[i] = realloc(kept[i], 5);
    memset(kept[i], i, 5);
  }
  for (int i = 0; i < 1000; i++) free(kept[i]);
  return 0;
}

static int pausing(void) {
  cmt_mark("pausing");
  for (int i = 0; i < 2000; i++) kept[i] = malloc(3000);
  cmt_pause();
  for (int i = 0; i < 1000; i++) free(kept[i]);
  for (int i = 0; i < 1000; i++) kept[i] = malloc(4000);
  cmt_resume();
  for (int i = 0; i < 1000; i++) kept[i] = malloc(5000);
  return 0;
}

int main(int count, char** words) {
  const char* what = count > 1 ? words[1] : "";
  if (strcmp(what, "sizes") == 0) return sizes();
  if (strcmp(what, "crowd") == 0) return crowd();
  if (strcmp(what, "fork") == 0) return forks();
  if (strcmp(what, "growing") == 0) return growing();
  if (strcmp(what, "pausing") == 0) return pausing();
  return 2;
}
