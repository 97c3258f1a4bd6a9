/* explain_cases CASE [PER_CENT]: builds a heap of glibc's malloc, prints "ready", and waits. PER_CENT scales the case's
 * number of blocks. The cases are those in which the memory of a process is far above its live bytes, and those that
 * are hard to walk. Random numbers have fixed seeds.
 *
 * SIGUSR1 prints mallinfo2 as "arena=N hblks=N hblkhd=N uordblks=N fordblks=N keepcost=N". SIGUSR2 calls malloc_trim(0)
 * and prints "trimmed". A handler may do that here, because all threads wait outside of malloc. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static long per_cent = 100;
static pthread_barrier_t all_done;

static long scaled(long count) { return count * per_cent / 100 > 0 ? count * per_cent / 100 : 1; }

static uint64_t random_of(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

/* A block, all of which is resident. */
static void* touched(size_t bytes) {
  void* const block = malloc(bytes);
  if (!block) abort();
  return memset(block, 1, bytes);
}

static void* array_of(long count) { return touched((size_t)count * sizeof(void*)); }

static void wait_for_ever(void) {
  for (;;) pause();
}

static void run_threads(long count, void* (*work)(void*)) {
  pthread_barrier_init(&all_done, NULL, (unsigned)count + 1);
  for (long i = 1; i <= count; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, (void*)i)) abort();
  }
  pthread_barrier_wait(&all_done);
}

static void* leave(void) {
  pthread_barrier_wait(&all_done);
  wait_for_ever();
  return NULL;
}

/* Small blocks that are all freed again: by the main thread, and in a thread's arena. */
static void free_all(void) {
  const long count = scaled(2000000);
  void** const blocks = array_of(count);
  for (long i = 0; i < count; ++i) blocks[i] = touched(120);
  for (long i = 0; i < count; ++i) free(blocks[i]);
  free(blocks);
}
static void* free_all_in_thread(void* number) {
  (void)number;
  free_all();
  return leave();
}
static void emptied(void) {
  free_all();
  run_threads(1, free_all_in_thread);
}

/* Threads whose buffers grow: large free chunks within the arenas, and arenas that end in a large top. */
static void* grow_buffers(void* number) {
  enum { buffers = 5 };
  uint64_t seed = 88172645463325252u + (uint64_t)(uintptr_t)number;
  void *large[buffers] = {0}, *small[buffers] = {0};
  for (int round = 0; round < 12; ++round) {
    for (int i = 0; i < buffers; ++i) {
      if (large[i] && random_of(&seed) % 3) continue;
      void* const grown = touched((size_t)scaled((1 << 20) + (long)(random_of(&seed) % (8 << 20))));
      free(large[i]);
      large[i] = grown;
      free(small[i]);
      small[i] = touched(200 + random_of(&seed) % 800);
    }
  }
  for (int i = 0; i < buffers - 1 && (uintptr_t)number % 2; ++i) free(large[i]);
  return leave();
}
static void growing(void) { run_threads(14, grow_buffers); }

/* Trees that are freed, and small blocks from between that survive: full fastbins, pinned pages. */
struct node {
  struct node *left, *right;
  char text[40];
};
struct survivors {
  uint64_t seed;
  void** blocks;
  long count;
};
static struct node* make_tree(int depth, struct survivors* kept) {
  if (!depth) return NULL;
  struct node* const node = touched(sizeof *node + random_of(&kept->seed) % 64);
  if (random_of(&kept->seed) % 10 == 0) kept->blocks[kept->count++] = touched(32 + random_of(&kept->seed) % 96);
  node->left = make_tree(depth - 1, kept);
  node->right = make_tree(depth - 1, kept);
  return node;
}
static void free_tree(struct node* node) {
  if (!node) return;
  free_tree(node->left);
  free_tree(node->right);
  free(node);
}
static void* grow_trees(void* number) {
  const int depth = per_cent >= 100 ? 16 : 12;
  struct survivors kept = {88172645463325252u + (uint64_t)(uintptr_t)number, array_of(3l << depth), 0};
  for (int round = 0; round < 3; ++round) free_tree(make_tree(depth, &kept));
  return leave();
}
static void trees(void) { run_threads(3, grow_trees); }

