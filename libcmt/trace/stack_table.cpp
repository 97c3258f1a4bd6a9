// Gives equal nodes, frames and modules one number. Nearly all nodes are found without a hash: they follow their
// parent.

#include <algorithm>
#include <cassert>

#include "cmt/stacks.h"

namespace cmt {

StackTable::StackTable() : modules_(1), frames_(1), nodes_(1), slots_(std::size_t{1} << (64 - slot_shift_)) {
  frame_ids_.emplace(Frame{}, 0);
}

std::span<const FrameName> StackTable::names(FrameId id) const {
  const auto found = names_.find(id);
  return found == names_.end() ? std::span<const FrameName>() : std::span<const FrameName>(found->second);
}

ModuleId StackTable::add_module(const Module& module) {
  const auto found = std::find(modules_.begin() + 1, modules_.end(), module);
  return found == modules_.end() ? append_module(module) : static_cast<ModuleId>(found - modules_.begin());
}

ModuleId StackTable::append_module(const Module& module) {
  modules_.push_back(module);
  return module_count() - 1;
}

FrameId StackTable::add_frame(const Frame& frame) {
  const auto [place, is_new] = frame_ids_.try_emplace(frame, frame_count());
  if (is_new) frames_.push_back(frame);
  return place->second;
}

/// The node's slot, or the free slot where it belongs. Sets `tag` to the bits that such a slot has above the number.
std::size_t StackTable::slot_of(const StackNode& node, std::uint32_t& tag) const {
  const std::uint64_t hash = (std::uint64_t{node.parent} << 32 | node.frame) * 0x9e3779b97f4a7c15;
  tag = static_cast<std::uint32_t>(hash >> 8) & ~number_mask_;
  std::size_t slot = hash >> slot_shift_;
  assert(used_slots_ < slots_.size());  // so that the search ends
  for (; slots_[slot] != 0; slot = (slot + 1) & (slots_.size() - 1)) {
    if ((slots_[slot] & ~number_mask_) == tag && nodes_[slots_[slot] & number_mask_] == node) break;
  }
  return slot;
}

/// Fills `slots_` anew, with 2^slot_bits slots and a mask for the larger numbers of nodes.
void StackTable::make_slots(unsigned slot_bits, std::uint32_t number_mask) {
  assert(slot_bits < 64 && (number_mask & (number_mask + 1)) == 0);
  slot_shift_ = 64 - slot_bits;
  number_mask_ = number_mask;
  slots_.assign(std::size_t{1} << slot_bits, 0);
  for (StackId id = 1; id < node_count(); ++id) {
    if (nodes_[id].parent + 1 == id) continue;
    std::uint32_t tag = 0;
    assert(id <= number_mask_);
    const std::size_t slot = slot_of(nodes_[id], tag);
    slots_[slot] = tag | id;
  }
}

StackId StackTable::add_in_slots(const StackNode& node) {
  std::uint32_t tag = 0;
  std::size_t slot = slot_of(node, tag);
  if (slots_[slot] != 0) return slots_[slot] & number_mask_;
  const StackId id = node_count();
  if (id > number_mask_) {
    std::uint32_t number_mask = number_mask_;
    while (id > number_mask) number_mask = number_mask << 1 | 1;
    make_slots(64 - slot_shift_, number_mask);
    slot = slot_of(node, tag);
  }
  assert(id <= number_mask_ && slots_[slot] == 0);
  nodes_.push_back(node);
  slots_[slot] = tag | id;
  if (++used_slots_ * 2 > slots_.size()) make_slots(64 - slot_shift_ + 1, number_mask_);
  return id;
}

StackId StackTable::find_node(const StackNode& node) const {
  const StackId next = node.parent + 1;
  if (next < nodes_.size() && nodes_[next] == node) return next;
  std::uint32_t tag = 0;
  return slots_[slot_of(node, tag)] & number_mask_;
}

std::string_view StackTable::keep(std::string_view text) {
  const auto known = known_texts_.find(text);
  if (known != known_texts_.end()) return known->second;
  const std::string_view kept = texts_.emplace_back(text);
  known_texts_.emplace(kept, kept);
  return kept;
}

void StackTable::set_names(FrameId id, std::span<const FrameName> names) {
  std::vector<FrameName> kept;
  names = names.first(std::min(names.size(), frame_names_limit));
  for (const FrameName& name : names) kept.push_back({keep(name.function), keep(name.file), name.line});
  names_[id] = std::move(kept);
}

bool StackTable::add_name(FrameId id, const FrameName& name) {
  std::vector<FrameName>& names = names_[id];
  if (names.size() == frame_names_limit) return false;
  names.push_back({keep(name.function), keep(name.file), name.line});
  return true;
}

}  // namespace cmt
