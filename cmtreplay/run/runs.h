/// Runs all allocators: timed runs in rounds, then runs for latencies and for memory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cmtreplay/run/memory_run.h"
#include "cmtreplay/run/statistics.h"
#include "cmtreplay/run/worker_process.h"
#include "toolkit/process/counters.h"

namespace cmt::replay {

/// The figures of one timed run.
struct TimedSample {
  std::uint64_t wall_ns = 0;
  std::uint64_t cpu_ns = 0;
  std::uint64_t kernel_ns = 0;
  std::uint64_t minor_faults = 0;
  std::uint64_t major_faults = 0;
  std::uint64_t refused_calls = 0;
  std::uint64_t starved_ns = 0;
  std::uint64_t lost_ns = 0;
  std::uint64_t given_back = 0, give_back_failed = 0, give_back_missing = 0;
  wait_counts waits = {};
  process::CounterValues counters = {};
};

template <class Visitor, output::DescribedAs<TimedSample> Sample>
void describe(Visitor& field, Sample& sample) {
  field("wall_ns", sample.wall_ns, "from the first operation to the last");
  field("cpu_ns", sample.cpu_ns, "of all threads, the allocator's own among them");
  field("kernel_ns", sample.kernel_ns,
        "of cpu_ns, mostly for pages that are touched first; where the kernel counts by ticks of 4 ms, only its mean "
        "over many runs is near");
  field("minor_faults", sample.minor_faults, "page faults that read nothing from a disk");
  field("major_faults", sample.major_faults, "page faults that read from a disk");
  field("refused_calls", sample.refused_calls, "calls that returned NULL here and not when recorded");
  field("starved_ns", sample.starved_ns, "time of all threads without operations: decoding was slower");
  field("lost_ns", sample.lost_ns,
        "of one thread the wall time less its processor time; of several the time that those alive at the end waited "
        "for a processor, beyond wake-ups; 0 with --pace, and of more threads than CPUs");
  field("given_back", sample.given_back, "calls that give memory back, or their counterparts");
  field("give_back_failed", sample.give_back_failed, "such calls that returned an error here");
  field("give_back_missing", sample.give_back_missing, "such calls that this allocator does not have (--give-back)");
  field("block_waits", sample.waits.block_waits, "calls that had to wait for a block of another thread");
  field("block_wait_ns", sample.waits.block_wait_ns, "time of these calls' waits");
  field("window_waits", sample.waits.window_waits, "waits of threads that were too far ahead");
  field("window_wait_ns", sample.waits.window_wait_ns, "time of these waits");
  field("turn_waits", sample.waits.turn_waits, "in strict order");
}

/// The figures of one memory run, in bytes.
struct MemoryFigures {
  std::uint64_t start = 0;
  std::uint64_t peak = 0;
  std::uint64_t mean = 0;
  std::uint64_t end = 0;
  std::optional<std::uint64_t> before_teardown = {};  ///< cells of older versions lack it
  double fragmentation = LatencySummary::none;
  std::optional<std::uint64_t> huge_pages = {};  ///< cells of older versions lack it
  std::optional<std::uint64_t> zeros = {};       ///< as in MemoryRun