/* One small block after many of 16 KiB that are freed, in each of eight arenas. */
static void* keep_one(void* number) {
  (void)number;
  const long count = scaled(4096);
  void** const blocks = array_of(count);
  for (long i = 0; i < count; ++i) blocks[i] = touched(16384);
  touched(100);
  for (long i = 0; i < count; ++i) free(blocks[i]);
  return leave();
}
static void survivors(void) { run_threads(8, keep_one); }

/* The last block of the heap keeps all the rest from going back to the kernel. */
static void last_block(void) {
  const long count = scaled(1000000);
  void** const blocks = array_of(count);
  for (long i = 0; i < count; ++i) blocks[i] = touched(100);
  for (long i = 0; i + 1 < count; ++i) free(blocks[i]);
}

/* A freed block of 3.6 MB raises the threshold from which blocks have mappings of their own. */
static void raised(void) {
  uint64_t seed = 88172645463325252u;
  free(touched(3600000));
  void* blocks[24] = {0};
  for (int i = 0; i < 400; ++i) {
    void** const block = &blocks[random_of(&seed) % 24];
    free(*block);
    *block = touched((size_t)scaled((1 << 20) + (long)(random_of(&seed) % (2 << 20))));
    if (i % 10 == 0) touched(200);
  }
  for (int i = 0; i < 22; ++i) free(blocks[i]);
}

/* Pairs of large blocks with a small one after them. */
static void pairs(void) {
  void* blocks[3];
  for (int i = 0; i < 3; ++i) blocks[i] = touched(16 << 20);
  for (int i = 0; i < 3; ++i) free(blocks[i]);
  for (long i = 0; i < scaled(200); ++i) {
    void *const first = touched(8 << 20), *const second = touched((8 << 20) - 9999);
    free(first);
    touched(64);
    free(second);
  }
}

static void free_most(void** blocks, long count, long kept_of) {
  for (long i = 0; i < count; ++i) {
    if (i % kept_of) free(blocks[i]);
  }
}

/* Somebody else calls sbrk: holes of unknown contents in the heap. */
static void foreign_sbrk(void) {
  const long count = scaled(100000);
  void** const blocks = array_of(count);
  for (long i = 0; i < count; ++i) {
    blocks[i] = touched(100 + (size_t)i % 900);
    if (i % (count / 5) == count / 10) memset(sbrk(300000), 7, 300000);
  }
  free_most(blocks, count, 7);
}

/* A mapping after the heap: malloc goes on in mappings that have no header. */
static void block_sbrk(void) {
  char* const end = (char*)(((uintptr_t)sbrk(0) + 4095) & ~(uintptr_t)4095);
  if (mmap(end, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED) abort();
}
static void blocked_sbrk(void) {
  const long count = scaled(100000);
  void** const blocks = array_of(count);
  for (long i = 0; i < count; ++i) {
    blocks[i] = touched(100 + (size_t)i % 900);
    if (i == count / 5) block_sbrk();
  }
  free_most(blocks, count, 7);
}

/* The same before the first block: there is no [heap] at all. */
static void no_sbrk(void) {
  block_sbrk();
  const long count = scaled(100000);
  void** const blocks = array_of(count);
  for (long i = 0; i < count; ++i) blocks[i] = touched(100 + (size_t)i % 900);
  free_most(blocks, count, 7);
}

/* Blocks with an alignment, also large ones; large blocks that grow. */
static void aligned(void) {
  const long count = scaled(20000);
  void** const blocks = array_of(count);
  for (long i = 0; i < count; ++i) {
    if (posix_memalign(&blocks[i], 64u << (i % 7), 1000 + (size_t)(i * 7 % 9000))) abort();
    memset(blocks[i], 1, 1000);
    touched(50);
  }
  free_most(blocks, count, 3);
  for (long i = 0; i < scaled(50); ++i) {
    void* block;
    if (posix_memalign(&block, i % 2 ? 2 << 20 : 4096, 300000 + (size_t)i * 4096)) abort();
    memset(block, 1, 300000);
    if (!realloc(touched(200000), 400000)) abort();
  }
}

/* Large blocks with advice to the kernel on some of their pages, which splits their mappings. */
static void advised(void) {
  const size_t huge = 2 << 20;
  for (long i = 0; i < scaled(100); ++i) {
    char* const block = aligned_alloc(huge, 2 * huge);
    if (!block || madvise(block, huge, MADV_DONTDUMP)) abort();
    memset(block, 1, huge);
    touched(50);
  }
}

/* One block of 25 survives, of all sizes. */
static void one_in_25(void) {
  const long count = scaled(600000);
  void** const blocks = array_of(count);
  for (long i = 0; i < count; ++i) blocks[i] = touched(56 + (size_t)i % 300);
  free_most(blocks, count, 25);
}

/* Nearly as many mappings as the kernel allows by default: of two protections in turn. */
static void mappings(void) {
  const size_t pages = (size_t)scaled(60000);
  char* const memory = mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) abort();
  for (size_t i = 0; i < pages; ++i) {
    memory[i * 4096] = 1;
    if (i % 2 && mprotect(memory + i * 4096, 4096, PROT_READ)) abort();
  }
  for (long i = 0; i < scaled(1000); ++i) touched(140000);
}

