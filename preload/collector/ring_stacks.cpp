// Decodes records of call stacks: RingStacks resolves frames and modules, StackChain keeps a ring's last stack.

#include "preload/collector/ring_stacks.h"

#include <sys/mman.h>

#include <cassert>
#include <cstring>
#include <new>
#include <string>

#include "cmt/event.h"
#include "libcmt/text/utf8.h"

namespace cmt::collector {
namespace {

/// The text at an offset of the interpreters' texts, of which the first is empty. It is valid UTF-8, and short, also in
/// damaged rings.
std::string interpreter_text(const InterpreterFrames& all, std::uint32_t at) {
  if (at == 0 || at >= interpreter_text_bytes) return {};
  const std::size_t most = std::min<std::size_t>(interpreter_text_bytes - at, RingStacks::name_bytes_max);
  return text::to_line({all.text + at, ::strnlen(all.text + at, most)});
}

}  // namespace

FrameId* RingStacks::map_frames() {
  void* memory = ::mmap(nullptr, frames_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return static_cast<FrameId*>(memory);
}

void RingStacks::Unmap::operator()(FrameId* frames) const { ::munmap(frames, frames_bytes); }

RingStacks::RingStacks(const StackShare* share, bool has_stacks_of_frees, TimeOf time_of, std::uint32_t limit)
    : share_(share), time_of_(std::move(time_of)), limit_(limit), frames_(map_frames()) {
  for (const Kind kind : known_kinds) {
    const KindTraits& its = traits(kind);
    const bool makes = its.allocates || kind == Kind::pool_malloc;
    const bool has_stack = makes || ((its.releases || kind == Kind::pool_free) && has_stacks_of_frees);
    stack_masks_[static_cast<std::size_t>(kind)] = has_stack ? ~StackId{0} : 0;
  }
}

FrameId RingStacks::resolve(std::uint32_t index) {
  if (share_ == nullptr) return 0;
  if (index >= interpreter_frames_first) return frames_[index] = resolve_line(index - interpreter_frames_first);
  if (index >= unwind_rules_max) return 0;
  const std::uint64_t key = __atomic_load_n(&share_->table.rule[index].key, __ATOMIC_RELAXED);
  if (key == 0) return 0;
  const Frame frame{.module = module_at(share_->module_of_rule[index]),
                    .address = key & ~UNWIND_EXACT,
                    .is_exact = (key & UNWIND_EXACT) != 0};
  return frames_[index] = table_.add_frame(frame);
}

/// A line of an interpreter's program. Its address is its number, counted from 1. A line without a name gets the
/// interpreter's, since older readers look for a nameless frame in a file.
FrameId RingStacks::resolve_line(std::uint32_t number) {
  const InterpreterFrames& all = share_->interpreter;
  InterpreterFrame line{};
  if (number != 0) {  // the entry of the frame that has no name may have no memory
    if (number >= interpreter_frames_max || number >= __atomic_load_n(&all.used, __ATOMIC_ACQUIRE)) return 0;
    line = all.frame[number];
  }
  const std::string function = interpreter_text(all, line.function_at), file = interpreter_text(all, line.file_at);
  const FrameName name{
      .function = function.empty() ? python_module_path : std::string_view(function), .file = file, .line = line.line};
  const ModuleId module = table_.add_module({.path = std::string(python_module_path)});
  const FrameId id = table_.add_frame({.module = module, .address = number + std::uint64_t{1}, .is_exact = true});
  table_.set_names(id, {&name, 1});
  return id;
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
    assert(share_ != nullptr && i < stack_modules_max);
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
    assert(frame.module < restored_modules_.size());
    frame.module = restored_modules_[frame.module];
    restored_frames_.push_back(table_.add_frame(frame));
    if (!trace.names(id).empty()) table_.set_names(restored_frames_.back(), trace.names(id));
  }
  for (StackId id = static_cast<StackId>(restored_nodes_.size()); id < trace.node_count(); ++id) {
    const StackNode& node = trace.node(id);
    assert(node.parent < id && node.frame < restored_frames_.size());
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
  is_known_ = is_plain_ = stack != 0;
}

/// The rest of stack_of_next(): is_plain_ is false, or the record is no event.
StackId StackChain::stack_of_odd(std::uint32_t kind) {
  if (kind == record_owner) forget();
  if (kind >= record_stamp_high || stacks_->stack_mask(kind) == 0) return 0;
  if (left_ != 0) end_incomplete();
  const StackId stack = has_apart_ ? apart_ : last_;
  if (stack == 0) stacks_->note_unknown();
  if (has_apart_ ? is_apart_short_ : is_last_short_) stacks_->note_cut();
  has_apart_ = false;
  is_plain_ = last_ != 0 && !is_last_short_;
  return stack;
}

/// Adds a stack that differs from the last one in a few inner frames, as nearly all do. Returns false for any other
/// stack, which begin_stack() adds.
bool StackChain::add_usual_stack(const Slot& record) {
  const StackRecord stack = stack_head_of_slot(&record);
  const bool is_usual = is_plain_ && !stack.is_apart && stack.number == (number_ + 1) % stack_numbers &&
                        stack.kept != 0 && stack.kept <= depth_ && stack.added <= stack_frames_first &&
                        number_ != any && stack.kept + stack.added <= nodes_.size();
  if (!is_usual) return false;
  assert(left_ == 0);
  StackId* const kept_end = nodes_.data() + stack.kept;
  const SlotPayload frames = payload_of_slot(&record) >> (2 * stack_count_bits);
  const StackId* const end = stacks_->add_nodes(kept_end[-1], frames, stack.added, kept_end);
  if (end != kept_end + stack.added) return false;  // begin_stack() does the same again
  number_ = stack.number;
  depth_ = stack.kept + stack.added;
  last_ = end[-1];
  assert(last_ != 0 && depth_ <= nodes_.size());
  return true;
}

void StackChain::begin_stack(const Slot& record) {
  if (left_ != 0) end_incomplete();
  const StackRecord stack = stack_head_of_slot(&record);
  left_ = stack.added;
  is_apart_ = stack.is_apart;
  is_sound_ = stack.kept == 0;
  is_short_ = false;
  at_ = 0;
  if (left_ > stack_frames_first) is_plain_ = false;  // until all of its frames are there
  if (!is_apart_) keep(stack);
  if (stack.kept == 0 && stack.is_cut && left_ != 0) at_ = stacks_->add_cut_root();
  add_frames(payload_of_slot(&record) >> (2 * stack_count_bits), stack_frames_first);
}

/// Cuts the ring's last stack to the frames that it shares with the next one.
void StackChain::keep(const StackRecord& next) {
  const bool follows = number_ == any || next.number == (number_ + 1) % stack_numbers;
  is_sound_ = next.kept == 0 || (is_known_ && follows && next.kept <= depth_);
  number_ = next.number;
  depth_ = is_sound_ ? next.kept : 0;
  if (complete_ >= depth_) complete_ = any;
  is_short_ = complete_ != any;
  assert(depth_ <= nodes_.size());
  if (depth_ != 0) at_ = nodes_[depth_ - 1];
  if (nodes_.size() < depth_ + next.added) nodes_.resize(depth_ + next.added);
}

/// Adds at most `count` of the stack's next frames. `frames` has their indexes, the first in the lowest bits.
void StackChain::add_frames(SlotPayload frames, std::uint32_t count) {
  count = std::min(count, left_);
  left_ -= count;
  if (is_sound_ && !is_apart_ && !is_short_) {  // nearly always
    assert(depth_ + count <= nodes_.size());
    StackId* const begin = nodes_.data() + depth_;
    const auto added = static_cast<std::uint32_t>(stacks_->add_nodes(at_, frames, count, begin) - begin);
    if (added != 0) at_ = begin[added - 1];
    depth_ += added;
    count -= added;
    frames >>= added * stack_index_bits;
  }
  for (; is_sound_ && count != 0; --count, frames >>= stack_index_bits)
    add_frame(static_cast<std::uint32_t>(frames) & RingStacks::stack_index_mask);
  if (left_ == 0) end_stack();
}

void StackChain::add_frame(std::uint32_t index) {
  const FrameId frame = stacks_->frame(index);
  is_sound_ = frame != 0;
  if (!is_sound_) return;
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
  assert(is_apart_ || depth_ < nodes_.size());
  if (!is_apart_) nodes_[depth_++] = at_;
}

void StackChain::end_stack() {
  if (is_apart_) {
    has_apart_ = true;
    is_plain_ = false;
    is_apart_short_ = is_short_;
    apart_ = is_sound_ ? at_ : 0;
    return;
  }
  is_known_ = is_sound_;
  is_last_short_ = is_short_;
  last_ = is_sound_ ? at_ : 0;
  is_plain_ = last_ != 0 && !is_short_ && !has_apart_;
}

/// Ends a stack whose next frames are missing: another record is in their place.
void StackChain::end_incomplete() {
  is_sound_ = false;
  left_ = 0;
  end_stack();
}

void StackChain::forget() { *this = StackChain(*stacks_); }

}  // namespace cmt::collector
