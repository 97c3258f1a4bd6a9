// EventOrder puts the events of all threads into one order and gives each block its tag. Two rules hold without
// exception:
//
// - No address is live twice.
// - A free ends the block that it was given, not another one at the same address.
//
// doc/design/order.md has the method, the reasons and an example. An event that waits blocks its ring.
//
// Cost. Nearly all events take apply_plain(), which costs one prefetched access to the table. The queue is not accessed
// as long as one ring's events come before those of all other rings. Blocked rings are few, and are searched one by
// one.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cmt/event.h"
#include "cmt/header.h"
#include "libcmt/text/parser.h"
#include "libcmt/trace/writer/event_batch.h"
#include "libcmt/trace/writer/sink.h"
#include "preload/collector/drain/ring_events.h"
#include "preload/collector/drain/start_facts.h"
#include "preload/collector/order/live_table.h"
#include "preload/collector/pages/touched_blocks.h"

namespace cmt::collector {

/// Blocks from before the recording. The collector will only see their ends.
struct EarlierBlocks {
  std::uint64_t tags_reserved;  ///< tags for these blocks; each end beyond that number counts as a repair
  bool are_many = false;        ///< then the end of an unknown block is expected
};

/// A forked child may have inherited many blocks. In a program to which cmttrace has attached, nearly all blocks may be
/// earlier ones.
inline EarlierBlocks earlier_blocks(const StartFacts& facts) {
  if (facts.forked == 2) return {100'000'000, true};
  return facts.forked != 0 ? EarlierBlocks{1'000'000, true} : EarlierBlocks{1000};
}

/// Threads: used by one, the encoder.
class EventOrder {
 public:
  /// Receives the events in order, with stamps for times. Returns how many events it can receive next; the first call
  /// has one event. During a call, live_blocks() is the state after the last of the events.
  using Sink = std::function<std::size_t(EventBatch&)>;

  /// `stacks`: the recording's call stacks; null: it has none. `touched_min`: as in Control. `control` has the names of
  /// the program's own pools; null: there are none.
  EventOrder(EarlierBlocks earlier, Sink sink, RingStacks* stacks = nullptr, std::uint64_t touched_min = 0,
             const Control* control = nullptr)
      : sink_(std::move(sink)),
        stacks_(stacks),
        control_(control),
        earlier_are_many_(earlier.are_many),
        live_(earlier.tags_reserved + 1),
        touched_(touched_min),
        plain_size_max_(std::min(LiveTable::large, touched_.bytes_min())),
        next_tag_(earlier.tags_reserved + 1) {}

  /// Appends records that were read from a ring.
  void append_records(std::uint32_t ring, Packed records);
  /// Hands all events with a stamp up to `cut` to the sink.
  void merge_until(std::uint64_t cut);
  /// Hands all events to the sink, even if events for which they wait are missing.
  void merge_all() { merge_until(forever); }

  /// Appends an event that no thread recorded and that is about no block, after all events that were merged.
  void append_event(const Event& event) {
    batch_.next_other() = {event, {}};
    commit_other();
  }

  /// For a recovery, before all other calls. restore_event() passes on an event of the trace unchanged. resume_ring()
  /// sets from where on a ring's records are new.
  void restore_event(const Event& event);
  void resume_ring(std::uint32_t ring, const ResumePoint& point) { events_of(ring).resume(point); }

  /// Whether the sink has every event that was appended.
  bool is_empty() const { return queue_.empty() && blocked_.empty(); }
  const LiveBlockSource& live_blocks() const { return live_; }
  /// The repairs so far. Doubts about the order count as Repair::order_race.
  const Repairs& repairs() const { return repairs_; }
  /// How many blocks were freed or reallocated whose allocation was never seen.
  std::uint64_t unseen_blocks() const { return unseen_blocks_; }
  /// How many blocks of pools were freed whose allocation was never seen. These frees are dropped.
  std::uint64_t unseen_pool_blocks() const { return unseen_pool_blocks_; }
  /// How many blocks of pools were ended because another one was made at their address. These ends are repairs, too.
  std::uint64_t replaced_pool_blocks() const { return replaced_pool_blocks_; }
  /// How many events would be in a wrong place if they were ordered by stamps alone.
  std::uint64_t inversions() const { return inversions_; }
  /// The position from which a recovery needs the records of a ring.
  ResumePoint resume_point(std::uint32_t ring) const {
    return ring < rings_.size() ? rings_[ring].resume_point() : ResumePoint{};
  }