/* Static data that is zero at first, and is written to. */
static char zeros[24 << 20];
static void static_data(void) {
  memset(zeros, 1, sizeof zeros / 2);
  one_in_25();
}

/* Freed blocks of all sizes in the caches of many threads. */
static void* fill_cache(void* number) {
  (void)number;
  void* blocks[64][7];
  for (int size = 0; size < 64; ++size)
    for (int i = 0; i < 7; ++i) blocks[size][i] = touched(16 * (size_t)size + 8);
  for (int size = 0; size < 64; ++size)
    for (int i = 0; i < 7; ++i) free(blocks[size][i]);
  return leave();
}
static void thread_caches(void) { run_threads(20, fill_cache); }

/* Threads that replace their blocks for ever: each always has the same number, or one less. */
static void* replace_blocks(void* number) {
  uint64_t random = 88172645463325252u + (uint64_t)number;
  const long count = scaled(40000);
  void** const blocks = array_of(count);
  for (long i = 0; i < count; ++i) blocks[i] = touched(100 + random_of(&random) % 500);
  pthread_barrier_wait(&all_done);
  for (;;) {
    void** const block = &blocks[random_of(&random) % (uint64_t)count];
    free(*block);
    *block = touched(100 + random_of(&random) % 500);
  }
  return NULL;
}
static void busy(void) { run_threads(8, replace_blocks); }

/* For the cost of a look: 1 GB of small blocks, or of large ones of which each has a mapping. */
static void small_blocks(void) {
  for (long i = 0; i < scaled(10000000); ++i) touched(100);
}
static void large_blocks(void) {
  for (long i = 0; i < scaled(1000); ++i) touched(1000000);
}

static const struct {
  const char* name;
  void (*build)(void);
} cases[] = {
    {"emptied", emptied},
    {"growing", growing},
    {"trees", trees},
    {"survivors", survivors},
    {"last_block", last_block},
    {"raised", raised},
    {"pairs", pairs},
    {"foreign_sbrk", foreign_sbrk},
    {"blocked_sbrk", blocked_sbrk},
    {"no_sbrk", no_sbrk},
    {"mappings", mappings},
    {"static_data", static_data},
    {"aligned", aligned},
    {"advised", advised},
    {"one_in_25", one_in_25},
    {"thread_caches", thread_caches},
    {"busy", busy},
    {"small_blocks", small_blocks},
    {"large_blocks", large_blocks},
};

static void answer(int number) {
  char text[256];
  int bytes = snprintf(text, sizeof text, "trimmed\n");
  if (number == SIGUSR1) {
    const struct mallinfo2 info = mallinfo2();
    bytes = snprintf(text, sizeof text, "arena=%zu hblks=%zu hblkhd=%zu uordblks=%zu fordblks=%zu keepcost=%zu\n",
                     info.arena, info.hblks, info.hblkhd, info.uordblks, info.fordblks, info.keepcost);
  } else {
    malloc_trim(0);
  }
  if (write(STDOUT_FILENO, text, (size_t)bytes) != bytes) abort();
}

int main(int argc, char** argv) {
  if (argc > 2) per_cent = atol(argv[2]);
  for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof cases[0]; ++i) {
    if (strcmp(argv[1], cases[i].name)) continue;
    cases[i].build();
    signal(SIGUSR1, answer);
    signal(SIGUSR2, answer);
    if (write(STDOUT_FILENO, "ready\n", 6) != 6) abort();
    wait_for_ever();
  }
  fprintf(stderr, "usage: explain_cases CASE [PER_CENT]; CASE is one of:");
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) fprintf(stderr, " %s", cases[i].name);
  fprintf(stderr, "\n");
  return 2;
}
