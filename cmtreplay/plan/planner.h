#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "cmt/event.h"
#include "cmtreplay/plan/slot_pool.h"
#include "cmtreplay/protocol.h"
#include "libcmt/block_table.h"

namespace cmt::replay {

/// What became of an event.
enum class Outcome {
  call,     ///< it is carried out
  failed,   ///< a call that was refused when it was recorded: not asked again
  unknown,  ///< gives back a block that the trace does not know
  other     ///< no call: a thread's start, a mark, a sample
};

/// An event as operations of the worker.
struct Step {
  Outcome outcome = Outcome::other;
  bool keeps_pointer = false;  ///< one returned pointer is kept, in a run that keeps them
  std::uint8_t size = 0;
  std::uint8_t operations = 0;  ///< how many the words make
  bool sized = false;           ///< states the size of what it frees
  bool foreign = false;         ///< needs a block that another lane makes
  std::array<std::uint64_t, 8> storage{};

  std::span<const std::uint64_t> words() const { return std::span(storage).first(size); }
};

/// Bytes and blocks that are asked for and not given back.
struct Live {
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
};

/// Turns events into operations, in recorded order.
///
/// Blocks get slots (slot_pool.h), and on one lane a realloc keeps its own. One hash table operation an event.
///
/// - `realloc(p, 0)` that returned NULL was a free, and is one.
/// - A realloc of an unknown block is a realloc of NULL; the free of one is left out. Both count as unknown.
/// - `malloc(0)` that returned NULL is made and freed at once, since its NULL was never given back.
/// - operator new is malloc (aligned_alloc where it aligns), every delete is free.
/// - A sized free or delete is one where the size stated is the block's; an allocator must not be told lies.
class Planner {
 public:
  enum class Lanes {
    one,
    several,  ///< a block may be taken by another lane than made it: every slot is used once in a window
    in_turn   ///< several, but one at a time: slots are reused as on one
  };

  explicit Planner(Lanes lanes = Lanes::one);

  /// `lane`: which makes the call. Throws std::length_error where more blocks are live than slots can be named.
  Step plan(const Event& event, std::uint32_t lane = 0);

  /// The run-ahead window moves on.
  void begin_epoch() { slots_.begin_epoch(); }

  const Live& live() const { return live_; }
  /// Where the live blocks stand.
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

  Step release(const Event& event);
  Step release_block(const Event& event, const SlottedBlock& block);
  Step allocate(const Event& event);
  Step allocate_nothing(const Event& event);
  Step reallocate(const Event& event);
  Step resize(const Event& event, const SlottedBlock& old);
  void take_out(Step& step, const SlottedBlock& block) const;
  std::uint32_t null_slot();
  void add(Tag tag, std::uint64_t size, std::uint32_t slot);
  std::optional<SlottedBlock> remove(Tag tag);

  bool several_;
  std::uint32_t lane_ = 0;  ///< of the event that is planned
  BlockTable<SlottedBlock> blocks_;
  SlotPool slots_;
  std::vector<std::uint32_t> null_slots_;  ///< by lane, 0: it has none yet
  Live live_;
};

}  // namespace cmt::replay