 private:
  // Merging: order.cpp
  RingEvents& events_of(std::uint32_t ring);
  void enqueue(RingEvents& ring);
  RingEvents* dequeue();
  void merge_queue(std::uint64_t cut);
  void merge_run(RingEvents& ring, std::uint64_t bound);
  bool awaits_realloc(const RingEvents& ring);
  bool is_return_delayed(const RingEvents& ring) const;
  std::uint64_t barrier(std::uint64_t cut);
  bool unblock_oldest(std::uint64_t cut);
  bool merge_return_of_realloc(std::uint64_t old_address);
  bool block_on(RingEvents& ring, std::uint64_t address);
  void wake(std::uint64_t address) {
    if (!blocked_.empty()) wake_blocked(address);
  }
  void wake_blocked(std::uint64_t address);
  std::size_t apply_plain(std::span<const Slot> records, const StackId* stacks, std::uint64_t stamp_high,
                          std::uint64_t& stamp, std::uint64_t bound, std::uint32_t thread);
  bool apply_plain_realloc(RingEvents& ring);
  std::size_t apply_plain_pools(std::span<const Slot> records, const StackId* stacks, std::uint64_t stamp_high,
                                std::uint64_t& stamp, std::uint64_t bound, std::uint32_t thread);
  // Adds the event in next_other() to the batch. An event with a label is flushed at once, because the label is valid
  // only until its records are popped.
  void commit_other() {
    const std::size_t label = batch_.next_other().event.label.size();
    if (label > text::label_limit) return repairs_.add(Repair::contradiction);
    batch_.append_next_other();
    if (batch_.size() >= batch_limit_ || label != 0) flush_batch();
  }
  void flush_batch();

  // The effect of any event on the live blocks: order_blocks.cpp. These functions return false if the event is blocked.
  // `forced`: it must not be blocked.
  bool apply(RingEvents& ring, bool forced);
  bool apply_allocation(RingEvents& ring, const Event& event, bool forced);
  bool apply_release(RingEvents& ring, const Event& event, bool forced);
  bool apply_realloc_begin(RingEvents& ring, const Event& event, bool forced);
  bool apply_realloc_return(RingEvents& ring, const Event& event, bool forced);
  bool apply_pool_event(RingEvents& ring, const Event& event, bool forced);
  LiveTable& pool_table(std::size_t pool);
  std::string_view name_of_pool(std::size_t pool);
  bool append_pool_event(std::size_t pool, const Event& event);
  bool apply_pages(RingEvents& ring, const Event& event, bool forced);
  bool apply_discard(RingEvents& ring, const Event& event);
  void append_page_events(TouchedBlocks::Events events, const format::LiveBlock& block, std::uint64_t stamp);
  bool vacate_address(RingEvents& ring, const Event& event, bool forced);
  void end_old_block(BookedEvent& booked, std::uint64_t old_address, std::uint64_t address);
  std::optional<LiveTable::Place> find_block(std::uint64_t address);
  /// Returns the address of a block that overlaps the `size` bytes at `address` and is in an open realloc; 0: none. The
  /// block at `own` does not count.
  std::uint64_t overlapped_realloc(std::uint64_t address, std::uint64_t size, std::uint64_t own = 0) const {
    for (const format::LiveBlock& block : in_realloc_) {
      if (block.address < address + size && address < block.address + block.size && block.address != own)
        return block.address;
    }
    return 0;
  }
  std::uint64_t patience_with_others(const RingEvents& ring);
  bool await_overlapped(RingEvents& ring, const Event& event, std::uint64_t own, bool forced);
  void begin_realloc(RingEvents& ring, LiveTable::Place place);
  void end_realloc_of(std::uint64_t address) {
    std::erase_if(in_realloc_, [&](const format::LiveBlock& block) { return block.address == address; });
  }
  Tag next_reserved_tag() {
    ++unseen_blocks_;
    return next_reserved_ < live_.first_tag() ? next_reserved_++ : 0;
  }
  BookedEvent& begin_event(const Event& event);

  static constexpr std::uint64_t forever = ~std::uint64_t{0};

  Sink sink_;
  RingStacks* const stacks_;
  const Control* const control_;
  const bool earlier_are_many_;
  EventBatch batch_;  // in order; the sink does not have them yet
  std::size_t batch_limit_ = 1;
  LiveTable live_;
  std::array<std::unique_ptr<LiveTable>, pools_max> pools_;  // live blocks, numbers for tags; null: none so far
  std::array<std::string, pools_max> names_of_pools_;        // as in the trace; empty: no events so far
  std::uint64_t next_pool_block_ = 1, unseen_pool_blocks_ = 0, replaced_pool_blocks_ = 0;
  TouchedBlocks touched_;
  const std::uint64_t plain_size_max_;  // blocks below take apply_plain()
  Tag next_tag_;
  Tag next_reserved_ = 1;
  std::deque<RingEvents> rings_;               // by number
  std::deque<RingEvents> outside_rings_;       // from rings_max on: events of the collector itself
  std::vector<RingEvents*> queue_;             // rings whose front is not blocked: a heap, the oldest front first
  std::vector<RingEvents*> blocked_;           // rings whose front waits
  std::vector<format::LiveBlock> in_realloc_;  // blocks of open reallocs
  int returns_ahead_ = 0;                      // depth of recursion of merge_return_of_realloc()
  bool was_woken_ = false;                     // a ring has joined the queue, so merge_run() needs a new bound
  Repairs repairs_;
  std::uint64_t inversions_ = 0;
  std::uint64_t unseen_blocks_ = 0;
};

}  // namespace cmt::collector
