#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cmt/event.h"
#include "libcmt/heap/live_totals.h"
#include "lifetimes/last_made.h"
#include "lifetimes/live_blocks.h"
#include "lifetimes/summary.h"

namespace cmt::lifetimes {

/// A figure by which call stacks are compared.
enum class Metric { bytes, blocks, peak, live, temporary };

/// The allocations of a stack, or of many. A realloc counts as an allocation of the new size by the stack that called
/// it, and ends the old block.
struct Use {
  Amount allocated;
  Amount peak;    ///< live when the whole trace's live bytes were at their peak
  Amount leaked;  ///< live at the end
  std::uint64_t temporary = 0;

  Use& operator+=(const Use& more);
  std::uint64_t metric(Metric metric) const;
};

template <class Visitor, output::DescribedAs<Use> U>
void describe(Visitor& field, U& use) {
  field("allocated_blocks", use.allocated.blocks, "blocks made");
  field("allocated_bytes", use.allocated.bytes, "bytes asked for by them");
  field("peak_blocks", use.peak.blocks, "of these: live at the trace's peak of live bytes");
  field("peak_bytes", use.peak.bytes, "their bytes");
  field("leaked_blocks", use.leaked.blocks, "of these: still live at the end");
  field("leaked_bytes", use.leaked.bytes, "their bytes");
  field("temporary_blocks", use.temporary, "of these: freed by the next event of the thread that made them");
}

/// The stacks that have allocated, with what they have.
struct StackUses {
  struct Entry {
    StackId stack;
    Use use;
  };
  std::vector<Entry> stacks;  ///< by rising number; 0 is that of allocations whose stack is not known
  std::uint64_t events = 0;
  std::uint64_t peak_event = 0;
  std::uint64_t peak_time_ns = unknown;
};

/// Counts the allocations of each stack, event by event. Memory: some 60 bytes a live block, 64 bytes a stack that
/// allocates, and 4 bytes a node of the tree of stacks.
class StackUseCounter {
 public:
  /// Borrows `complaints`.
  explicit StackUseCounter(command::Complaints& complaints) : live_(heap::Clock::Unit::events, complaints) {}

  void count_event(const Event& event);

  /// To be called once.
  StackUses finish();

 private:
  struct Block {
    Tag tag = 0;
    std::uint64_t size = 0;
    std::uint64_t born = 0;
    StackId stack = 0;
  };
  struct Counter {
    StackId stack = 0;
    Amount allocated;
    heap::AtPeak<Amount> live;
    std::uint64_t temporary = 0;
  };

  Counter& counter_of(StackId stack);

  LiveBlocks<Block> live_;
  LastMade last_made_;
  std::vector<std::uint32_t> index_;  // by stack: its place in counters_ + 1; 0: none
  std::vector<Counter> counters_;
  Amount live_total_;
  std::uint64_t peak_bytes_ = 0;
  std::uint64_t peaks_ = 1;  // 0 would be a value that was never saved
  StackUses uses_;
};

}  // namespace cmt::lifetimes
