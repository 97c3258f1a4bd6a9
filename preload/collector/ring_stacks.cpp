#include "preload/collector/ring_stacks.h"

#include <cstring>
#include <string>

#include "cmt/event.h"

namespace cmt::collector {

RingStacks::RingStacks(const StackShare* share, bool has_stacks_of_frees, TimeOf time_of, std::uint32_t limit)
    : share_(share), time_of_(std::move(time_of)), limit_(limit) {
  for (const Kind kind : known_kinds) {
    const KindTraits& its = traits(kind);
    has_stack_[static_cast<std::size_t>(kind)] = its.allocates || (its.releases && has_stacks_of_frees);
  }
}

FrameId RingStacks::resolve(std::uint32_t index) {
  if (share_ == nullptr || index >= unwind_rules_max) return 0;
  const std::uint64_t key = __atomic_load_n(&share_->table.rule[index].key, __ATOMIC_RELAXED);
  if (key == 0) return 0;
  const Frame frame{.module = module_at(share_->module_of_rule[index]),
                    .address = key & ~UNWIND_EXACT,
                    .is_exact = (key & UNWIND_EXACT) != 0};
  if (index >= frames_.size()) frames_.resize(std::max<std::size_t>(index + 1, frames_.size() * 2));
  return frames_[index] = table_.add_frame(frame);
}

/// The module with a number of StackShare::module, counted from 1.
ModuleId RingStacks::module_at(std::uint32_t number) {
  if (number == 0 || number > stack_modules_max) return 0;
  if (number > modules_.size()) modules_.resize(number);
  KnownModule& known = modules_[number - 1];
  if (known.id == 0) known.id = add_module(share_->module[number - 1]);
  return known.id;
}

ModuleId RingStacks::add_module(const StackModule& entry) {
  Module module{.begin = entry.begin, .end = entry.end, .bias = entry.bias};
  if (entry.path_at < stack_text_bytes) {
    const char* const path = share_->text + entry.path_at;
    module.path.assign(path, ::strnlen(path, stack_text_bytes - entry.path_at));
  }
  const std::size_t build_id_bytes = std::min<std::size_t>(entry.build_id_bytes, stack_build_id_max);
  module.build_id.assign(reinterpret_cast<const char*>(entry.build_id), build_id_bytes);
  // Times that were translated twice may differ.
  const auto same = std::find_if(unmet_modules_.begin(), unmet_modules_.end(), [&](ModuleId id) {
    module.loaded_ns = table_.module(id).loaded_ns;
    module.unloaded_ns = table_.module(id).unloaded_ns;
    return module == table_.module(id);
  });
  if (same != unmet_modules_.end()) {
    const ModuleId id = *same;
    unmet_modules_.erase(same);
    return id;
  }
  module.loaded_ns = time_of_(entry.loaded);
  module.unloaded_ns = unknown;
  return table_.add_module(module);
}

void RingStacks::note_unloaded() {
  for (std::size_t i = 0; i < modules_.size(); ++i) {
    KnownModule& known = modules_[i];
    if (known.id == 0) continue;
    const std::uint64_t unloaded = __atomic_load_n(&share_->module[i].unloaded, __ATOMIC_ACQUIRE);
    if (unloaded == known.unloaded) continue;
    known.unloaded = unloaded;
    table_.set_unloaded(known.id, unloaded != 0 ? time_of_(unloaded) : unknown);
  }
}

void RingStacks::restore(const StackTable& trace) {
  for (ModuleId id = static_cast<ModuleId>(restored_modules_.size()); id < trace.module_count(); ++id) {
    restored_modules_.push_back(table_.add_module(trace.module(id)));
    unmet_modules_.push_back(restored_modules_.back());
  }
  for (ModuleId id = 1; id < restored_modules_.size(); ++id)
    table_.set_unloaded(restored_modules_[id], trace.module(id).unloaded_ns);
  for (FrameId id = static_cast<FrameId>(restored_frames_.size()); id < trace.frame_count(); ++id) {
    Frame frame = trace.frame(id);
    frame.module = restored_modules_[frame.module];
    restored_frames_.push_back(table_.add_frame(frame));
  }
  for (StackId id = static_cast<StackId>(restored_nodes_.size()); id < trace.node_count(); ++id) {
    const StackNode& node = trace.node(id);
    restored_nodes_.push_back(table_.add_node({restored_nodes_[node.parent], restored_frames_[node.frame]}));
  }
}

void StackChain::resume(StackId stack) {
  nodes_.clear();
  const StackTable& table = stacks_->table();
  for (StackId at = stack; at != 0; at = table.node(at).parent) {
    if (table.node(at).frame != 0) nodes_.push_back(at);
  }
  std::reverse(nodes_.begin(), nodes_.end());
  depth_ = static_cast<std::uint32_t>(nodes_.size());
  last_ = stack;
  is_known_ = stack != 0;
}

void StackChain::begin_stack(const Slot& record) {
  if (left_ != 0) end_incomplete();
  std::uint32_t frames[stack_frames_first];
  const StackRecord stack = stack_of_slot(&record, frames);
  left_ = stack.added;
  is_apart_ = stack.is_apart;
  is_sound_ = stack.kept == 0;
  is_short_ = false;
  at_ = 0;
  if (!is_apart_) keep(stack);
  if (stack.kept == 0 && stack.is_cut && left_ != 0) at_ = stacks_->add_cut_root();
  add_frames(frames, stack_frames_first);
}

/// Cuts the ring's last stack to the frames that the next one has too.
void StackChain::keep(const StackRecord& next) {
  const bool follows = number_ == any || next.number == (number_ + 1) % stack_numbers;
  is_sound_ = next.kept == 0 || (is_known_ && follows && next.kept <= depth_);
  number_ = next.number;
  depth_ = is_sound_ ? next.kept : 0;
  if (complete_ >= depth_) complete_ = any;
  is_short_ = complete_ != any;
  if (depth_ != 0) at_ = nodes_[depth_ - 1];
  if (nodes_.size() < depth_ + next.added) nodes_.resize(depth_ + next.added);
}

void StackChain::add_frames(const std::uint32_t* frames, std::uint32_t count) {
  count = std::min(count, left_);
  left_ -= count;
  for (std::uint32_t i = 0; is_sound_ && i < count; ++i) {
    const FrameId frame = stacks_->frame(frames[i]);
    is_sound_ = frame != 0;
    if (is_sound_) add_frame(frame);
  }
  if (left_ == 0) end_stack();
}

void StackChain::add_frame(FrameId frame) {
  if (!is_short_) {
    const StackId inner = stacks_->add_node(at_, frame);
    if (inner != 0) {
      at_ = inner;
    } else {
      is_short_ = true;
      if (!is_apart_) complete_ = depth_;
      if (at_ == 0) at_ = stacks_->add_cut_root();
    }
  }
  if (!is_apart_) nodes_[depth_++] = at_;
}

void StackChain::end_stack() {
  if (is_apart_) {
    has_apart_ = true;
    is_apart_short_ = is_short_;
    apart_ = is_sound_ ? at_ : 0;
    return;
  }
  is_known_ = is_sound_;
  is_last_short_ = is_short_;
  last_ = is_sound_ ? at_ : 0;
}

/// Another record stands where the stack's next frames should be.
void StackChain::end_incomplete() {
  is_sound_ = false;
  left_ = 0;
  end_stack();
}

void StackChain::forget() { *this = StackChain(*stacks_); }

}  // namespace cmt::collector
