#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cmtreplay/run/allocator_memory.h"
#include "cmtreplay/run/latency_summary.h"
#include "cmtreplay/run/timeline.h"
#include "cmtreplay/run/worker_process.h"
#include "toolkit/process/counters.h"

namespace cmt::replay {

/// What one timed run took.
struct TimedSample {
  std::uint64_t wall_ns = 0;
  std::uint64_t cpu_ns = 0;  ///< of all threads, the allocator's own among them
  std::uint64_t minor_faults = 0;
  std::uint64_t major_faults = 0;
  std::uint64_t refused_calls = 0;  ///< returned NULL here and not when recorded
  std::uint64_t starved_ns = 0;     ///< without operations, of all threads: the decoder was slower
  std::uint64_t block_waits = 0;    ///< calls that came before their block was made, and how long they waited
  std::uint64_t block_wait_ns = 0;
  std::uint64_t window_waits = 0;  ///< threads that had run too far ahead
  std::uint64_t window_wait_ns = 0;
  std::uint64_t turn_waits = 0;  ///< in strict order
  process::CounterValues counters = {};
};

/// The allocator's memory at a mark, less what it was at the start.
struct MarkSample {
  Mark mark;
  std::uint64_t clock_ns = 0;  ///< since the first operation; stops at marks are left out
  AllocatorMemory memory;
  std::uint64_t minor_faults = 0;  ///< since the start
  std::uint64_t major_faults = 0;
  std::optional<std::uint64_t> usable_bytes;       ///< of all live blocks, where the library says it
  std::optional<std::uint64_t> working_set_pages;  ///< referenced since the mark before
};

/// The memory run. `peak` is the larger of the largest mark and the high-water mark (VmHWM): the marks are exact and
/// miss what lies between them, the high-water mark misses nothing but is counted in batches by the kernel.
struct MemoryRun {
  std::uint64_t start_bytes = 0;  ///< the allocator's before the first operation
  std::vector<MarkSample> marks = {};
  std::uint64_t peak_at_marks_bytes = 0;
  std::optional<std::uint64_t> peak_by_high_water_bytes = {};
  std::uint64_t drained_bytes = 0;  ///< resident once all blocks that the trace leaves live were freed, too
  std::vector<TimelineSample> timeline = {};
  std::uint64_t timeline_cpu_ns = 0;  ///< what the timeline took

  std::uint64_t peak_bytes() const;
  /// The mark after an event, or null.
  const MarkSample* at(std::uint64_t event) const;
};

/// All that is known of an allocator.
struct Result {
  Allocator allocator;
  std::vector<TimedSample> timed = {};
  std::uint64_t replay_bytes = 0;  ///< of its workers' memory, the replay's own
  LatencyCounts latencies = {};
  std::optional<MemoryRun> memory = {};
  std::optional<Death> death = {};
};

/// What goes on, for people: "jemalloc, run 2 of 5".
using Progress = std::function<void(const std::string&)>;

/// Replays on every allocator: `rounds` timed runs each, in an order that is shuffled from round to round (from a seed,
/// so that a slow minute of the machine does not meet always the same one), then runs for latencies, then a memory run
/// each. Whatever
/// kills its worker is not run again. On Ctrl-C the results so far come back, and `interrupted` is true.
struct Runs {
  std::vector<Result> results;  ///< in the order of the allocators
  bool interrupted = false;
  std::string counters_missing = {};  ///< why there are no hardware counters; empty: there are
};
struct Rounds {
  unsigned count = 5;
  unsigned seed = 1;  ///< of the order
};
Runs run_all(const Stage& stage, const std::vector<Allocator>& allocators, const Rounds& rounds,
             const Progress& progress);

/// Fills `pointers` with what the allocator returns, in order. Its death, if it died. Throws Interrupted.
std::optional<Death> run_keeping_pointers(const Stage& stage, const Allocator& allocator, const SharedMemory& pointers);

}  // namespace cmt::replay
