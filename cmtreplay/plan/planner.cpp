// Plans each kind of event as planner.h describes.
#include "cmtreplay/plan/planner.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <stdexcept>

#include "cmtreplay/plan/give_back.h"
#include "libcmt/heap/touched_pages.h"

namespace cmt::replay {
namespace {

void push_word(Step& step, std::uint64_t word) {
  assert(step.size < step.storage.size());
  step.storage[step.size++] = word;
}

/// Adds one operation to a step.
void push(Step& step, operation kind, std::uint32_t slot, std::uint64_t size) {
  assert(slot < std::uint32_t{1} << slot_bits);
  const bool wide = size >= SIZE_IN_NEXT_WORD;
  push_word(step, operation_word(kind, slot, wide ? SIZE_IN_NEXT_WORD : static_cast<std::uint32_t>(size)));
  if (wide) push_word(step, size);
  ++step.operations;
}

Step step_of(operation kind, std::uint32_t slot, std::uint64_t size) {
  Step step(Outcome::call);
  step.keeps_pointer = kind != operation_free && kind != operation_free_foreign;
  push(step, kind, slot, size);
  return step;
}

/// An operation with an argument in the next word.
Step step_of(operation kind, std::uint32_t slot, std::uint64_t size, std::uint64_t argument) {
  Step step = step_of(kind, slot, size);
  push_word(step, argument);
  return step;
}

bool is_realloc(Kind kind) { return kind == Kind::realloc || kind == Kind::reallocarray; }

/// The operation that makes a new block.
Step allocation(const Event& event, std::uint32_t slot) {
  switch (event.kind) {
    case Kind::calloc:
      return step_of(operation_calloc, slot, event.size, event.count);
    case Kind::aligned_alloc:
      return step_of(operation_aligned_alloc, slot, event.size, event.alignment);
    case Kind::posix_memalign:
      return step_of(operation_posix_memalign, slot, event.size, event.alignment);
    case Kind::memalign:
      return step_of(operation_memalign, slot, event.size, event.alignment);
    case Kind::valloc:
      return step_of(operation_valloc, slot, event.size);
    case Kind::pvalloc:
      return step_of(operation_pvalloc, slot, event.size);
    case Kind::realloc:
    case Kind::reallocarray:
      return step_of(operation_realloc_new, slot, event.bytes());
    default:
      break;
  }
  if (event.alignment != 0) return step_of(operation_aligned_alloc, slot, event.size, event.alignment);
  return step_of(operation_malloc, slot, event.size);
}

/// The bytes of a block that a touch writes: one on each page that was touched.
struct TouchedBytes {
  std::uint64_t count = 0;
  bool last = false;  ///< and the block's last byte
};

TouchedBytes touched_bytes(const Event& event, std::uint64_t size) {
  if (event.size >= size || event.alignment == 0) return {};
  const std::uint64_t pages = (size - event.size - 1) / event.alignment + 1;  // from the first page to the block's end
  return {.count = event.count == 0 ? pages : std::min(pages, event.count), .last = event.count == 0};
}

}  // namespace

std::uint32_t SlotPool::assign_new() {
  if (next_ == std::uint32_t{1} << slot_bits) throw std::length_error("more than 268,435,454 blocks live at once");
  return next_++;
}

void SlotPool::begin_epoch() {
  assert(windowed_);
  ready_.insert(ready_.end(), previous_.begin(), previous_.end());
  previous_.swap(current_);
  current_.clear();
}

Step Planner::plan(const Event& event, std::uint32_t lane) {
  const KindTraits& kind = traits(event.kind);
  lane_ = lane;
  if (!kind.allocates && !kind.releases) {
    if (event.kind == Kind::discard) return discard(event);
    return names_pages(event.kind) ? touch(event) : give_back_step(event);
  }
  if (event.failed()) return Step(Outcome::failed);
  if (is_realloc(event.kind)) return reallocate(event);
  return kind.releases ? release(event) : allocate(event);
}

const std::vector<std::uint32_t>& Planner::begin_several(Order order) {
  assert(!several_ && order != Order::one_thread);
  several_ = true;
  if (order == Order::free) slots_.begin_window();
  return slots_.ready();
}

Step Planner::touch(const Event& event) {
  const SlottedBlock* const found = blocks_.find(event.old_tag);
  if (found == nullptr) return Step();
  const TouchedBytes bytes = touched_bytes(event, found->size);
  if (bytes.count == 0) return Step();
  return on_pages(Outcome::touch, control_touch, *found,
                  {event.size, bytes.count, event.alignment, bytes.last ? found->size : 0});
}

Step Planner::discard(const Event& event) {
  const SlottedBlock* const found = blocks_.find(event.old_tag);
  if (found == nullptr) return Step();
  const heap::RunBytes bytes = heap::discarded_bytes_of(event, found->size);
  if (bytes.begin == bytes.end) return Step();
  return on_pages(Outcome::discard, control_discard, *found, {bytes.begin, bytes.end - bytes.begin});
}

/// A step on a block that lives on. On several lanes the block moves to another slot, as in resize().
Step Planner::on_pages(Outcome outcome, enum control_word control, SlottedBlock block,
                       std::initializer_list<std::uint64_t> words) {
  Step step(outcome);
  if (several_) {
    append_take(step, block);
    const std::uint32_t slot = slots_.assign();
    slots_.release(block.slot);
    blocks_.erase(block.tag);
    block.slot = slot;
    block.lane = lane_;
    blocks_.insert(block);
  }
  push_word(step, operation_word(operation_control, control, block.slot));
  for (const std::uint64_t word : words) push_word(step, word);
  return step;
}

Step Planner::release(const Event& event) {
  if (event.old_tag == 0) return step_of(operation_free, null_slot(), 0);
  const SlottedBlock* const block = remove_block(event.old_tag);
  if (block == nullptr) return Step(Outcome::unknown);
  slots_.release(block->slot);
  return release_block(event, *block);
}

Step Planner::release_block(const Event& event, const SlottedBlock& block) {
  const bool sized = traits(event.kind).sizes && !traits(event.kind).allocates && event.size == block.size;
  if (!sized) {
    Step step = step_of(block.lane == lane_ ? operation_free : operation_free_foreign, block.slot, 0);
    step.foreign = block.lane != lane_;
    return step;
  }
  Step step(Outcome::call);
  step.sized = true;
  if (several_) append_take(step, block);
  if (std::has_single_bit(event.alignment)) {
    const auto power = static_cast<std::uint32_t>(std::countr_zero(event.alignment));
    push_word(step, operation_word(operation_control, control_alignment, power));
  }
  push(step, operation_free_sized, block.slot, event.size);
  return step;
}

/// Adds a word that takes the block out of its slot, for the next operation.
void Planner::append_take(Step& step, const SlottedBlock& block) const {
  assert(several_ && step.operations == 0);
  step.foreign = block.lane != lane_;
  push_word(step, operation_word(operation_take_block, block.slot, step.foreign ? 1 : 0));
}

Step Planner::allocate(const Event& event) {
  if (event.tag == 0) return allocate_nothing(event);
  const std::uint32_t slot = slots_.assign();
  insert_block(event.tag, event.bytes(), slot);
  return allocation(event, slot);
}

Step Planner::allocate_nothing(const Event& event) {
  const std::uint32_t slot = several_ ? slots_.assign() : std::uint32_t{slot_scratch};
  Step step = allocation(event, slot);
  push(step, operation_free, slot, 0);
  if (several_) slots_.release(slot);
  return step;
}

Step Planner::reallocate(const Event& event) {
  if (event.old_tag == 0) return allocate(event);
  if (event.tag == 0) return release(event);
  if (const SlottedBlock* const old = remove_block(event.old_tag)) return resize(event, *old);
  Step step = allocate(event);
  step.outcome = Outcome::unknown;
  return step;
}

/// Plans a realloc. The pages of the old block were touched when it was made. If it had no more than a page, touching
/// it again is cheaper than reading the old size from a word. On several lanes the new block gets another slot: a lane
/// that waits for it would find the old block in the old slot.
Step Planner::resize(const Event& event, SlottedBlock old) {
  Step step(Outcome::call);
  step.keeps_pointer = true;
  std::uint32_t slot = old.slot;
  if (several_) {
    append_take(step, old);
    slot = slots_.assign();
    slots_.release(old.slot);
  }
  insert_block(event.tag, event.bytes(), slot);
  if (event.kind == Kind::reallocarray) {
    push(step, operation_reallocarray, slot, event.size);
    push_word(step, event.count);
    push_word(step, old.size);
  } else if (old.size > page_bytes) {
    push(step, operation_realloc_from, slot, event.size);
    push_word(step, old.size);
  } else {
    push(step, operation_realloc, slot, event.size);
  }
  return step;
}

/// The slot for a free of NULL. On several lanes a free writes to its slot, so each lane has a slot of its own.
std::uint32_t Planner::null_slot() {
  if (!several_) return slot_null;
  if (lane_ >= null_slots_.size()) null_slots_.resize(lane_ + 1);
  if (null_slots_[lane_] == 0) null_slots_[lane_] = slots_.assign();
  return null_slots_[lane_];
}

void Planner::insert_block(Tag tag, std::uint64_t size, std::uint32_t slot) {
  assert(tag != 0 && slot >= slot_first);
  const SlottedBlock block{.tag = tag, .size = size, .slot = slot, .lane = lane_};
  if (!blocks_.insert(block)) {
    const SlottedBlock* const twice = remove_block(tag);
    assert(twice != nullptr);
    if (!several_) slots_.release(twice->slot);
    blocks_.insert(block);
  }
  live_.add_block(size);
}

std::vector<std::uint32_t> Planner::live_slots() const {
  std::vector<std::uint32_t> slots;
  blocks_.for_each([&slots](const SlottedBlock& block) { slots.push_back(block.slot); });
  return slots;
}

/// Returns the removed block, or null. The pointer is valid until the next block is inserted.
const Planner::SlottedBlock* Planner::remove_block(Tag tag) {
  const SlottedBlock* const block = blocks_.erase(tag);
  if (block != nullptr) live_.remove_block(block->size);
  return block;
}

}  // namespace cmt::replay
