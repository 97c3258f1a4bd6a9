// A traced program that knows the call stack of each of its allocations: each function notes its own return address.
// Then it reads the records of its rings (stack_records.h) and compares; or writes what it knows to a file, for
// stack_chains_check.py.
//
// stack_chains SCENE [FILE]
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <new>
#include <string_view>

#include "tests/preload/programs/stack_records.h"

namespace {

enum { sizes_first = 100000, allocations_max = 6000, depth_max = 64 };

// The return addresses of a thread's functions, outermost first.
struct Known {
  const void** chain = nullptr;  // a million of them in the first thread
  int depth = 0;
};
thread_local std::array<const void*, 100> chain_of_thread;
const void* chain_of_first[1100000];
thread_local Known known;

// An allocation, which its size names, and the innermost functions, outermost last.
struct Expected {
  std::array<const void*, depth_max> from_inside;
  int depth = 0;
  int failed = -1;  // of a new_handler: the allocation that has called it
};
Expected expected[allocations_max];
const std::size_t too_much = SIZE_MAX / 4;

int failing_now = -1;
void expect(int number) {
  Expected& mine = expected[number];
  mine.failed = failing_now;
  mine.depth = known.depth;
  for (int i = 0; i < known.depth && i < depth_max; ++i)
    mine.from_inside[static_cast<std::size_t>(i)] = known.chain[known.depth - 1 - i];
}

std::atomic<int> allocations;
const void *leaf_of_others, *leaf_of_failures;

struct Function {
  explicit Function(const void* return_address) {
    if (!known.chain) known.chain = chain_of_thread.data();
    known.chain[known.depth++] = return_address;
  }
  ~Function() { --known.depth; }
};
#define FUNCTION const Function function(__builtin_return_address(0))

void* volatile kept;

// Allocates in one of many ways, and releases.
__attribute__((noinline)) void allocate(unsigned way) {
  FUNCTION;
  const int number = allocations++;
  if (number >= allocations_max) return;
  expect(number);
  const std::size_t size = sizes_first + static_cast<std::size_t>(number) * 64;
  void* block = nullptr;
  switch (way % 14) {
    case 0:
    case 1:
    case 2:
    case 3:
      block = std::malloc(size);
      break;
    case 4:
      block = std::calloc(1, size);
      break;
    case 5:
      block = std::realloc(nullptr, size);
      break;
    case 6:
      block = std::realloc(std::malloc(8), size);
      break;
    case 7:
      block = reallocarray(nullptr, 1, size);
      break;
    case 8:
      block = memalign(64, size);
      break;
    case 9:
      if (posix_memalign(&block, 64, size)) std::abort();
      break;
    case 10:
      block = aligned_alloc(64, size);
      break;
    case 11:
      block = valloc(size);
      break;
    case 12:
      kept = ::operator new(size);
      ::operator delete(kept);
      return;
    case 13:
      kept = ::operator new (size, std::align_val_t{64}, std::nothrow);
      ::operator delete (kept, std::align_val_t{64});
      return;
  }
  kept = block;
  std::free(kept);
}

unsigned random_state = 1;
unsigned random_number() { return random_state = random_state * 1103515245 + 12345, random_state >> 16; }

volatile int jumped;  // by siglongjmp, out of a handler

volatile int sink;
__attribute__((noinline)) int walk(int depth);
__attribute__((noinline)) int walk_small(int depth) {
  FUNCTION;
  return walk(depth - 1) + 1;
}
__attribute__((noinline)) int walk_large(int depth) {
  FUNCTION;
  volatile char room[500];
  room[depth] = 1;
  return walk(depth - 1) + room[depth];
}
__attribute__((noinline)) int walk(int depth) {
  FUNCTION;
  if (random_number() % 3 == 0) allocate(random_number());
  if (depth <= 0) return 0;
  int result = random_number() % 2 ? walk_small(depth) : walk_large(depth);
  if (random_number() % 3 == 0) allocate(random_number());
  return result + 1;
}

// For the operator new of a way that fails: allocates in its turn, and lets it try once more, or throws.
int failures, newest_failure;
__attribute__((noinline)) void on_no_memory() {
  const Known before = known;
  const void* chain[10];
  known = {chain, 0};  // operator new, which has called, is not among them
  failing_now = newest_failure;
  allocate(1);
  failing_now = -1;
  known = before;
  if (++failures % 2 == 0) throw std::bad_alloc();
}
__attribute__((noinline)) void fail_to_allocate(unsigned way) {
  FUNCTION;
  const int number = newest_failure = allocations++;
  expect(number);
  const std::size_t size = too_much + static_cast<std::size_t>(number) * 64;
  try {
    if (way % 4 == 0) kept = ::operator new(size);
    if (way % 4 == 1) kept = ::operator new (size, std::align_val_t{64});
    if (way % 4 == 2) kept = ::operator new[](size, std::nothrow);
    if (way % 4 == 3) kept = std::malloc(size);
  } catch (const std::bad_alloc&) {
  }
}

const char* file_of_known;
void write_known() {
  cmt_pause();
  std::FILE* const file = std::fopen(file_of_known, "w");
  if (!file) stacks::fault("cannot write the file");
  std::fprintf(file, "%lx %lx\n", reinterpret_cast<unsigned long>(leaf_of_others),
               reinterpret_cast<unsigned long>(leaf_of_failures));
  for (int number = 0; number < allocations && number < allocations_max; ++number) {
    const Expected& one = expected[number];
    std::fprintf(file, "%zu", sizes_first + static_cast<std::size_t>(number) * 64);
    for (int i = 0; i < one.depth && i < depth_max; ++i)
      std::fprintf(file, " %lx", reinterpret_cast<unsigned long>(one.from_inside[static_cast<std::size_t>(i)]));
    std::fprintf(file, "\n");
  }
  std::fclose(file);
}

using Keys = std::vector<std::uint64_t>;
bool is_in(const void* function, std::uint64_t key) { return key - reinterpret_cast<std::uint64_t>(function) < 2000; }

// Whether the frames from number `at` on, counted from the innermost one, are those of an allocation.
bool has_frames(const Keys& keys, std::size_t at, const Expected& wanted) {
  const std::size_t depth = static_cast<std::size_t>(wanted.depth < depth_max ? wanted.depth : depth_max);
  bool same = keys.size() >= at + depth;
  for (std::size_t i = 0; same && i < depth; ++i)
    same = keys[keys.size() - 1 - at - i] == reinterpret_cast<std::uint64_t>(wanted.from_inside[i]);
  return same;
}

// Whether a new_handler's allocation has the stack of the operator new that has called it. Between them are frames of
// that one.
bool has_failed_frames(const Keys& keys, std::size_t at, const Expected& failed) {
  const std::size_t operator_frames_max = 8, end = std::min(keys.size(), at + operator_frames_max);
  while (at < end && !is_in(leaf_of_failures, keys[keys.size() - 1 - at])) ++at;
  return at < end && has_frames(keys, at + 1, failed);
}

// Compares, and forgets nothing: in a forked child the parent's are left out, because their events are not in its
// rings.
void check(int least) {
  if (file_of_known) return write_known();
  const auto events = stacks::read_all(jumped);
  const int frames_max = static_cast<int>(stacks::find_control()->stack_frames_max);
  int seen = 0, apart = 0;
  for (const auto& event : events) {
    const std::size_t first = event.size < too_much ? std::size_t{sizes_first} : too_much;
    const std::size_t number = (event.size - first) / 64;
    if (event.size < first || (event.size - first) % 64 != 0 || number >= allocations_max) continue;
    const Expected& wanted = expected[number];
    const auto& keys = event.stack.keys;
    ++seen;
    apart += event.stack.is_apart;
    const int depth = wanted.depth < depth_max ? wanted.depth : depth_max;
    const void* const function = first == too_much ? leaf_of_failures : leaf_of_others;
    bool same = !keys.empty() && event.stack.is_cut == (wanted.depth > frames_max) && is_in(function, keys.back());
    same = same && has_frames(keys, 1, wanted);
    if (same && wanted.failed >= 0)
      same = has_failed_frames(keys, 1 + static_cast<std::size_t>(depth), expected[wanted.failed]);
    if (same) continue;
    std::fprintf(stderr, "allocation %zu, kind %u, %s%s, %d events before:\n", number, event.kind,
                 event.stack.is_cut ? "cut " : "", event.stack.is_apart ? "apart" : "", seen);
    for (int i = 0; i <= depth; ++i)
      std::fprintf(stderr, "  %16lx  %16p\n",
                   i < static_cast<int>(keys.size()) ? keys[keys.size() - 1 - static_cast<std::size_t>(i)] : 0,
                   i == 0 ? function : wanted.from_inside[static_cast<std::size_t>(i - 1)]);
    stacks::fault("another stack");
  }
  if (seen < least) stacks::fault("only " + std::to_string(seen) + " allocations");
  std::printf("%d allocations, %d apart\n", seen, apart);
}

void trees() {
  while (allocations < 1200) sink = walk(12);
  check(300);
}

void* thread_body(void*) {
  for (int i = 0; i < 2; i++) sink = walk(12);
  return nullptr;
}
void threads() {
  for (int round = 0; round < 4; round++) {
    std::array<pthread_t, 4> all;
    for (auto& thread : all) pthread_create(&thread, nullptr, thread_body, nullptr);
    for (auto& thread : all) pthread_join(thread, nullptr);
  }
  check(150);
}

void fork_often() {
  for (int i = 0; i < 10; i++) sink = walk(8);
  for (int i = 0; i < 5; i++) {
    const pid_t child = fork();
    if (child == 0) {
      allocations = 0;
      while (allocations < 200) sink = walk(8);
      check(100);
      _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    if (status) stacks::fault("the child has failed");
  }
  for (int i = 0; i < 10; i++) sink = walk(8);
  check(20);
}

// A handler, which may leave by longjmp.
sigjmp_buf out;
volatile bool jumps;
__attribute__((noinline)) void on_signal(int) {
  const Known before = known;
  const void* chain[10];
  known = {chain, 0};  // not called by one of these functions
  allocate(0);
  known = before;
  if (jumps && random_number() % 4 == 0) {
    jumped = jumped + 1;
    siglongjmp(out, 1);
  }
}

void storm(bool with_jumps) {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigaction(SIGPROF, &action, nullptr);
  jumps = with_jumps;
  itimerval often = {{0, 300}, {0, 300}};
  setitimer(ITIMER_PROF, &often, nullptr);
  while (allocations < 1500) {
    const int depth = known.depth;
    if (sigsetjmp(out, 1) == 0) sink = walk(12);
    known.depth = depth;
  }
  often = {};
  setitimer(ITIMER_PROF, &often, nullptr);
  check(1000);
}
void signals() { storm(false); }
void jumping() { storm(true); }

// A recursion of a million calls.
__attribute__((noinline)) int recurse(int depth) {
  FUNCTION;
  const bool is_turn = depth % 250000 < 2;
  if (is_turn) allocate(0);
  const int result = depth > 0 ? recurse(depth - 1) + 1 : 0;
  if (is_turn) allocate(0);
  return result;
}
void recursion() {
  const rlimit limit = {120 << 20, 120 << 20};
  setrlimit(RLIMIT_STACK, &limit);
  sink = recurse(1000000);
  check(18);
}

__attribute__((noinline)) int fail_at(int depth) {
  FUNCTION;
  const int result = depth > 0 ? fail_at(depth - 1) + 1 : 0;
  fail_to_allocate(static_cast<unsigned>(depth));
  return result;
}
void failing() {
  std::set_new_handler(on_no_memory);
  for (int i = 0; i < 10; i++) sink = fail_at(20);
  check(400);
}

// Without a limit, or with one of some frames.
void limited() {
  while (allocations < 800) sink = walk(12);
  const auto events = stacks::read_all();
  const std::size_t most = stacks::find_control()->stack_frames_max;
  std::size_t largest = 0, cut = 0;
  for (const auto& event : events) {
    if (event.stack.keys.size() > most) stacks::fault("a stack beyond the limit");
    if (event.stack.keys.size() > largest) largest = event.stack.keys.size();
    cut += event.stack.is_cut;
  }
  if (largest != most || cut == 0) stacks::fault("the limit is not reached");
}

struct Scene {
  const char* name;
  void (*run)();
};
const Scene scenes[] = {{"trees", trees},   {"threads", threads},     {"forks", fork_often}, {"signals", signals},
                        {"jumps", jumping}, {"recursion", recursion}, {"failing", failing},  {"limited", limited}};

}  // namespace

int main(int count, char** arguments) {
  known.chain = chain_of_first;
  leaf_of_others = reinterpret_cast<const void*>(allocate);
  leaf_of_failures = reinterpret_cast<const void*>(fail_to_allocate);
  for (const Scene& scene : scenes) {
    if (count < 2 || std::string_view(arguments[1]) != scene.name) continue;
    file_of_known = count > 2 ? arguments[2] : nullptr;
    scene.run();
    return 0;
  }
  return 2;
}
