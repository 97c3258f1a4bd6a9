// A program that makes each interposed function the first call of a thread, of a forked child, or of a thread that is
// attached to. It prints the one event that each of them has to have, as in a trace, with B for a block. For children
// the number of the process comes first.
//
// first_calls threads | children | attached
//
// attached: starts the threads, prints "ready", and makes the calls after a line of input.
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

extern "C" {
void free_sized(void*, std::size_t) __attribute__((weak));
void free_aligned_sized(void*, std::size_t, std::size_t) __attribute__((weak));
}

namespace {

constexpr std::align_val_t aligned{64};
volatile std::size_t huge = SIZE_MAX / 4;
void* volatile result;

struct Way {
  const char* event;
  void* (*prepare)();
  void (*call)(void* block);
};

void* nothing() { return nullptr; }
template <int size>
void* block_of() {
  return std::malloc(size);
}
template <int size>
void* object_of() {
  return ::operator new(size);
}
template <int size>
void* objects_of() {
  return ::operator new[](size);
}
template <int size>
void* aligned_of() {
  return ::operator new(size, aligned);
}
template <int size>
void* aligned_objects_of() {
  return ::operator new[](size, aligned);
}

const Way ways[] = {
    {"malloc(501) = B", nothing, [](void*) { result = std::malloc(501); }},
    {"calloc(3, 502) = B", nothing, [](void*) { result = std::calloc(3, 502); }},
    {"realloc(0, 503) = B", nothing, [](void*) { result = std::realloc(nullptr, 503); }},
    {"realloc(B, 504) = B", block_of<904>, [](void* block) { result = std::realloc(block, 504); }},
    {"realloc(B, 70005) = B", block_of<905>, [](void* block) { result = std::realloc(block, 70005); }},
    {"realloc(B, 0) = 0", block_of<906>, [](void* block) { result = std::realloc(block, 0); }},
    {"reallocarray(0, 2, 507) = B", nothing, [](void*) { result = reallocarray(nullptr, 2, 507); }},
    {"reallocarray(B, 2, 508) = B", block_of<908>, [](void* block) { result = reallocarray(block, 2, 508); }},
    {"aligned_alloc(64, 576) = B", nothing, [](void*) { result = std::aligned_alloc(64, 576); }},
    {"posix_memalign(128, 509) = B", nothing,
     [](void*) {
       void* block;
       if (posix_memalign(&block, 128, 509)) std::abort();
     }},
    {"memalign(256, 510) = B", nothing, [](void*) { result = memalign(256, 510); }},
    {"valloc(511) = B", nothing, [](void*) { result = valloc(511); }},
    {"pvalloc(512) = B", nothing, [](void*) { result = pvalloc(512); }},
    {"malloc(4611686018427387903) = 0", nothing, [](void*) { result = std::malloc(huge); }},
    {"free(B)", block_of<913>, [](void* block) { std::free(block); }},
    {"free(0)", nothing, [](void* block) { std::free(block); }},
    {"operator new(514) = B", nothing, [](void*) { result = ::operator new(514); }},
    {"operator new(515, nothrow) = B", nothing, [](void*) { result = ::operator new(515, std::nothrow); }},
    {"operator new(516, align=64) = B", nothing, [](void*) { result = ::operator new(516, aligned); }},
    {"operator new(517, align=64, nothrow) = B", nothing,
     [](void*) { result = ::operator new(517, aligned, std::nothrow); }},
    {"operator new[](518) = B", nothing, [](void*) { result = ::operator new[](518); }},
    {"operator new[](519, nothrow) = B", nothing, [](void*) { result = ::operator new[](519, std::nothrow); }},
    {"operator new[](520, align=64) = B", nothing, [](void*) { result = ::operator new[](520, aligned); }},
    {"operator new[](521, align=64, nothrow) = B", nothing,
     [](void*) { result = ::operator new[](521, aligned, std::nothrow); }},
    {"operator delete(B)", object_of<922>, [](void* block) { ::operator delete(block); }},
    {"operator delete(B, 923)", object_of<923>, [](void* block) { ::operator delete (block, std::size_t{923}); }},
    {"operator delete(B)", object_of<924>, [](void* block) { ::operator delete(block, std::nothrow); }},
    {"operator delete(B, align=64)", aligned_of<925>, [](void* block) { ::operator delete(block, aligned); }},
    {"operator delete(B, 926, align=64)", aligned_of<926>,
     [](void* block) { ::operator delete (block, std::size_t{926}, aligned); }},
    {"operator delete(B, align=64)", aligned_of<927>,
     [](void* block) { ::operator delete(block, aligned, std::nothrow); }},
    {"operator delete(0)", nothing, [](void* block) { ::operator delete(block); }},
    {"operator delete[](B)", objects_of<928>, [](void* block) { ::operator delete[](block); }},
    {"operator delete[](B, 929)", objects_of<929>, [](void* block) { ::operator delete[](block, std::size_t{929}); }},
    {"operator delete[](B)", objects_of<930>, [](void* block) { ::operator delete[](block, std::nothrow); }},
    {"operator delete[](B, align=64)", aligned_objects_of<931>,
     [](void* block) { ::operator delete[](block, aligned); }},
    {"operator delete[](B, 932, align=64)", aligned_objects_of<932>,
     [](void* block) { ::operator delete[](block, std::size_t{932}, aligned); }},
    {"operator delete[](B, align=64)", aligned_objects_of<933>,
     [](void* block) { ::operator delete[](block, aligned, std::nothrow); }},
};
constexpr std::size_t ways_count = sizeof ways / sizeof *ways;

// Makes blocks that stay live, at the addresses that the first call freed if the allocator reuses them. A free that is
// recorded twice would end one of them.
void take_addresses() {
  for (int i = 0; i < 8; ++i) result = std::malloc(904 + static_cast<std::size_t>(i) * 4);
}

struct Job {
  const Way* way;
  void* block;
};

void* run(void* job) {
  static_cast<Job*>(job)->way->call(static_cast<Job*>(job)->block);
  return nullptr;
}

void in_threads() {
  for (const Way& way : ways) {
    Job job = {&way, way.prepare()};
    pthread_t thread;
    if (pthread_create(&thread, nullptr, run, &job) || pthread_join(thread, nullptr)) std::abort();
    take_addresses();
    std::puts(way.event);
  }
}

void in_children() {
  for (const Way& way : ways) {
    void* const block = way.prepare();
    const pid_t child = fork();
    if (child == 0) {
      way.call(block);
      _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0) std::abort();
    std::printf("%d %s\n", static_cast<int>(child), way.event);
  }
}

std::array<Job, ways_count> jobs;
pthread_barrier_t steps;

// All threads pass all steps, each acts in its own: so their order in the trace is known.
void* run_in_turn(void* job) {
  for (std::size_t i = 0; i < ways_count; ++i) {
    pthread_barrier_wait(&steps);
    if (job == &jobs[i]) run(job);
  }
  pthread_barrier_wait(&steps);
  return nullptr;
}

void in_attached() {
  std::array<pthread_t, ways_count> threads;
  std::array<pthread_key_t, 40> keys;  // pthread_setspecific of another key allocates
  for (pthread_key_t& key : keys)
    if (pthread_key_create(&key, nullptr)) std::abort();
  pthread_barrier_init(&steps, nullptr, ways_count + 1);
  for (std::size_t i = 0; i < ways_count; ++i) {
    jobs[i] = {&ways[i], ways[i].prepare()};
    if (pthread_create(&threads[i], nullptr, run_in_turn, &jobs[i])) std::abort();
  }
  void* const object = ::operator new(934);
  char line[8];
  if (write(STDOUT_FILENO, "ready\n", 6) != 6 || read(STDIN_FILENO, line, sizeof line) <= 0) std::abort();
  ::operator delete(object);  // the first call of the thread that is attached to
  for (std::size_t i = 0; i < ways_count; ++i) {
    take_addresses();
    pthread_barrier_wait(&steps);
  }
  pthread_barrier_wait(&steps);
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  for (const Way& way : ways) std::puts(way.event);
}

}  // namespace

int main(int count, char** arguments) {
  const char* what = count == 2 ? arguments[1] : "";
  static char buffer[1 << 16];  // else the first line of output allocates
  std::setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
  if (std::strcmp(what, "threads") == 0) return in_threads(), 0;
  if (std::strcmp(what, "children") == 0) return in_children(), 0;
  if (std::strcmp(what, "attached") == 0) return in_attached(), 0;
  return 2;
}
