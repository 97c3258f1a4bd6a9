// The cost of capturing call stacks, in a program that walks trees: built by bench/stack_cost.
//
// stack_walk DEPTH CALLS ROUNDS: a random tree walk, the mean depth of whose captures is DEPTH. Prints for each way to
// capture a stack: its name, ns a capture, mean number of frames, and how many of them were walked by rules.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unwind.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "bench/programs/tree_walk.h"
#include "preload/program/unwind/unwind.h"

namespace {

UnwindThread thread;
int (*unw_backtrace)(void**, int);  // NULL: libunwind is not installed
uint64_t frames_seen, captures;
enum class Way { none, ours, ours_apart, libunwind, libgcc } way;

_Unwind_Reason_Code count_frame(_Unwind_Context* context, void* count) {
  if (_Unwind_GetIP(context)) ++*static_cast<int*>(count);
  return _URC_NO_REASON;
}

__attribute__((noinline)) void capture() {
  ++captures;
  UnwindStack stack;
  void* buffer[256];
  int count = 0;
  switch (way) {
    case Way::none:
      break;
    case Way::ours:
      unwind_capture(&thread, __builtin_frame_address(0), &stack);
      unwind_release(&thread, __builtin_frame_address(0));
      count = stack.frames;
      break;
    case Way::ours_apart:
      unwind_capture_apart(&thread, __builtin_frame_address(0), &stack);
      unwind_release(&thread, __builtin_frame_address(0));
      count = stack.frames;
      break;
    case Way::libunwind:
      count = unw_backtrace ? unw_backtrace(buffer, 256) : 0;
      break;
    case Way::libgcc:
      _Unwind_Backtrace(count_frame, &count);
      break;
  }
  frames_seen += static_cast<uint64_t>(count);
  __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) uint64_t allocate(uint64_t seed) {
  capture();
  return seed + 1;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  leaf_depth = std::max(1, (std::atoi(arguments[1]) - 5) / 2);
  const uint64_t calls = std::strtoull(arguments[2], nullptr, 10);
  void* share = mmap(nullptr, sizeof(StackShare), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (const char* fault = unwind_begin_process(static_cast<StackShare*>(share), 0)) return std::puts(fault), 1;
  if (void* libunwind = dlopen("libunwind.so.8", RTLD_NOW))
    unw_backtrace = reinterpret_cast<int (*)(void**, int)>(dlsym(libunwind, "unw_backtrace"));
  struct {
    const char* name;
    Way way;
    double best, frames;
  } ways[] = {{"none", Way::none, 1e9, 0},
              {"cmt", Way::ours, 1e9, 0},
              {"cmt by rules", Way::ours_apart, 1e9, 0},
              {"libunwind", Way::libunwind, 1e9, 0},
              {"libgcc", Way::libgcc, 1e9, 0}};
  const int rounds = std::atoi(arguments[3]);
  for (int round = 0; round < rounds; ++round) {
    for (auto& each : ways) {
      way = each.way;
      restart_walks();
      captures = frames_seen = 0;
      uint64_t sum = 0;
      const double begin = processor_ns();
      while (captures < calls / (way == Way::libgcc ? 20 : 1)) sum += go_on(captures, 0);
      const double took = processor_ns() - begin;
      each.best = std::min(each.best, took / static_cast<double>(captures));
      each.frames = static_cast<double>(frames_seen) / static_cast<double>(captures);
      if (sum == 42) return 1;
    }
  }
  for (const auto& each : ways) {
    std::printf("%-14s %8.1f ns  %5.1f frames", each.name, each.best - ways[0].best, each.frames);
    if (each.way == Way::ours)
      std::printf("  walked %.2f",
                  static_cast<double>(thread.stepped) / static_cast<double>(calls * static_cast<uint64_t>(rounds)));
    std::puts("");
  }
}
