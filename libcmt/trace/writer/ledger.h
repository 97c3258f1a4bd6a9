/// Counts the totals of a trace (Tally), and refuses events that contradict those before them (Ledger).
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <unordered_set>

#include "cmt/header.h"
#include "libcmt/format/live_blocks.h"
#include "libcmt/trace/writer/sink.h"

namespace cmt {

/// Counts the totals of a trace, event by event.
class Tally {
 public:
  /// `old` is the live block that the event was given; tag 0 if none is known.
  void count(const Event& event, const format::LiveBlock& old) { step(totals_, event, old); }

  void count(const EventBatch& batch) {
    RunningTotals running = totals_;  // a copy, which the loop keeps in registers
    const BookedEvent* other = batch.others().data();
    for (const BlockEvent& event : batch.events()) {
      if (event.tag != 0) {
        step(running, event);
      } else {
        step(running, other->event, other->old);
        ++other;
      }
    }
    assert(other == batch.others().data() + batch.others().size());
    static_cast<RunningTotals&>(totals_) = running;
  }

  const Totals& totals() const { return totals_; }
  Totals& totals() { return totals_; }

  /// Prepares to count the events after an earlier part of the trace, at whose end so much is live.
  void begin_after(const Totals& before) {
    totals_.end_live_blocks = before.end_live_blocks;
    totals_.end_live_bytes = before.end_live_bytes;
  }
  /// Adds the totals of the events after these, which were counted with begin_after().
  void append(const Tally& later);

 private:
  void step(RunningTotals& now, const Event& event, const format::LiveBlock& old) {
    ++now.events;
    ++totals_.by_kind[static_cast<std::size_t>(event.kind)];
    if (totals_.threads == 0 || event.thread != last_thread_) count_thread(event.thread);
    if (old.tag != 0 && event.ends_block()) {
      --now.end_live_blocks;
      now.end_live_bytes -= old.size;
    }
    if (event.tag != 0) {
      const std::uint64_t bytes = event.bytes();
      ++now.allocations;
      now.allocated_bytes += bytes;
      now.end_live_bytes += bytes;
      if (++now.end_live_blocks > now.peak_live_blocks) now.peak_live_blocks = now.end_live_blocks;
    } else if (event.failed()) {
      ++totals_.failed;
    }
    if (now.end_live_bytes > now.peak_live_bytes) {
      now.peak_live_bytes = now.end_live_bytes;
      now.peak_live_bytes_event = now.events;
    }
  }

  void step(RunningTotals& now, const BlockEvent& event) {
    ++now.events;
    ++totals_.by_kind[static_cast<std::size_t>(event.kind)];
    if (totals_.threads == 0 || event.thread != last_thread_) count_thread(event.thread);
    const std::uint64_t made = event.makes_block ? 1 : 0, bytes = event.block_size, made_bytes = made * bytes;
    now.allocations += made;
    now.allocated_bytes += made_bytes;
    now.end_live_blocks += made * 2 - 1;
    now.end_live_bytes += made_bytes * 2 - bytes;
    now.peak_live_blocks = std::max(now.peak_live_blocks, now.end_live_blocks);
    if (now.end_live_bytes > now.peak_live_bytes) {
      now.peak_live_bytes = now.end_live_bytes;
      now.peak_live_bytes_event = now.events;
    }
  }

  void count_thread(std::uint32_t thread) {
    last_thread_ = thread;
    if (thread < few_threads && (seen_[thread / 64] >> thread % 64 & 1) != 0) return;
    count_new_thread(thread);
  }
  void count_new_thread(std::uint32_t thread);

  static constexpr std::uint32_t few_threads = 1024;

  Totals totals_;
  std::uint32_t last_thread_ = 0;
  std::array<std::uint64_t, few_threads / 64> seen_{};  // a bit for each of the first numbers
  std::unordered_set<std::uint32_t> threads_;           // the others
};

/// Refuses events of pools that have no pool or contradict those before: numbers of blocks rise. In a trace that begins
/// within a recording, blocks before the first may be ended.
class NewestPoolBlock {
 public:
  bool takes(const Event& event);

 private:
  std::uint64_t number_ = 0;  // the highest so far
  bool has_made_ = false;     // so no later event is given a block with a higher number
};

/// Follows the events of a trace, keeps its live blocks and totals, and refuses events that contradict those before.
/// Memory: a table of the live blocks.
class Ledger : public LiveBlockSource {
 public:
  struct Entry {
    bool accepted = false;
    bool old_known = false;  ///< the event was given a live block, which is `old`
    format::LiveBlock old;
  };

  /// Counts an event and returns an accepted entry. Refuses an event that makes a block whose tag is not above all tags
  /// before. Refuses an event that is given a block of this trace that is not live.
  Entry book(const Event& event);

  /// The same for a caller that keeps the live blocks itself: `given` is the live block that the event was given; tag 0
  /// if there is none. To be used for all events or for none.
  Entry book(const Event& event, const LiveBlock& given);

  const Totals& totals() const { return tally_.totals(); }
  Totals& totals() { return tally_.totals(); }
  const format::LiveBlocks& live() const { return live_; }

  std::size_t live_blocks() const override { return live_.size(); }
  std::vector<format::LiveBlock> list_live_blocks() const override { return format::by_tag(live_); }

 private:
  LiveBlock given_block(const Event& event);

  Tally tally_;
  format::LiveBlocks live_;
  NewestPoolBlock newest_pool_block_;
  Tag first_tag_ = unknown;  // of the first allocation
  Tag newest_ = 0;           // the highest tag so far
};

}  // namespace cmt
