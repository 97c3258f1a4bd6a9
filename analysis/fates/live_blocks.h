/// Keeps the live blocks of a trace by tag, for tools that need no addresses.
#pragma once

#include <string>

#include "cmt/event.h"
#include "libcmt/block_table.h"
#include "libcmt/heap/clock.h"
#include "toolkit/command/complaints.h"
#include "toolkit/trace/trace_tool.h"

namespace cmt::analysis {

/// The live blocks of a trace by tag, and the clock that counts their ages. `Block` has the members tag, size and born.
/// For each event: start_event(), then end_block() if it ends one, then begin_block() if it makes one.
template <class Block>
class LiveBlocks {
 public:
  /// Borrows `complaints`.
  LiveBlocks(heap::Clock::Unit unit, command::Complaints& complaints) : complaints_(complaints), clock_(unit) {}

  const heap::Clock& clock() const { return clock_; }
  std::size_t size() const { return table_.size(); }

  /// Begins at a late start, instead of following the events before it. Sets the clock, and the tag of the first block
  /// that the trace makes. add_early() adds the blocks that are live.
  void start_late(std::uint64_t now, Tag first) {
    clock_.start_at(now);
    first_tag_.note(first);
  }
  void add_early(const Block& block) { table_.insert(block); }

  void start_event(const Event& event) { clock_.advance_to(event); }

  /// Removes the block of a tag and returns it, valid until the next change. Returns null if no such block is live.
  /// Then the block is from before the trace, or it has ended already, which is reported.
  const Block* end_block(Tag tag) {
    const Block* const block = table_.erase(tag);
    if (block == nullptr && first_tag_.is_made_here(tag)) report(tag, "is ended but not live");
    return block;
  }

  /// Returns whether the trace makes the block; false for a block from before the trace.
  bool is_made_here(Tag tag) const { return first_tag_.is_made_here(tag); }

  /// Returns the live block of a tag, or null.
  const Block* find(Tag tag) { return table_.find(tag); }

  /// Adds the block that an event makes. `block` has the members beyond tag, size and born. Returns false if its tag is
  /// live already, which is reported.
  bool begin_block(const Event& event, Block block = {}) {
    first_tag_.note(event.tag);
    clock_.count_allocated(event.bytes());
    if (table_.insert(completed(event, block))) return true;
    report(event.tag, "is made but live already");
    return false;
  }

  /// Replaces the live block by the event's after begin_block() returned false. Returns the replaced block.
  Block replace_block(const Event& event, Block block = {}) {
    const Block replaced = *table_.erase(event.tag);
    table_.insert(completed(event, block));
    return replaced;
  }

  /// Fetch the memory of a tag into the cache: prefetch() the place of its block, prefetch_block() later the block.
  void prefetch(Tag tag) const { table_.prefetch(tag); }
  void prefetch_block(Tag tag) { table_.prefetch_block(tag); }

  template <class Visit>
  void for_each(Visit visit) const {
    table_.for_each(visit);
  }

 private:
  Block completed(const Event& event, Block block) const {
    block.tag = event.tag;
    block.size = event.bytes();
    block.born = clock_.now();
    return block;
  }
  void report(Tag tag, const char* what) { complaints_.add("block <" + std::to_string(tag) + "> " + what); }

  command::Complaints& complaints_;
  heap::Clock clock_;
  BlockTable<Block> table_;
  trace::FirstTag first_tag_;
};

}  // namespace cmt::analysis
