#include "cmtreplay/plan/planner.h"

#include <bit>
#include <initializer_list>

namespace cmt::replay {
namespace {

/// Adds one operation to a step.
void push(Step& step, operation kind, std::uint32_t slot, std::uint64_t size,
          std::initializer_list<std::uint64_t> further = {}) {
  const bool wide = size >= SIZE_IN_NEXT_WORD;
  step.storage[step.size++] = operation_word(kind, slot, wide ? SIZE_IN_NEXT_WORD : static_cast<std::uint32_t>(size));
  if (wide) step.storage[step.size++] = size;
  for (const std::uint64_t word : further) step.storage[step.size++] = word;
  ++step.operations;
}

Step step_of(operation kind, std::uint32_t slot, std::uint64_t size,
             std::initializer_list<std::uint64_t> further = {}) {
  Step step{.outcome = Outcome::call, .keeps_pointer = kind != operation_free && kind != operation_free_foreign};
  push(step, kind, slot, size, further);
  return step;
}

void push_control(Step& step, control_word what, std::uint32_t argument) {
  step.storage[step.size++] = operation_word(operation_control, what, argument);
}

bool is_realloc(Kind kind) { return kind == Kind::realloc || kind == Kind::reallocarray; }

/// The operation that makes a block, apart from realloc.
Step allocation(const Event& event, std::uint32_t slot) {
  switch (event.kind) {
    case Kind::calloc:
      return step_of(operation_calloc, slot, event.size, {event.count});
    case Kind::aligned_alloc:
      return step_of(operation_aligned_alloc, slot, event.size, {event.alignment});
    case Kind::posix_memalign:
      return step_of(operation_posix_memalign, slot, event.size, {event.alignment});
    case Kind::memalign:
      return step_of(operation_memalign, slot, event.size, {event.alignment});
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
  if (event.alignment != 0) return step_of(operation_aligned_alloc, slot, event.size, {event.alignment});
  return step_of(operation_malloc, slot, event.size);
}

}  // namespace

Planner::Planner(Lanes lanes)
    : several_(lanes != Lanes::one),
      slots_(lanes == Lanes::several ? SlotPool::Reuse::after_window : SlotPool::Reuse::at_once) {}

Step Planner::plan(const Event& event, std::uint32_t lane) {
  const KindTraits& kind = traits(event.kind);
  lane_ = lane;
  if (!kind.allocates && !kind.releases) return {};
  if (event.failed()) return {.outcome = Outcome::failed};
  if (is_realloc(event.kind)) return reallocate(event);
  return kind.releases ? release(event) : allocate(event);
}

Step Planner::release(const Event& event) {
  if (event.old_tag == 0) return step_of(operation_free, null_slot(), 0);
  const auto block = remove(event.old_tag);
  if (!block) return {.outcome = Outcome::unknown};
  slots_.give_back(block->slot);
  return release_block(event, *block);
}

Step Planner::release_block(const Event& event, const SlottedBlock& block) {
  const bool sized = traits(event.kind).sizes && !traits(event.kind).allocates && event.size == block.size;
  if (!sized) {
    Step step = step_of(block.lane == lane_ ? operation_free : operation_free_foreign, block.slot, 0);
    step.foreign = block.lane != lane_;
    return step;
  }
  Step step{.outcome = Outcome::call, .sized = true};
  if (several_) take_out(step, block);
  if (std::has_single_bit(event.alignment))
    push_control(step, control_alignment, static_cast<std::uint32_t>(std::countr_zero(event.alignment)));
  push(step, operation_free_sized, block.slot, event.size);
  return step;
}

/// Out of its slot, before the operation that needs it.
void Planner::take_out(Step& step, const SlottedBlock& block) const {
  step.foreign = block.lane != lane_;
  step.storage[step.size++] = operation_word(operation_take, block.slot, step.foreign ? 1 : 0);
}

Step Planner::allocate(const Event& event) {
  if (event.tag == 0) return allocate_nothing(event);
  const std::uint32_t slot = slots_.take();
  add(event.tag, event.bytes(), slot);
  return allocation(event, slot);
}

Step Planner::allocate_nothing(const Event& event) {
  const std::uint32_t slot = several_ ? slots_.take() : std::uint32_t{slot_scratch};
  Step step = allocation(event, slot);
  push(step, operation_free, slot, 0);
  if (several_) slots_.give_back(slot);
  return step;
}

Step Planner::reallocate(const Event& event) {
  if (event.old_tag == 0) return allocate(event);
  if (event.tag == 0) return release(event);
  if (const auto old = remove(event.old_tag)) return resize(event, *old);
  Step step = allocate(event);
  step.outcome = Outcome::unknown;
  return step;
}

/// Pages of the old block were touched when it was made. Where that was one page or so it is cheaper to touch it again
/// than to read the old size. On several lanes the new block gets another slot, since in the old one a lane that waits
/// for the new block would find the old.
Step Planner::resize(const Event& event, const SlottedBlock& old) {
  Step step{.outcome = Outcome::call, .keeps_pointer = true};
  std::uint32_t slot = old.slot;
  if (several_) {
    take_out(step, old);
    slot = slots_.take();
    slots_.give_back(old.slot);
  }
  add(event.tag, event.bytes(), slot);
  if (event.kind == Kind::reallocarray)
    push(step, operation_reallocarray, slot, event.size, {event.count, old.size});
  else if (old.size > page_bytes)
    push(step, operation_realloc_from, slot, event.size, {old.size});
  else
    push(step, operation_realloc, slot, event.size);
  return step;
}

/// On several lanes whoever takes a block out of a slot writes to it; so each lane has its own NULL.
std::uint32_t Planner::null_slot() {
  if (!several_) return slot_null;
  if (lane_ >= null_slots_.size()) null_slots_.resize(lane_ + 1);
  if (null_slots_[lane_] == 0) null_slots_[lane_] = slots_.take();
  return null_slots_[lane_];
}

void Planner::add(Tag tag, std::uint64_t size, std::uint32_t slot) {
  const auto twice = remove(tag);
  if (twice && !several_) slots_.give_back(twice->slot);
  blocks_.insert({.tag = tag, .size = size, .slot = slot, .lane = lane_});
  live_.bytes += size;
  ++live_.blocks;
}

std::vector<std::uint32_t> Planner::live_slots() const {
  std::vector<std::uint32_t> slots;
  blocks_.for_each([&slots](const SlottedBlock& block) { slots.push_back(block.slot); });
  return slots;
}

std::optional<Planner::SlottedBlock> Planner::remove(Tag tag) {
  const SlottedBlock* const block = blocks_.erase(tag);
  if (block == nullptr) return std::nullopt;
  live_.bytes -= block->size;
  --live_.blocks;
  return *block;
}

}  // namespace cmt::replay
