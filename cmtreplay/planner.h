#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "cmt/event.h"
#include "cmtreplay/protocol.h"
#include "heap/block_table.h"

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
  std::array<std::uint64_t, 4> storage{};

  std::span<const std::uint64_t> words() const { return std::span(storage).first(size); }
};

/// Bytes and blocks that are asked for and not given back.
struct Live {
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;
};

/// Turns events into operations, in recorded order.
///
/// Blocks get slots: the last freed is reused first, and a realloc keeps its own, so that there are as many as blocks
/// are live at the peak. One hash table operation an event.
///
/// - `realloc(p, 0)` that returned NULL was a free, and is one.
/// - A realloc of an unknown block is a realloc of NULL; the free of one is left out. Both count as unknown.
/// - `malloc(0)` that returned NULL is made and freed at once, since its NULL was never given back.
/// - operator new is malloc (aligned_alloc where it aligns), every delete and every sized free is free.
class Planner {
 public:
  /// Throws std::length_error where more blocks are live than slots can be named.
  Step plan(const Event& event);

  const Live& live() const { return live_; }

  /// Entries that the slot table needs.
  std::uint64_t slots() const { return slot_next_; }

 private:
  struct SlottedBlock {
    Tag tag = 0;
    std::uint64_t size = 0;
    std::uint32_t slot = 0;
  };

  Step release(const Event& event);
  Step allocate(const Event& event);
  Step reallocate(const Event& event);
  Step resize(const Event& event, const SlottedBlock& old);
  std::uint32_t take_slot();
  void add(Tag tag, std::uint64_t size, std::uint32_t slot);
  std::optional<SlottedBlock> remove(Tag tag);

  heap::BlockTable<SlottedBlock> blocks_;
  std::vector<std::uint32_t> free_slots_;
  std::uint32_t slot_next_ = slot_first;
  Live live_;
};

}  // namespace cmt::replay
