#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cmtreplay/allocator_memory.h"
#include "cmtreplay/worker_process.h"

namespace cmt::replay {

/// What one timed run took.
struct TimedSample {
  std::uint64_t wall_ns = 0;
  std::uint64_t cpu_ns = 0;  ///< of all threads, the allocator's own among them
  std::uint64_t minor_faults = 0;
  std::uint64_t major_faults = 0;
  std::uint64_t refused_calls = 0;  ///< returned NULL here and not when recorded
};

/// The allocator's memory at a mark, less what it was at the start.
struct MarkSample {
  Mark mark;
  AllocatorMemory memory;
  std::optional<std::uint64_t> working_set_pages;  ///< referenced since the mark before
};

/// The memory run. `peak` is the larger of the largest mark and the high-water mark (VmHWM): the marks are exact and
/// miss what lies between them, the high-water mark misses nothing but is counted in batches by the kernel.
struct MemoryRun {
  std::uint64_t start_bytes = 0;  ///< the allocator's before the first operation
  std::vector<MarkSample> marks = {};
  std::uint64_t peak_at_marks_bytes = 0;
  std::optional<std::uint64_t> peak_by_high_water_bytes = {};

  std::uint64_t peak_bytes() const;
};

/// All that is known of an allocator.
struct Result {
  Allocator allocator;
  std::vector<TimedSample> timed = {};
  std::optional<MemoryRun> memory = {};
  std::optional<Death> death = {};
};

/// What goes on, for people: "jemalloc, run 2 of 5".
using Progress = std::function<void(const std::string&)>;

/// Replays on every allocator: `rounds` timed runs each, in an order that is shuffled from round to round (from a fixed
/// seed, so that a slow minute of the machine does not meet always the same one), then a memory run each. Whatever
/// kills its worker is not run again. On Ctrl-C the results so far come back, and `interrupted` is true.
struct Runs {
  std::vector<Result> results;  ///< in the order of the allocators
  bool interrupted = false;
};
Runs run_all(const Stage& stage, const std::vector<Allocator>& allocators, unsigned rounds, const Progress& progress);

/// Fills `pointers` with what the allocator returns, in order. Its death, if it died. Throws Interrupted.
std::optional<Death> run_keeping_pointers(const Stage& stage, const Allocator& allocator, const SharedMemory& pointers);

}  // namespace cmt::replay
