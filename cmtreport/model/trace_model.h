/// The model of one trace in a report: intervals, threads, sizes, marks and leaks.
#pragma once

#include <tsl/robin_map.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/fates/amount.h"
#include "analysis/fates/fate.h"
#include "cmt/event.h"
#include "cmt/header.h"
#include "cmtreport/model/intervals.h"
#include "cmtreport/model/resident_samples.h"
#include "cmtreport/model/thread_activity.h"
#include "libcmt/heap/log_linear.h"
#include "libcmt/number_hash.h"

namespace cmt::report {

using analysis::Amount;
using heap::SizeClasses;

/// Lifetimes: two classes a doubling.
using LifetimeClasses = heap::LogLinear<1>;

/// A mark of the program.
struct TraceMark {
  std::string label;
  std::uint64_t position = 0;  ///< on the axis
  std::uint64_t event = 0;
  std::uint64_t time_ns = unknown;
};

struct ThreadCounts {
  std::string name;
  std::uint64_t events = 0;
  Amount allocated;
  ThreadActivity activity;
};

/// Blocks of one class of sizes.
struct SizeCounts {
  Amount allocated;
  Amount leaked;
  std::array<std::uint64_t, LifetimeClasses::count> lifetimes{};  ///< blocks that have ended, by lifetime
};

/// Blocks of one key that were made in one interval and are live at the end.
struct LeakedBlocks {
  KeyId key = 0;
  std::uint32_t interval = 0;
  Amount amount;
  std::uint64_t largest_bytes = 0;  ///< of one block
};

inline constexpr std::size_t marks_max = 1000;

struct ModelOptions {
  bool by_time = false;           ///< the axis is time; else events
  std::uint64_t start = 0;        ///< the position of the trace's time 0 on the axis; at most position_max
  bool by_stack = false;          ///< keys are stacks; else size classes
  std::uint64_t touched_min = 0;  ///< as Header has it
};

/// Counts the figures of one trace that a report contains, event by event in one pass.
///
/// Memory does not grow with the events. It is some 60 bytes a live block, the memory of IntervalCollector, and 600 KiB
/// for sizes and lifetimes. A thread takes some 100 bytes, and 16 for each interval in which it asked for memory.
class TraceModel {
 public:
  /// Borrows `complaints`.
  TraceModel(const ModelOptions& options, command::Complaints& complaints);

  void count_event(const Event& event);

  /// Fetches memory into the cache that a later event will need. To be called early, and again when the event is near.
  void fetch(const Event& event, bool is_near) {
    const bool makes_key = event.tag != 0 && options_.by_stack;
    if (is_near) {
      if (event.old_tag != 0) fates_->prefetch_block(event.old_tag);
      if (makes_key) intervals_.prefetch(event.stack);
    } else {
      if (event.old_tag != 0) fates_->prefetch(event.old_tag);
      if (makes_key) intervals_.prefetch_place(event.stack);
    }
  }

  /// As BlockFates::note_unknown_end(). Before finish().
  void note_unknown_end() { fates_->note_unknown_end(); }
  /// To be called once, after the last event. `alive_ns`: the process is known to have lived up to then; 0: not known.
  void finish(std::uint64_t alive_ns = 0);

  IntervalCollector& intervals() { return intervals_; }
  const IntervalCollector& intervals() const { return intervals_; }
  bool is_by_stack() const { return options_.by_stack; }

  /// The blocks that are live at the end, by the intervals at finish().
  const std::vector<LeakedBlocks>& leaked() const { return leaked_; }
  /// The same for one of the intervals, which widen_to() may have joined since.
  std::span<const LeakedBlocks> leaked_of(std::size_t interval) const;

  const std::vector<TraceMark>& marks() const { return marks_; }
  std::uint64_t marks_left_out() const { return marks_left_out_; }
  /// Pauses of the recording while blocks were live.
  std::uint64_t pauses() const { return pauses_; }
  /// Returns the threads with an event, by number.
  std::vector<std::pair<std::uint32_t, ThreadCounts>> threads() const;
  const std::vector<SizeCounts>& sizes() const { return sizes_; }
  /// Blocks by key that a realloc made of a block that a realloc had made.
  const tsl::robin_map<KeyId, std::uint64_t, NumberHash>& resized_again() const { return resized_again_; }
  std::uint64_t unknown_ends() const { return unknown_ends_; }
  /// Bytes of blocks of touched_min or more of which it is not known whether they were touched.
  std::uint64_t unknown_touch_bytes() const { return unknown_touch_bytes_; }
  const ResidentSamples& samples() const { return samples_; }

  /// The longest lifetime that is short, in events.
  static constexpr std::uint64_t short_lived_max = analysis::short_lived_max(heap::Clock::Unit::events);

 private:
  struct Block {
    Tag tag = 0;
    std::uint64_t size = 0;
    std::uint64_t born = 0;            // its event
    KeyId key : 31 = 0;                // of at most 2^24 stacks
    std::uint32_t is_resized : 1 = 0;  // a realloc made it
    std::uint32_t thread = 0;
  };

  void collect_leaked();
  void end_block(const Block& block, const analysis::Fate& fate);
  void count_unknown_touches(const Block& block, bool is_known);
  void begin_block(const Event& event, bool is_resized_again);
  void note_other(const Event& event);
  ThreadCounts& counts_of(std::uint32_t thread) {
    if (thread != last_thread_ || last_index_ == ~std::uint32_t{0}) find_thread(thread);
    return threads_[last_index_].second;
  }
  void find_thread(std::uint32_t thread);

  ModelOptions options_;
  std::optional<analysis::BlockFates<Block>> fates_;  // until the end
  IntervalCollector intervals_;
  tsl::robin_map<std::uint32_t, std::uint32_t, NumberHash> thread_index_;  // by number: its place in threads_
  std::vector<std::pair<std::uint32_t, ThreadCounts>> threads_;
  std::uint32_t last_thread_ = 0;  // the last event's, and its place
  std::uint32_t last_index_ = ~std::uint32_t{0};
  std::vector<TraceMark> marks_;
  std::uint64_t marks_left_out_ = 0, pauses_ = 0;
  std::vector<SizeCounts> sizes_;
  tsl::robin_map<KeyId, std::uint64_t, NumberHash> resized_again_;
  std::vector<LeakedBlocks> leaked_;
  std::uint64_t leaked_width_ = 1;
  std::uint64_t position_ = 0;
  std::uint64_t last_time_ns_ = unknown;
  std::uint64_t unknown_ends_ = 0, unknown_touch_bytes_ = 0;
  ResidentSamples samples_;
};

}  // namespace cmt::report
