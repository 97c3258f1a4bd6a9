// Captures the stack and compares it with two other walks in the same call: by rules alone, and libgcc's.
#pragma once

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "preload/program/unwind/unwind.h"

namespace stacks {

inline StackShare* share;
inline UnwindTable* table;

// The state of a reader of a thread's records.
struct Reader {
  UnwindThread thread{};
  std::vector<uint32_t> frames;  // outermost first
  UnwindStack last{};
  uint64_t captures = 0, seen = 0;  // frames
};

inline Reader& reader() {
  static thread_local Reader* mine = new Reader;
  return *mine;
}

inline void begin(int frames_max = 0) {
  const size_t bytes = sizeof(StackShare);
  if (!share)
    share = static_cast<StackShare*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  table = &share->table;
  if (const char* fault = unwind_begin_process(share, frames_max)) {
    std::puts(fault);
    std::exit(77);
  }
}

struct Oracle {
  std::vector<uint64_t> frames;  // innermost first, the function that asks among them
};

inline _Unwind_Reason_Code note(_Unwind_Context* context, void* oracle) {
  int before;
  uint64_t address = _Unwind_GetIPInfo(context, &before);
  if (address) static_cast<Oracle*>(oracle)->frames.push_back(address | (before ? UNWIND_EXACT : 0));
  return _URC_NO_REASON;
}

[[noreturn]] inline void fail(const char* what, const std::vector<uint64_t>& mine,
                              const std::vector<uint64_t>& theirs) {
  std::printf("stacks differ: %s\n", what);
  for (size_t i = 0; i < mine.size() || i < theirs.size(); i++) {
    if (i > 40) break;
    std::printf("%4zu  %16lx  %16lx\n", i, i < mine.size() ? mine[i] : 0, i < theirs.size() ? theirs[i] : 0);
  }
  std::fflush(stdout);
  std::abort();
}

// Keys of a stack, innermost first.
template <typename Index>
std::vector<uint64_t> keys_of(size_t count, Index&& index) {
  std::vector<uint64_t> keys;
  for (size_t i = count; i-- > 0;) keys.push_back(table->rule[index(i)].key);
  return keys;
}

struct Options {
  bool has_oracle = true;   // libgcc's, from end to end
  bool may_be_cut = false;  // ours may end before libgcc's
};

// The frames from the caller of this function's caller on.
__attribute__((noinline)) inline void check_from(const void* frame, Options options) {
  Reader& mine = reader();
  UnwindStack stack;
  unwind_capture(&mine.thread, frame, &stack);
  if (stack.is_apart) std::abort();
  mine.captures++;
  mine.seen += static_cast<uint64_t>(stack.frames);
  if (static_cast<size_t>(stack.kept) > mine.frames.size()) fail("more frames kept than there were", {}, {});
  mine.frames.resize(static_cast<size_t>(stack.kept));
  for (int i = stack.kept; i < stack.frames; i++) mine.frames.push_back(unwind_frame(&mine.thread, &stack, i));
  mine.last = stack;
  auto keys = keys_of(mine.frames.size(), [&](size_t i) { return mine.frames[i]; });

  UnwindStack apart;
  unwind_capture_apart(&mine.thread, frame, &apart);
  const auto by_rules = keys_of(static_cast<size_t>(apart.frames),
                                [&](size_t i) { return unwind_frame(&mine.thread, &apart, static_cast<int32_t>(i)); });
  unwind_release(&mine.thread, frame);
  if (mine.thread.busy != 0) std::abort();
  auto shorter = keys;
  if (apart.frames == unwind_apart_frames_max && shorter.size() > by_rules.size()) shorter.resize(by_rules.size());
  if (shorter != by_rules &&
      !(stack.is_cut && keys.size() <= by_rules.size() && std::equal(keys.begin(), keys.end(), by_rules.begin())))
    fail("last stack and rules", keys, by_rules);

  if (!options.has_oracle) return;
  Oracle oracle;
  _Unwind_Backtrace(note, &oracle);
  auto& theirs = oracle.frames;
  size_t first = 0;
  while (first < theirs.size() && theirs[first] != keys[0]) first++;
  theirs.erase(theirs.begin(), theirs.begin() + static_cast<long>(first));
  if (options.may_be_cut && stack.is_cut && theirs.size() > keys.size()) theirs.resize(keys.size());
  if (keys != theirs) fail("ours and libgcc's", keys, theirs);
}

inline Options options;
__attribute__((noinline)) inline void check() {
  check_from(__builtin_frame_address(0), options);
  __asm__ volatile("" ::: "memory");
}

inline volatile int sink;

// Captures at every `stride`th level, on both ways.
__attribute__((noinline)) inline int recurse(int depth, int stride) {
  if (depth % stride == 0) check();
  if (depth == 0) return 0;
  const int result = recurse(depth - 1, stride) + 1;
  if (depth % stride == 1) check();
  return result;
}

struct Test {
  const char* name;
  void (*run)();
};

// Runs each test in a process of its own, or the one that is named.
inline int run(std::initializer_list<Test> tests, int count, char** arguments) {
  for (const Test& test : tests) {
    if (count > 1 && std::string_view(arguments[1]) != test.name) continue;
    const pid_t child = fork();
    if (child == 0) {
      begin();
      test.run();
      std::exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    if (status) {
      std::printf("%s: status %d\n", test.name, status);
      return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    }
  }
  return 0;
}

}  // namespace stacks
