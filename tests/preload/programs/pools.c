// pools HOW [LIBRARY]: an allocator of its own, whose blocks it reports as programs do that know heaptrack, or by
// cmttrace.h. Prints whether it has found functions for that.
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/cmttrace.h"

enum { blocks = 10, block_bytes = 64, threads = 4, rounds = 5000, shared_blocks = 6 };

static struct Reporter {
  void (*made)(void* block, size_t size);
  void (*moved)(void* old, size_t size, void* block);
  void (*ended)(void* block);
} report;

static char* memory;  // of the pool: its first block begins where malloc's block does
static unsigned nodes;

static char* block_at(int i) { return memory + i * block_bytes; }

__attribute__((noinline)) static void make_node(int i, size_t size) {
  report.made(block_at(i), size);
  __asm__ volatile("" ::: "memory");  // no jump: this function is in the stack
}

// 10 blocks of 1 to 10 bytes; one becomes 100 bytes elsewhere, one 200 in its place; 9 end.
static void use_pool(void) {
  if (!report.made) return;
  for (int i = 0; i < blocks; i++) make_node(i, (size_t)i + 1);
  report.moved(block_at(8), 100, block_at(blocks));
  report.moved(block_at(9), 200, block_at(9));
  for (int i = 0; i < 8; i++) report.ended(block_at(i));
  report.ended(block_at(9));
  report.ended(NULL);
  report.made(NULL, 5);
  report.moved(block_at(blocks), 1000, NULL);  // refused
}

// As QML does.
__attribute__((weak)) extern void heaptrack_malloc(void* block, size_t size);
__attribute__((weak)) extern void heaptrack_realloc(void* old, size_t size, void* block);
__attribute__((weak)) extern void heaptrack_free(void* block);
static struct Reporter by_weak_references(void) {
  return (struct Reporter){heaptrack_malloc, heaptrack_realloc, heaptrack_free};
}

static struct Reporter by_names_in(void* handle) {
  struct Reporter found = {NULL, NULL, NULL};
  *(void**)&found.made = dlsym(handle, "heaptrack_malloc");
  *(void**)&found.moved = dlsym(handle, "heaptrack_realloc");
  *(void**)&found.ended = dlsym(handle, "heaptrack_free");
  return found;
}

// As Nim does.
static struct Reporter by_library(void) {
  void* const handle = dlopen("libheaptrack_preload.so", RTLD_NOW);
  return handle ? by_names_in(handle) : (struct Reporter){NULL, NULL, NULL};
}

static struct Reporter by_plugin(const char* path) {
  void* const handle = dlopen(path, RTLD_NOW);
  struct Reporter (*find)(void) = NULL;
  if (handle) *(void**)&find = dlsym(handle, "pool_reporter");
  return find ? find() : (struct Reporter){NULL, NULL, NULL};
}

__attribute__((noinline)) static void node_made(void* block, size_t size) { cmt_pool_alloc(nodes, block, size); }
static void node_moved(void* old, size_t size, void* block) { cmt_pool_realloc(nodes, old, size, block); }
static void node_ended(void* block) { cmt_pool_free(nodes, block); }
static struct Reporter by_header(const char* name) {
  nodes = cmt_pool_create(name);
  if (nodes != cmt_pool_create(name)) abort();
  return nodes ? (struct Reporter){node_made, node_moved, node_ended} : (struct Reporter){NULL, NULL, NULL};
}

// Threads take blocks of few addresses from each other.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int free_blocks[shared_blocks], free_count;

static int take(void) {
  pthread_mutex_lock(&lock);
  const int block = free_blocks[--free_count];
  pthread_mutex_unlock(&lock);
  return block;
}
static void give_back(int block) {
  pthread_mutex_lock(&lock);
  free_blocks[free_count++] = block;
  pthread_mutex_unlock(&lock);
}

static void* exchange(void* number) {
  for (int i = 0; i < rounds; i++) {
    const int block = take();
    cmt_pool_alloc(nodes, block_at(block), (size_t)(uintptr_t)number);
    cmt_pool_free(nodes, block_at(block));
    give_back(block);
  }
  return NULL;
}

static void use_threads(void) {
  pthread_t all[threads];
  for (int i = 0; i < shared_blocks; i++) give_back(i);
  for (uintptr_t i = 0; i < threads; i++) pthread_create(&all[i], NULL, exchange, (void*)(i + 1));
  for (int i = 0; i < threads; i++) pthread_join(all[i], NULL);
}

// An end too many, an unknown block, a block at the address of a live one, numbers of no pool, a size beyond 32 bits.
// And 70 pools where there is room for 61.
static void misuse(void) {
  if (!report.made) return;
  make_node(0, 1);
  node_ended(block_at(0));
  node_ended(block_at(0));
  node_ended(block_at(5));
  make_node(1, 3);
  make_node(1, (size_t)5 << 32);
  cmt_pool_alloc(1, block_at(1), 1);
  cmt_pool_alloc(nodes + 1, block_at(1), 1);
  cmt_pool_alloc(1 << 20, block_at(1), 1);
  char name[100];
  for (int i = 1; i < 70; i++) {
    snprintf(name, sizeof name, "pool %d \xc3\xa9%060d", i, 0);
    const unsigned pool = cmt_pool_create(name);
    cmt_pool_alloc(pool, block_at(2), (size_t)i);
    cmt_pool_free(pool, block_at(2));
  }
}

// The child ends a block of its parent's, and has pools of both.
static void use_fork(void) {
  if (!report.made) return;
  make_node(0, 1);
  if (fork() == 0) {
    const unsigned own = cmt_pool_create("own");
    node_ended(block_at(0));
    make_node(1, 2);
    cmt_pool_alloc(own, block_at(1), 3);
    exit(0);
  }
  wait(NULL);
  node_ended(block_at(0));
}

int main(int count, char** words) {
  const char* const how = count > 1 ? words[1] : "";
  memory = malloc((blocks + 1) * block_bytes);
  if (strcmp(how, "weak") == 0)
    report = by_weak_references();
  else if (strcmp(how, "next") == 0)
    report = by_names_in(RTLD_NEXT);
  else if (strcmp(how, "library") == 0)
    report = by_library();
  else if (strcmp(how, "plugin") == 0)
    report = by_plugin(words[2]);
  else
    report = by_header("nodes");
  puts(report.made ? "found" : "none");
  if (strcmp(how, "threads") == 0)
    use_threads();
  else if (strcmp(how, "misuse") == 0)
    misuse();
  else if (strcmp(how, "fork") == 0)
    use_fork();
  else
    use_pool();
  free(memory);
  return 0;
}
