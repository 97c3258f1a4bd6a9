/// The code in which a thread must not be interrupted by an injected call.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "toolkit/remote_call/modules.h"

namespace cmt::remote_call {

/// The activities in which a thread may not be made to call dlopen or a function of the allocator. It holds locks that
/// the function takes, or has half finished changes that the function builds on.
enum class Zone { none, loader, allocator, tracer, locked_call };

/// Values that the kernel passes to each program at its start (getauxval(3)).
struct EntryPoints {
  std::uint64_t program = 0;  ///< its first instruction
  std::uint64_t loader = 0;   ///< where the dynamic loader is; 0: there is none
  bool operator==(const EntryPoints&) const = default;
};

/// The addresses of code that must not be on the stack of a thread that we make call a function.
///
/// - The dynamic loader: a thread in it holds the loader's lock, which is recursive, and changes lists that dlopen
///   walks.
/// - The allocator, which dlopen calls. In libc it is the part around malloc's exported functions. It begins 32 KiB
///   before the lowest, where malloc.c's static functions are, but after the parts that are before malloc.c. Another
///   library that exports malloc is one as a whole. A program with a malloc of its own has other functions too, and a
///   linker may put some of the exported ones far from the rest. There the zone is 256 KiB on both sides of each.
///
/// - libcmttrace itself.
///
/// - Functions of libc that hold a lock which dlopen takes, or that put the process into a special state: fork,
///   pthread_create, exit...
class Zones {
 public:
  Zones(const RemoteMemory& memory, const std::vector<Module>& modules, const EntryPoints& entries);

  Zone at(std::uint64_t address) const;

  /// A program that defines malloc itself, whose own calls no relocation leads to.
  bool has_malloc_in_program() const { return has_malloc_in_program_; }

 private:
  struct Range {
    std::uint64_t begin, end;
    Zone zone;
  };

  void add_allocator(const RemoteMemory& memory, const Module& module, bool is_program);
  void add_libc_malloc(const RemoteMemory& memory, const Module& module);
  void add_locked_calls(const RemoteMemory& memory, const Module& module);

  std::vector<Range> ranges_;
  bool has_malloc_in_program_ = false;
};

/// Libraries of glibc; each has another name in versions before 2.34.
bool is_libc(const Module& module);

}  // namespace cmt::remote_call
