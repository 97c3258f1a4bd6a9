/// A memory run: stops the worker at marks and reads how much memory its allocator has.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cmtreplay/run/timeline.h"
#include "cmtreplay/run/worker_process.h"
#include "toolkit/process/smaps.h"

namespace cmt::replay {

/// The memory of a worker that its allocator uses. The little that its libraries use is included.
struct AllocatorMemory {
  std::uint64_t resident_bytes = 0;
  std::uint64_t anonymous_bytes = 0;   ///< part of the resident bytes; the others are shared memory of the allocator
  std::uint64_t referenced_bytes = 0;  ///< since clear_refs
  std::uint64_t lazy_free_bytes = 0;
  std::uint64_t huge_page_bytes = 0;
  std::uint64_t swapped_bytes = 0;
};

/// Adds up anonymous mappings (also [heap]), written pages of libraries, and shared memory that is not the replay's. It
/// leaves out the worker's executable `worker`, its stack, operations, slots and control.
AllocatorMemory allocator_memory(std::span<const process::Mapping> mappings, const std::string& worker);

/// The allocator's memory at a mark.
struct MarkSample {
  Mark mark;
  std::uint64_t clock_ns = 0;
  AllocatorMemory memory;
  std::uint64_t minor_faults = 0;
  std::uint64_t major_faults = 0;
  std::optional<std::uint64_t> usable_bytes;
  std::optional<std::uint64_t> working_set_pages;

  std::optional<std::uint64_t> slop_bytes() const;
};

template <class Visitor, output::DescribedAs<MarkSample> Sample>
void describe(Visitor& field, Sample& sample) {
  field("event", sample.mark.event, "the last event before the mark, counted from 1");
  field("time_ns", output::nullable(sample.mark.time_ns), "recorded time of that event");
  field("next_time_ns", output::nullable(sample.mark.next_ns),
        "recorded time of the event after it, in a mark that the mean is over");
  field("clock_ns", sample.clock_ns, "since the first operation, without the stops at marks");
  field("live_bytes", sample.mark.live.bytes, "of the trace");
  field("live_blocks", sample.mark.live.blocks, "of the trace");
  field("untouched_bytes", sample.mark.untouched_bytes,
        "of live_bytes, those on pages to which the program had not written, if the trace has touched pages");
  field("resident_bytes", sample.memory.resident_bytes, "of the allocator alone, as all that follow");
  field("anonymous_bytes", sample.memory.anonymous_bytes, "of no file");
  field("usable_bytes", sample.usable_bytes, "of all live blocks, if the library reports them");
  field("slop_bytes", sample.slop_bytes(), "usable bytes beyond those asked for");
  field("working_set_pages", sample.working_set_pages, "pages referenced since the mark before");
  field("lazy_free_bytes", sample.memory.lazy_free_bytes, "given back by MADV_FREE, and not yet taken");
  field("huge_page_bytes", sample.memory.huge_page_bytes, "in transparent huge pages");
  field("swapped_bytes", sample.memory.swapped_bytes, "in swap; not in resident_bytes");
  field("minor_faults", sample.minor_faults, "since the start");
  field("major_faults", sample.major_faults, "since the start");
}

/// The result of a memory run. The peak is the larger one of two figures: the largest mark, and the kernel's high-water
/// mark (VmHWM). Marks are exact, but miss peaks between them. The high-water mark misses none, but the kernel updates
/// it in batches.
struct MemoryRun {
  AllocatorMemory baseline = {};  ///< of a worker with the null allocator at its start; subtracted from all figures
  std::uint64_t start_bytes = 0;
  std::vector<MarkSample> marks = {};
  std::uint64_t peak_at_marks_bytes = 0;
  std::optional<std::uint64_t> peak_by_high_water_bytes = {};
  /// Resident at the peak of live bytes, in pages of 4 KiB that hold only zeros. Empty: not counted, since there were
  /// no huge pages then, or its memory could not be read.
  std::optional<std::uint64_t> zero_bytes = {};
  std::uint64_t drained_bytes = 0;
  std::vector<TimelineSample> timeline = {};
  std::uint64_t timeline_cpu_ns = 0;
  std::uint64_t peak_live_bytes = 0;  ///< by the trace; the next is the event with which they were reached
  std::uint64_t peak_live_event = 0;
  std::uint64_t before_teardown_event = 0;               ///< 0: the trace has no tear-down
  std::optional<std::uint64_t> mean_touched_bytes = {};  ///< of the trace
  std::uint64_t peak_touched_bytes = 0;                  ///< the peak without pages that the program did not write to
  bool reads_clock = false;               ///< whether the allocator read a clock other than that of processor time
  bool has_recorded_clock = false;        ///< whether that clock was the recorded one
  std::optional<bool> reads_stamps = {};  ///< whether it read the processor's time stamp counter; empty: not known
  std::uint32_t clock_strays = 0;         ///< how often a thread of its own slept by something else
  bool holds_all = true;                  ///< no call was refused, and pages of blocks were written

