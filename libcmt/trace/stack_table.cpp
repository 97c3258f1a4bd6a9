#include <algorithm>

#include "cmt/stacks.h"

namespace cmt {

StackTable::StackTable() : modules_(1), frames_(1), nodes_(1), slots_(1024) { frame_ids_.emplace(Frame{}, 0); }

std::span<const FrameName> StackTable::names(FrameId id) const {
  return id < names_.size() ? std::span<const FrameName>(names_[id]) : std::span<const FrameName>();
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

// The node's slot, or the free one where it belongs.
std::size_t StackTable::slot_of(const StackNode& node) const {
  const std::uint64_t key = std::uint64_t{node.parent} << 32 | node.frame;
  std::size_t slot = (key * 0x9e3779b97f4a7c15) >> 32 & (slots_.size() - 1);
  while (slots_[slot] != 0 && !(nodes_[slots_[slot]] == node)) slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

void StackTable::grow_slots() {
  slots_.assign(slots_.size() * 2, 0);
  for (StackId id = 1; id < node_count(); ++id) {
    if (nodes_[id].parent + 1 != id) slots_[slot_of(nodes_[id])] = id;
  }
}

StackId StackTable::add_in_slots(const StackNode& node) {
  const std::size_t slot = slot_of(node);
  if (slots_[slot] != 0) return slots_[slot];
  const StackId id = node_count();
  nodes_.push_back(node);
  slots_[slot] = id;
  if (++used_slots_ * 2 > slots_.size()) grow_slots();
  return id;
}

StackId StackTable::find_node(const StackNode& node) const {
  const StackId next = node.parent + 1;
  return next < nodes_.size() && nodes_[next] == node ? next : slots_[slot_of(node)];
}

std::string_view StackTable::keep(std::string_view text) {
  const auto known = known_texts_.find(text);
  if (known != known_texts_.end()) return known->second;
  const std::string_view kept = texts_.emplace_back(text);
  known_texts_.emplace(kept, kept);
  return kept;
}

void StackTable::set_names(FrameId id, std::span<const FrameName> names) {
  if (names_.size() <= id) names_.resize(id + 1);
  names_[id].clear();
  for (const FrameName& name : names) names_[id].push_back({keep(name.function), keep(name.file), name.line});
}

}  // namespace cmt
