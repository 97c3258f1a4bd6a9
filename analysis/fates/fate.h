/// Decides the fate of each block of a trace, for every tool that counts fates. The fate of a block is its lifetime
/// (short-lived or not), whether it is temporary, whether another thread ended it, and its number of untouched bytes. A
/// temporary block is freed by the next event of its thread.
///
///     1  thread 0: malloc(8) = <1>
///     2  thread 1: malloc(8) = <2>
///     3  thread 0: free(<1>)            temporary: thread 0 had no event since event 1
///
///     4  thread 0: free(<2>)            ended by another thread; short-lived, since its lifetime is 2 events
///
/// Events that report pages (kinds touch and resident) record no call of the program. So a block is temporary even if
/// they are between its allocation and its free.
#pragma once

#include <tsl/robin_map.h>

#include <cassert>
#include <cstdint>

#include "analysis/fates/amount.h"
#include "analysis/fates/live_blocks.h"
#include "analysis/fates/untouched.h"
#include "cmt/event.h"
#include "libcmt/heap/clock.h"
#include "libcmt/number_hash.h"
#include "toolkit/command/complaints.h"

namespace cmt::analysis {

/// Whether the recording pauses at an event. Blocks that are freed in a pause count as live from then on.
inline bool begins_pause(const Event& event) { return event.kind == Kind::mark && event.label == "cmt_pause"; }

/// The fate of a block that an event ends.
struct Fate {
  std::uint64_t lifetime = 0;         ///< in the clock's unit
  std::uint64_t untouched_bytes = 0;  ///< asked for and never touched; 0 if touches were not recorded
  bool knows_touches = false;         ///< whether it is known which bytes were touched
  bool is_temporary = false;          ///< freed by the next event of the thread that made it; a realloc is no free
  bool is_short_lived = false;        ///< the lifetime is at most short_lived_max()
  bool is_of_other_thread = false;    ///< ended by another thread than the one that made it
};

/// A block that an event has ended, with its fate. `block` is valid until the next change of the live blocks; it is
/// null if the event ends no live block.
template <class Block>
struct EndedBlock {
  const Block* block = nullptr;
  Fate fate{};

  explicit operator bool() const { return block != nullptr; }
};

/// Finds temporary blocks: for each thread, the block that its last event made.
class LastMade {
 public:
  /// Returns whether the event frees the block that the previous event of its thread made. To be called for each event
  /// that reports no pages, in order.
  bool frees_temporary(const Event& event) {
    Tag& last = last_of(event.thread);
    const bool frees = event.ends_block() && event.old_tag == last && !event.makes_block();
    last = event.tag;
    return frees;
  }

  /// States the block that a thread made before the first event, if the thread may have had no event since.
  void set_last(std::uint32_t thread, Tag tag) { last_of(thread) = tag; }

 private:
  Tag& last_of(std::uint32_t thread) { return thread == 0 ? of_first_thread_ : by_thread_[thread]; }

  tsl::robin_map<std::uint32_t, Tag, NumberHash> by_thread_;  // the block that its last event made; 0: none
  Tag of_first_thread_ = 0;                                   // the same of thread 0, which needs no search
};

/// Follows the events of a trace, keeps the live blocks, and returns the fate of each block that an event ends. `Block`
/// has the members tag, size, born and thread, and whatever else the tool keeps of a block.
///
///     const EndedBlock<Block> ended = fates.follow(event);
///     if (ended) count(ended.fate);
///     if (event.makes_block() && fates.begin_block(event, {.thread = event.thread})) ...
///
/// Memory: that of LiveBlocks and UntouchedBytes.
template <class Block>
class BlockFates {
 public:
  /// `touched_min`: as Header has it. Borrows `complaints`.
  BlockFates(heap::Clock::Unit unit, std::uint64_t touched_min, command::Complaints& complaints)
      : live_(unit, complaints), untouched_(touched_min), short_lived_max_(analysis::short_lived_max(unit)) {}