  static bool has_lower_peak(const MemoryFigures& a, const MemoryFigures& b) { return a.peak < b.peak; }
};

template <class Visitor, output::DescribedAs<MemoryFigures> Figures>
void describe(Visitor& field, Figures& figures) {
  field("start_resident_bytes", figures.start, "");
  field("peak_resident_bytes", figures.peak, "");
  field("mean_resident_bytes", figures.mean, "");
  field("end_resident_bytes", figures.end, "");
  field("before_teardown_resident_bytes", output::omit_if_empty(figures.before_teardown),
        "at the last moment before the tear-down, or at the end; cells of older versions lack it");
  field("fragmentation", figures.fragmentation, "resident over live bytes where most are live; null: not known");
  field("huge_page_bytes", output::omit_if_empty(figures.huge_pages),
        "the most in transparent huge pages at any mark; cells of older versions lack it");
  field("zero_bytes", output::omit_if_empty(figures.zeros),
        "resident at the peak of live bytes, in pages of 4 KiB that hold only zeros; only if there were huge pages "
        "then");
}

MemoryFigures figures_of(const MemoryRun& run);

/// "24.0 MiB, 20.1 MiB zeros", or the first alone.
std::string huge_pages_text(std::uint64_t huge, const std::optional<std::uint64_t>& zeros);

/// The median of a figure; not a number if there are no runs.
double median_memory(const std::vector<MemoryFigures>& runs, std::uint64_t MemoryFigures::*figure);

/// The figures of one allocator.
struct AllocatorResult {
  Allocator allocator;
  bool is_asked = true;                     ///< false: the null allocator, only to compare with
  std::optional<TimedSample> warm_up = {};  ///< a timed run before the others, which no figure includes
  std::vector<TimedSample> timed = {};
  std::uint64_t spent_ns = 0;      ///< time spent on its timed runs, with the start of their processes
  bool is_settled = false;         ///< it needs no further timed run
  double expected_runs = 0;        ///< timed ones, until the median is known; 0: not known
  unsigned latency_runs = 0;       ///< that are done
  double memory_seconds = 0;       ///< of its runs for memory so far
  std::uint64_t replay_bytes = 0;  ///< memory of its workers that the replay uses
  LatencyCounts latencies = {};
  std::optional<MemoryRun> memory = {};         ///< the run with the median peak
  std::vector<MemoryFigures> memory_runs = {};  ///< all of them
  std::optional<Death> death = {};
};

/// One figure over all timed runs of an allocator.
Spread spread_of(const AllocatorResult& result, std::uint64_t TimedSample::*figure);

/// The results of a replay on all allocators.
struct ReplayResults {
  std::vector<AllocatorResult> allocators;  ///< in the order asked for
  AllocatorResult baseline;                 ///< of the null allocator; without memory unless it is asked for
  bool interrupted = false;
  double load_average = 0;                              ///< after the timed runs, over a minute
  unsigned processors = 1;                              ///< of the machine
  std::string counters_missing = {};                    ///< why there are no hardware counters; empty: there are
  std::optional<AllocatorMemory> memory_baseline = {};  ///< see MemoryRun
};

/// Why these allocators should not get the trace: it needs more memory than is available, so that the kernel would swap
/// or end a process. A replay writes every page of a block, so it needs at least the touched live bytes of the peak.
/// Empty if there is enough memory.
std::string memory_fault(const ReplaySettings& settings, const std::vector<Allocator>& allocators, bool verifies);

/// How much of a replay is done, as far as that is known from the runs so far: medians decide how many are needed.
struct RunsLeft {
  std::uint64_t done = 0;
  std::uint64_t total = 0;  ///< with those that are done
  double seconds = 0;       ///< that the others take

  double share() const { return total == 0 ? 0 : static_cast<double>(done) / static_cast<double>(total); }
};

RunsLeft runs_left(const ReplayOptions& options, const std::vector<AllocatorResult>& results);

/// Called before each run with its kind, "jemalloc, memory", and with what is left.
using Progress = std::function<void(const std::string&, const RunsLeft&)>;

/// Replays on every allocator, and on the null allocator, which runs once if it is one of them.
///
/// 1. Timed runs, in rounds. Each round has another order, shuffled from --seed, so that a slow minute of the machine
///    does not always meet the same allocator. There are --runs of them. Without --runs there is one to warm up, and
///    then 10 or more. They end when the interval of the median is below 1 % of it, or --budget is spent.
/// 2. Runs for latencies.
/// 3. Three runs for memory. A null allocator that is only there to compare with has none.
///
/// An allocator that ended its worker is not run again. On Ctrl-C the results so far are returned.
ReplayResults run_all(const ReplaySettings& settings, const std::vector<Allocator>& allocators, const Allocator& null,
                      const Progress& progress);

}  // namespace cmt::replay
