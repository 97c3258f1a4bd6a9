// own_malloc: a program with a malloc of its own, which hides the tracer's. It forks; the child starts a thread, whose
// name is the first event there.
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static _Alignas(16) char memory[1 << 24];
static atomic_size_t used;

void* malloc(size_t size) {
  size_t begin = atomic_fetch_add(&used, ((size + 15) & ~(size_t)15) + 16) + 16;
  if (begin + size > sizeof memory) return NULL;
  memcpy(memory + begin - 16, &size, sizeof size);
  return memory + begin;
}

void free(void* block) { (void)block; }

void* calloc(size_t count, size_t size) { return malloc(count * size); }

void* realloc(void* block, size_t size) {
  size_t old = 0;
  if (block) memcpy(&old, (char*)block - 16, sizeof old);
  void* moved = malloc(size);
  return moved && old ? memcpy(moved, block, old < size ? old : size) : moved;
}

static void* thread(void* unused) {
  pthread_setname_np(pthread_self(), "in a child");
  return unused;
}

int main(void) {
  int status = 1;
  pthread_t child_thread;
  pid_t child = fork();
  if (child != 0) return waitpid(child, &status, 0) != child || status != 0;
  if (pthread_create(&child_thread, NULL, thread, NULL) != 0) return 1;
  return pthread_join(child_thread, NULL);
}
