// touched HOW: allocates blocks, and touches the pages that a block's size says (touched_check.py has the same rule).
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { page = 4096, least = 16384, blocks = 120, threads_max = 4, huge = 2 << 20 };

static volatile char sink;

static char* byte_of(char* block, size_t number) {
  const uintptr_t at = ((uintptr_t)block / page + number) * page;
  return at < (uintptr_t)block ? block : (char*)at;
}

// Touches pages of a block by the last digit of its size:
//
//   0       none
//   1       the first half
//   2       all
//   3       every other page
//   4       all are read, none is written
//   5       the last byte
//
//   6       all are read, and every fifth is written
//   others  the first page
static void touch(char* block, size_t size) {
  const size_t pages = ((uintptr_t)block % page + size + page - 1) / page, how = size % 10;
  for (size_t i = 0; i < pages; i++) {
    char* at = byte_of(block, i);
    if (how == 4 || how == 6) sink += *at;
    if ((how == 1 && i < pages / 2) || how == 2 || (how == 3 && i % 2 == 0) || (how == 6 && i % 5 == 0)) *at = 1;
  }
  if (how == 5) block[size - 1] = 1;
  if (how > 6) block[0] = 1;
}

static size_t size_of(unsigned* seed) {
  *seed = *seed * 1103515245u + 12345u;
  const unsigned bits = *seed >> 8;
  return least + bits % (bits % 16 == 0 ? 3000000 : bits % 4 == 0 ? 600000 : 60000);
}

static char* make(unsigned* seed) {
  const size_t size = size_of(seed);
  char* block = *seed >> 16 & 1 ? malloc(size) : calloc(1, size);
  touch(block, size);
  return block;
}

static void use_blocks(unsigned seed) {
  char* held[16] = {0};
  for (int i = 0; i < blocks; i++) {
    const int place = (int)(seed >> 12 & 15);
    if (held[place] && (seed >> 20 & 3) == 0) {
      const size_t size = size_of(&seed);
      held[place] = realloc(held[place], size);
      touch(held[place], size);
    } else {
      free(held[place]);
      held[place] = make(&seed);
    }
  }
  for (int i = 0; i < 16; i += 2) free(held[i]);
}

static void* run_thread(void* number) {
  use_blocks((unsigned)(uintptr_t)number + 77);
  return NULL;
}

// Blocks go from thread to thread: one makes them, the next gives them back.
static char* handed_over[blocks];
static void* make_all(void* number) {
  unsigned seed = (unsigned)(uintptr_t)number;
  for (int i = 0; i < blocks; i++) handed_over[i] = make(&seed);
  return NULL;
}
static void* free_all(void* unused) {
  (void)unused;
  for (int i = 0; i < blocks; i++) free(handed_over[i]);
  return NULL;
}