  std::uint64_t peak_bytes() const;
  /// The mean over the recorded time, of time marks and the end. Each state lasts until the next event, and straight
  /// lines are between them. The exact mean of touched live bytes shows the error of these marks. The mean is corrected
  /// by this error, times the slope of resident bytes over touched ones (a regression estimate). Without time marks,
  /// the mean is over all marks: by time, or else by events.
  std::uint64_t mean_bytes() const;
  std::uint64_t end_bytes() const;
  /// At the last mark before the tear-down or, without one, at the end.
  std::uint64_t before_teardown_bytes() const;
  /// "3.05 MiB". It is ">= 3.05 MiB" without the high-water mark, since more may have been resident between marks.
  std::string peak_text() const;
  /// The mark where most bytes are live, or null.
  const MarkSample* at_peak_live() const;
  const MarkSample* at_event(std::uint64_t event) const;
  /// Resident bytes over touched live bytes at that mark. NaN if there are none, or if not all live blocks were held.
  double fragmentation() const;
  /// The ratio of the two peaks, which may be at different events.
  double peak_over_peak_live() const;
};

template <class Visitor, output::DescribedAs<MemoryRun> Run>
void describe(Visitor& field, Run& run) {
  const MarkSample* const peak = run.at_peak_live();
  using Bytes = std::optional<std::uint64_t>;
  field("start_resident_bytes", run.start_bytes,
        "of the allocator before the first operation, and a part of all that follow: what a worker has more than one "
        "with the null allocator");
  field("peak_resident_bytes", run.peak_bytes(), "the larger of the two that follow");
  field("peak_resident_bytes_at_marks", run.peak_at_marks_bytes, "the most at any mark");
  field("peak_resident_bytes_by_high_water", run.peak_by_high_water_bytes, "the kernel's, where it can be reset");
  field("peak_resident_over_peak_live", run.peak_over_peak_live(),
        "both at their own peak, which may be different events; live bytes without untouched ones");
  field("resident_bytes_at_peak_live", peak ? Bytes(peak->memory.resident_bytes) : Bytes(),
        "where most bytes are live");
  field("fragmentation", run.fragmentation(),
        "resident over live bytes, without untouched ones, where most bytes are live; null also where calls were "
        "refused or pages not written");
  field("slop_bytes_at_peak_live", peak ? peak->slop_bytes() : Bytes(), "at the mark with most live bytes");
  field("mean_resident_bytes", run.mean_bytes(), "over the recorded time; over events where there is none");
  field("end_resident_bytes", run.end_bytes(), "after the last operation: what remains after a tear-down");
  field("before_teardown_resident_bytes", run.before_teardown_bytes(),
        "at trace.before_teardown_event; at the end if there is no tear-down");
  field("drained_resident_bytes", run.drained_bytes, "once all blocks that the trace leaves live are freed, too");
  field("reads_clock", run.reads_clock,
        "whether the allocator read a clock during the run, as those do that purge by the clock");
  field("recorded_clock", run.has_recorded_clock, "whether that was the recorded clock (--clock), else the system's");
  field("reads_time_stamps", run.reads_stamps,
        "whether it read the processor's time stamp counter, which is never recorded; null: not looked at, or this "
        "processor does not report it");
  field("clock_strays", run.clock_strays,
        "times that a thread of the allocator's slept by something else than the recorded clock, or not at all");
  field("timeline_cpu_ns", run.timeline_cpu_ns, "CPU time of the sampling");
  field("timeline", run.timeline, "resident memory a hundred times a second");
  field("marks", run.marks, "memory at some 100 marks along the trace");
}

/// The memory of a worker before its first operation, in a memory run. Throws Death and Interrupted.
AllocatorMemory memory_at_start(const ReplaySettings& settings, const Allocator& allocator);

/// Replays once and measures memory at every mark of the trace. Without a baseline it takes the worker's own start as
/// baseline. `number` counts the memory runs of an allocator from 0. Throws Death and Interrupted.
MemoryRun run_memory(const ReplaySettings& settings, const Allocator& allocator,
                     const std::optional<AllocatorMemory>& baseline, std::uint32_t number);

}  // namespace cmt::replay
