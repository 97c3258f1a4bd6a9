#include "cmtreplay/planner.h"

#include <initializer_list>
#include <stdexcept>

namespace cmt::replay {
namespace {

constexpr std::uint64_t slots_max = std::uint64_t{1} << slot_bits;
constexpr std::uint64_t page_bytes = 4096;

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
  Step step{.outcome = Outcome::call, .keeps_pointer = kind != operation_free};
  push(step, kind, slot, size, further);
  return step;
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

Step Planner::plan(const Event& event) {
  const KindTraits& kind = traits(event.kind);
  if (!kind.allocates && !kind.releases) return {};
  if (event.failed()) return {.outcome = Outcome::failed};
  if (is_realloc(event.kind)) return reallocate(event);
  return kind.releases ? release(event) : allocate(event);
}

Step Planner::release(const Event& event) {
  if (event.old_tag == 0) return step_of(operation_free, slot_null, 0);
  const auto block = remove(event.old_tag);
  if (!block) return {.outcome = Outcome::unknown};
  free_slots_.push_back(block->slot);
  return step_of(operation_free, block->slot, 0);
}

Step Planner::allocate(const Event& event) {
  if (event.tag == 0) {
    Step step = allocation(event, slot_scratch);
    push(step, operation_free, slot_scratch, 0);
    return step;
  }
  const std::uint32_t slot = take_slot();
  add(event.tag, event.bytes(), slot);
  return allocation(event, slot);
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
/// than to read the old size.
Step Planner::resize(const Event& event, const SlottedBlock& old) {
  add(event.tag, event.bytes(), old.slot);
  if (event.kind == Kind::reallocarray)
    return step_of(operation_reallocarray, old.slot, event.size, {event.count, old.size});
  if (old.size > page_bytes) return step_of(operation_realloc_from, old.slot, event.size, {old.size});
  return step_of(operation_realloc, old.slot, event.size);
}

std::uint32_t Planner::take_slot() {
  if (free_slots_.empty()) {
    if (slot_next_ == slots_max) throw std::length_error("more than 268,435,454 blocks live at once");
    return slot_next_++;
  }
  const std::uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

void Planner::add(Tag tag, std::uint64_t size, std::uint32_t slot) {
  if (const auto twice = remove(tag)) free_slots_.push_back(twice->slot);
  blocks_.insert({.tag = tag, .size = size, .slot = slot});
  live_.bytes += size;
  ++live_.blocks;
}

std::optional<Planner::SlottedBlock> Planner::remove(Tag tag) {
  auto block = blocks_.erase(tag);
  if (!block) return block;
  live_.bytes -= block->size;
  --live_.blocks;
  return block;
}

}  // namespace cmt::replay
