/// Functions of an allocator, called in another process: malloc_trim(3), and the questions that jemalloc and tcmalloc
/// answer. Everything else about a process is read without executing anything in it. So these are for explicit requests
/// (--trim, --call) only.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cmt::watch::explain {

/// The result of malloc_trim(0). Sizes are bytes from smaps_rollup, which the kernel counts in the page tables. The
/// counters of statm and status would cost less, but may lag by 64 pages a thread, or more with many processors.
struct TrimResult {
  std::uint64_t resident_before = 0, resident_after = 0;
  std::uint64_t anonymous_before = 0, anonymous_after = 0;  ///< of these, pages of no file
  std::uint64_t swapped_before = 0, swapped_after = 0;
  std::chrono::nanoseconds kept{};  ///< a thread made the call in place of its own work

  /// By how much the anonymous memory fell; negative: it grew, because the process allocated meanwhile. The resident
  /// memory falls by up to 100 KiB less: unwinding a stack brings pages of libraries into memory.
  std::int64_t given_back() const {
    return static_cast<std::int64_t>(anonymous_before) - static_cast<std::int64_t>(anonymous_after);
  }
};

/// Has a thread of the process call malloc_trim(0) of its glibc, and measures its memory just before and after. The
/// thread is one that holds no lock which malloc needs. If it waits in the kernel, its wait goes on afterwards, and is
/// not shorter. Before the first measurement, half a megabyte of pages of the C library is read into memory.
///
/// Throws std::runtime_error with the reason, and the remedy if there is one:
///
/// - There is no such process, it is stopped, or it may not be traced (Yama, another user).
/// - It has no glibc, or is linked statically.
/// - Its filter of system calls (seccomp) forbids the call.
/// - No thread is safe within 20 s.
/// - The call takes longer than 10 s. The process ends it by itself then.
TrimResult call_malloc_trim(int pid);

/// A number of an allocator about itself, by its own name: "stats.allocated".
struct AllocatorFigure {
  std::string name{};
  std::uint64_t bytes = 0;
  std::string meaning{};
};

/// An allocator's own account of its memory.
struct AllocatorFigures {
  std::string allocator{};                 ///< "jemalloc" or "tcmalloc"
  std::string library{};                   ///< the file that it is in
  std::vector<AllocatorFigure> figures{};  ///< empty: it was built without statistics
  std::uint64_t returnable_bytes = 0;      ///< it keeps them for reuse, and would give them back now,
  std::string returning_call{};            ///< if the program made this call
  std::chrono::nanoseconds kept{};         ///< a thread made the calls in place of its own work
};

/// Asks jemalloc, or tcmalloc of gperftools, for its figures, by one thread in one stop. Returns nullopt if the process
/// has neither as its malloc: then nothing is called. Throws as call_malloc_trim().
std::optional<AllocatorFigures> ask_allocator(int pid);

}  // namespace cmt::watch::explain
