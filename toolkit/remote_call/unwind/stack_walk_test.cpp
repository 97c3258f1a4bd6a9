// Stacks are the same as libgcc's; functions and build ids are those of the loader and the files.
#include "toolkit/remote_call/unwind/stack_walk.h"

#include <doctest/doctest.h>
#include <execinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "toolkit/remote_call/modules.h"

using namespace cmt::remote_call;

namespace {

struct Both {
  std::vector<void*> expected;
  WalkedStack walked;
};

/// Where this is called, by both: libgcc's unwinder, and ours from the registers at this place.
__attribute__((noinline)) Both look(const RemoteMemory& memory, const std::vector<Module>& modules) {
  Both both;
  both.expected.resize(200);
  FrameRegisters registers;
  asm volatile(
      "mov %%rbx, 24(%0); mov %%rbp, 48(%0); mov %%rsp, 56(%0); mov %%r12, 96(%0); mov %%r13, 104(%0);"
      "mov %%r14, 112(%0); mov %%r15, 120(%0); lea 0(%%rip), %%rax; mov %%rax, 128(%0)"
      :
      : "r"(&registers)
      : "rax", "memory");
  both.walked = walk_stack(memory, modules, registers);
  both.expected.resize(static_cast<std::size_t>(backtrace(both.expected.data(), 200)));
  return both;
}

int compare_by_look(const void* a, const void* b);

const RemoteMemory* memory_of_test;
const std::vector<Module>* modules_of_test;
Both seen_in_callback;

int compare_by_look(const void*, const void*) {
  seen_in_callback = look(*memory_of_test, *modules_of_test);
  return 0;
}

__attribute__((noinline)) Both recurse(int depth) {
  int two[2] = {depth, 1};
  if (depth == 0) {
    std::qsort(two, 2, sizeof *two, compare_by_look);
    return seen_in_callback;
  }
  Both both = recurse(depth - 1);
  asm volatile("" : : "r"(two) : "memory");
  return both;
}

}  // namespace

TEST_CASE("stack walk: the frames are those that libgcc finds, through libc and to the first") {
  const RemoteMemory memory(getpid());
  const std::vector<Module> modules = find_modules(memory, read_maps(getpid()));
  memory_of_test = &memory;
  modules_of_test = &modules;
  const Both both = recurse(20);
  CHECK(both.walked.unknown_from == 0);
  REQUIRE(both.walked.frames.size() >= both.expected.size());
  for (std::size_t i = 1; i < both.expected.size(); ++i)
    CHECK(both.walked.frames[i].pc == reinterpret_cast<std::uint64_t>(both.expected[i]));
}

TEST_CASE("modules: functions of libc are found where the loader has them, and build ids are those of the files") {
  const RemoteMemory memory(getpid());
  const std::vector<Module> modules = find_modules(memory, read_maps(getpid()));
  const auto libc = std::find_if(modules.begin(), modules.end(),
                                 [](const Module& module) { return module.file_name().starts_with("libc.so"); });
  REQUIRE(libc != modules.end());
  const auto found = find_function(memory, *libc, "qsort");
  REQUIRE(found);
  CHECK(found->address == reinterpret_cast<std::uint64_t>(&std::qsort));
  CHECK_FALSE(find_function(memory, *libc, "no_function_of_this_name"));
  const std::string id = build_id_of(memory, *libc);
  CHECK(id.size() == 40);
  CHECK(id == build_id_of(cmt::process::read_file(libc->name)));
}