static void run(void* (*work)(void*), int count) {
  pthread_t threads[threads_max];
  for (int i = 0; i < count; i++) pthread_create(&threads[i], NULL, work, (void*)(uintptr_t)(i + 1));
  for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

static int fork_child(void) {
  use_blocks(5);
  const int child = fork();
  use_blocks(6);
  int status = 0;
  if (child) waitpid(child, &status, 0);
  return status;
}

// Fills a block slowly; between its pieces are blocks of 7 bytes, to which a test compares. Before, if `is_refused`, a
// realloc of the block fails, when it was seen by the collector.
static void fill_slowly(int is_refused) {
  enum { pieces = 8, piece = 1 << 20 };
  char* block = malloc(pieces * piece + 4);  // by its size, all of it
  volatile size_t too_much = PTRDIFF_MAX;
  if (is_refused) usleep(400000);
  if (is_refused && realloc(block, too_much)) abort();
  for (int i = 0; i < pieces; i++) {
    memset(block + i * piece, 1, piece);
    usleep(400000);
    free(malloc(7));
  }
  free(block);
}

// Prints a line of the part of /proc/self/smaps that has a block.
static void print_from_smaps(const char* block, const char* name) {
  FILE* smaps = fopen("/proc/self/smaps", "r");
  char line[512];
  unsigned long begin, end;
  int is_in = 0;
  while (fgets(line, sizeof line, smaps)) {
    if (sscanf(line, "%lx-%lx ", &begin, &end) == 2) is_in = begin <= (uintptr_t)block && (uintptr_t)block < end;
    if (is_in && strncmp(line, name, strlen(name)) == 0) fputs(line, stdout);
  }
  fclose(smaps);
}

static void use_huge(void) {
  char* block = aligned_alloc(huge, 4 * huge);
  madvise(block, 4 * huge, MADV_HUGEPAGE);
  block[huge] = block[3 * huge] = 1;
  usleep(300000);
  print_from_smaps(block, "AnonHugePages:");
  free(block);
}

static atomic_int goes;
static void* end_process(void* unused) {
  while (!goes) continue;
  _exit(0);
  return unused;
}

// A thread without a block ends the process, just when another one has filled some.
static void end_by_other(void) {
  pthread_t thread;
  unsigned seed = 9;
  pthread_create(&thread, NULL, end_process, NULL);
  for (int i = 0; i < 9; i++) make(&seed);
  goes = 1;
  pthread_join(thread, NULL);
}

// Half of a block that lives on.
static void live_on(void) {
  const size_t size = (64 << 20) - 3;
  char* block = malloc(size);
  touch(block, size);
  print_from_smaps(block, "Rss:");
}

// A reservation of which one page is touched. Prints "none" where the system does not give it.
static void reserve(size_t gib) {
  const size_t size = (gib << 30) + 9 - (gib << 30) % 10;  // by its size, the first page
  char* block = malloc(size);
  if (block) touch(block, size);
  puts(block ? "reserved" : "none");
  if (block && gib % 2 == 0) free(block);
}

static char* kept[threads_max * 800];
static int kept_count;

/* Fills 16 MiB in blocks that are kept until all threads have ended. */
static void* build_up(void* unused) {
  for (int i = 0; i < 800; i++) {
    char* block = malloc(20000);
    if (block) memset(block, 1, 20000);
    kept[__atomic_fetch_add(&kept_count, 1, __ATOMIC_RELAXED)] = block;
  }
  return unused;
}

static void hold(int threads) {
  run(build_up, threads);
  for (int i = 0; i < kept_count; i++) free(kept[i]);
}

/* Gives back 16 of 64 pages, in the middle, and touches 4 of them again. With MADV_FREE none are given back. */
static void discard(int advice) {
  char* block = NULL;
  if (posix_memalign((void**)&block, page, 64 * page) != 0) return;
  memset(block, 1, 64 * page);
  if (madvise(block + 8 * page, 16 * page, advice) != 0) perror("madvise");
  memset(block + 8 * page, 1, 4 * page);
  free(block);
  errno = 0;
  if (madvise(block + 1, page, advice) != -1 || errno != EINVAL) puts("not refused");
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  if (strcmp(how, "shapes") == 0) use_blocks(3);
  if (strcmp(how, "threads") == 0) run(run_thread, threads_max);
  if (strcmp(how, "handed") == 0) run(make_all, 1), run(free_all, 1);
  if (strcmp(how, "fork") == 0) return fork_child();
  if (strcmp(how, "slow") == 0) fill_slowly(0);
  if (strcmp(how, "refused") == 0) fill_slowly(1);
  if (strcmp(how, "huge") == 0) use_huge();
  if (strcmp(how, "hold") == 0) hold(argc > 2 ? atoi(argv[2]) : 1);
  if (strcmp(how, "end") == 0) end_by_other();
  if (strcmp(how, "smaps") == 0) live_on();
  if (strcmp(how, "discard") == 0) discard(MADV_DONTNEED);
  if (strcmp(how, "free") == 0) discard(MADV_FREE);
  if (strcmp(how, "reserve") == 0) reserve(argc > 2 ? strtoul(argv[2], NULL, 10) : 1);
  return 0;
}