  const heap::Clock& clock() const { return live_.clock(); }
  std::uint64_t short_lived_max() const { return short_lived_max_; }

  /// Takes the next event. Returns the block that it ends; none if the event ends no block, or one that is not live.
  EndedBlock<Block> follow(const Event& event) {
    live_.start_event(event);
    if (names_pages(event.kind)) {
      assert(!event.ends_block() && !event.makes_block());
      const Block* const touched = live_.find(event.old_tag);
      if (touched != nullptr) untouched_.touch(event, touched->size);
      return {};
    }
    if (!is_of_thread(event.kind)) {  // discarded pages were touched once
      if (event.kind == Kind::mark && event.label.starts_with(ended_by_label)) note_unknown_end();
      return {};
    }
    const bool is_temporary = last_made_.frees_temporary(event);
    const Block* const block = event.ends_block() ? live_.end_block(event.old_tag) : nullptr;
    if (block == nullptr) return {};
    return {block, fate_of(*block, event, is_temporary)};
  }

  /// Adds the block that the event makes, after follow(). `block` has the members that LiveBlocks does not set. Returns
  /// false if its tag is live already.
  bool begin_block(const Event& event, Block block) {
    assert(event.makes_block());
    block.thread = event.thread;
    return live_.begin_block(event, block);
  }

  /// Whether the trace makes the block of this tag: false if the block was made before the trace began.
  bool is_made_here(Tag tag) const { return live_.is_made_here(tag); }

  /// Begins at a late start, instead of following the events before it. Sets the clock, and the tag of the first block
  /// that the trace makes.
  void start_late(std::uint64_t now, Tag first) { live_.start_late(now, first); }
  /// Adds a block that is live at the late start. To be called in the order in which the blocks were made.
  void add_early(const Block& block) {
    assert(block.tag != 0);
    live_.add_early(block);
    last_made_.set_last(block.thread, block.tag);
  }
  /// Adds touched pages of such a block.
  void touch_early(const format::OriginRun& run, std::uint64_t size) { untouched_.touch(run, size); }

  /// Calls visit(block) for each live block.
  template <class Visit>
  void for_each_live(Visit visit) const {
    live_.for_each(visit);
  }
  /// To be called where a trace ends before its program: then the pages that live blocks have got last are in no event.
  /// A program that a signal has ended needs no call: a mark reports it.
  void note_unknown_end() { is_end_unknown_ = true; }
  /// How many bytes of a block that is live at the end nothing has touched; 0 if nobody knows it.
  std::uint64_t untouched_of(const Block& block) const {
    return is_end_unknown_ ? 0 : untouched_.of_block(block.tag, block.size);
  }

  /// Whether it is known which bytes of it were touched.
  bool knows_touches_of(const Block& block) const {
    return !is_end_unknown_ && untouched_.knows(block.tag, block.size);
  }

  /// Fetch the memory of a tag into the cache. Call prefetch() first, for the place of the block in the table; later
  /// prefetch_block(), for the block.
  void prefetch(Tag tag) const { live_.prefetch(tag); }
  void prefetch_block(Tag tag) { live_.prefetch_block(tag); }

 private:
  Fate fate_of(const Block& block, const Event& end, bool is_temporary) {
    const std::uint64_t lifetime = live_.clock().now() - block.born;
    const bool knows_touches = untouched_.knows(block.tag, block.size);
    return {.lifetime = lifetime,
            .untouched_bytes = untouched_.end_block(block.tag, block.size),
            .knows_touches = knows_touches,
            .is_temporary = is_temporary,
            .is_short_lived = lifetime <= short_lived_max_,
            .is_of_other_thread = block.thread != end.thread};
  }

  LiveBlocks<Block> live_;
  LastMade last_made_;
  UntouchedBytes untouched_;
  std::uint64_t short_lived_max_;
  bool is_end_unknown_ = false;
};

}  // namespace cmt::analysis
