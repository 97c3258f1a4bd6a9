/// Turns events into operations of the worker: the first of the two steps of planning (router.h is the second).
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cmt/event.h"
#include "cmtreplay/protocol.h"
#include "libcmt/block_table.h"
#include "libcmt/heap/live_totals.h"

namespace cmt::replay {

/// How an event is replayed.
enum class Outcome {
  call,                ///< as a call
  failed,              ///< not at all: the call was refused when it was recorded
  unknown,             ///< it frees or resizes a block that the trace does not know: a free is left out
  touch,               ///< as writes to pages of a block
  discard,             ///< as a madvise of pages of a block
  give_back,           ///< as a call that gives memory back
  give_back_left_out,  ///< not at all: a call that gives memory back, but might end blocks or write files
  other                ///< not at all: a thread's start, a mark, a sample
};

/// An event as operations of the worker.
struct Step {
  /// Does not set `storage`: its zeros would cost more than the rest of planning.
  explicit Step(Outcome its_outcome = Outcome::other) : outcome(its_outcome) {}

  Outcome outcome;
  bool keeps_pointer = false;            ///< its call returns a pointer, which a run for a new trace keeps
  std::uint8_t size = 0;                 ///< in words
  std::uint8_t operations = 0;           ///< the number of calls in the words
  bool sized = false;                    ///< states the size of the block that it frees
  bool foreign = false;                  ///< needs a block that another lane makes
  std::array<std::uint64_t, 8> storage;  ///< set up to `size`

  std::span<const std::uint64_t> words() const { return std::span(storage).first(size); }
};

/// The order in which the calls of several threads are replayed.
enum class Order {
  one_thread,  ///< on one thread, in recorded order
  free,        ///< on their own threads, which wait only for each other's blocks
  strict       ///< on their own threads, one call at a time, in recorded order
};

/// Assigns numbers of slots to blocks.
///
/// On one lane the slot released last is assigned next: there are as many slots as blocks live at the peak, and they
/// are warm in the cache. In free order a slot that was released in an epoch is assigned again two epochs later, when
/// every lane has passed the release (worker/schedule.h). So there are as many slots as live blocks, and as many more
/// as two epochs release.
class SlotPool {
 public:
  /// `windowed`: for free order.
  explicit SlotPool(bool windowed) : windowed_(windowed) {}

  /// Throws std::length_error if more are assigned than can be numbered.
  std::uint32_t assign() {
    if (ready_.empty()) return assign_new();
    const std::uint32_t slot = ready_.back();
    ready_.pop_back();
    return slot;
  }
  void release(std::uint32_t slot) {
    assert(slot >= slot_first && slot < next_);
    (windowed_ ? current_ : ready_).push_back(slot);
  }
  void begin_epoch();
  void begin_window() { windowed_ = true; }

  /// The free slots that would be assigned next.
  const std::vector<std::uint32_t>& ready() const { return ready_; }

  /// Entries that the slot table needs.
  std::uint64_t size() const { return next_; }

 private:
  std::uint32_t assign_new();

  bool windowed_;
  std::uint32_t next_ = slot_first;
  std::vector<std::uint32_t> ready_;               ///< the next one is at the back
  std::vector<std::uint32_t> previous_, current_;  ///< released in the epoch before, and in this one
};

/// Turns events into operations, in recorded order.
///
/// Each block gets a slot, and on one lane a realloc keeps its slot. An event costs one hash table operation.
///
/// - A `realloc(p, 0)` that returned NULL was a free, and is replayed as one.
///
/// - A realloc of an unknown block is replayed as a realloc of NULL. A free of an unknown block is left out. Both count
///   as unknown.
///
/// - A `malloc(0)` that returned NULL is replayed and freed at once, since the program never freed its NULL.
///
/// - operator new is replayed as malloc, or as aligned_alloc if it states an alignment. Every delete is a free.
///
/// - Touched pages are written by the lane that made the block or touched it last. With several lanes the block then
///   moves to another slot, and the operation that ends it waits there. So no lane ends a block before it is written.
///
/// - A free or delete that states a size is replayed as sized only if the block has that size. With another size the
///   replay would have a bug that the program did not have.
class Planner {
 public:
  explicit Planner(Order order = Order::one_thread)
      : several_(order != Order::one_thread), slots_(order == Order::free) {}

  /// `lane` makes the call. Throws std::length_error if more blocks are live than slots can be numbered.
  Step plan(const Event& event, std::uint32_t lane = 0);

  /// The run-ahead window moves on by an epoch.
  void begin_epoch() { slots_.begin_epoch(); }

  /// Called when a second thread begins: from now on there are several lanes, in this order. Returns the slots that the
  /// worker must then empty, since on one lane a slot keeps the pointer of a block that was freed.
  const std::vector<std::uint32_t>& begin_several(Order order);

  /// The lane that has a block, or nothing if the trace does not know the block.
  std::optional<std::uint32_t> lane_of(Tag tag) {
    const SlottedBlock* const block = blocks_.find(tag);
    return block == nullptr ? std::nullopt : std::optional(block->lane);
  }

  /// Prefetches the memory that plan() will read for a block. Called some events ahead.
  void prefetch(Tag tag) const { blocks_.prefetch(tag); }

  const heap::LiveTotals& live() const { return live_; }
  /// The slots of the live blocks.
  std::vector<std::uint32_t> live_slots() const;

  /// Entries that the slot table needs.
  std::uint64_t slots() const { return slots_.size(); }

 private:
  struct SlottedBlock {
    Tag tag = 0;
    std::uint64_t size = 0;
    std::uint32_t slot = 0;
    std::uint32_t lane = 0;
  };

  Step touch(const Event& event);
  Step discard(const Event& event);
  Step on_pages(Outcome outcome, enum control_word control, SlottedBlock block,
                std::initializer_list<std::uint64_t> words);
  Step release(const Event& event);
  Step release_block(const Event& event, const SlottedBlock& block);
  Step allocate(const Event& event);
  Step allocate_nothing(const Event& event);
  Step reallocate(const Event& event);
  Step resize(const Event& event, SlottedBlock old);
  void append_take(Step& step, const SlottedBlock& block) const;
  std::uint32_t null_slot();
  void insert_block(Tag tag, std::uint64_t size, std::uint32_t slot);
  const SlottedBlock* remove_block(Tag tag);

  bool several_;
  std::uint32_t lane_ = 0;  ///< the lane of the event that is planned
  BlockTable<SlottedBlock> blocks_;
  SlotPool slots_;
  std::vector<std::uint32_t> null_slots_;  ///< by lane; 0: none yet
  heap::LiveTotals live_;
};

}  // namespace cmt::replay
