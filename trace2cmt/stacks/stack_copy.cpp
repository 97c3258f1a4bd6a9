// Copies a stack from its outermost frame inwards, and remembers the new number of every node, frame and module.

#include "trace2cmt/stacks/stack_copy.h"

#include <algorithm>
#include <cassert>

namespace cmt::trace2cmt {
namespace {

std::uint32_t& copied_number(std::vector<std::uint32_t>& numbers, std::size_t index) {
  if (numbers.size() <= index) numbers.resize(std::max(index + 1, numbers.size() * 2));
  return numbers[index];
}

}  // namespace

cmt::StackId StackCopy::copy(cmt::StackId id) {
  assert(id < from_.node_count());
  cmt::StackId at = id;
  for (path_.clear(); at != 0 && copied_number(stacks_, at) == 0; at = from_.node(at).parent) path_.push_back(at);
  cmt::StackId copied = at != 0 ? stacks_[at] : 0;
  for (auto node = path_.rbegin(); node != path_.rend(); ++node) {
    stacks_[*node] = copied = to_.add_node({copied, copy_frame(from_.node(*node).frame)});
  }
  return copied;
}

cmt::FrameId StackCopy::copy_frame(cmt::FrameId id) {
  if (id == 0 || copied_number(frames_, id) != 0) return id == 0 ? 0 : frames_[id];
  cmt::Frame frame = from_.frame(id);
  frame.module = copy_module(frame.module);
  if (changes_.frame) changes_.frame(frame);
  return frames_[id] = to_.add_frame(frame);
}

cmt::ModuleId StackCopy::copy_module(cmt::ModuleId id) {
  if (id == 0 || copied_number(modules_, id) != 0) return id == 0 ? 0 : modules_[id];
  assert(id < from_.module_count());
  cmt::Module module = from_.module(id);
  if (changes_.module) changes_.module(module);
  return modules_[id] = to_.append_module(module);
}

void StackCopy::copy_names() {
  for (cmt::FrameId id = 1; id < frames_.size(); ++id) {
    if (frames_[id] != 0 && !from_.names(id).empty()) to_.set_names(frames_[id], from_.names(id));
  }
  for (cmt::ModuleId id = 1; id < modules_.size(); ++id) {
    if (modules_[id] == 0) continue;
    cmt::Module module = from_.module(id);
    if (changes_.module) changes_.module(module);
    to_.set_unloaded(modules_[id], module.unloaded_ns);
  }
}

}  // namespace cmt::trace2cmt
