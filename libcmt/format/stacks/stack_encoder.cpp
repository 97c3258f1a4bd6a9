// A program comes to the same places again and again. So a trace has few stacks, and they follow each other in
// patterns. Most bytes of the streams are from the first minutes, when stacks are new:
//
//     main > parse > read_line > realloc        "new stack: 0 frames of the last one go, then main, parse, read_line"
//
//     main > parse > intern > malloc            "new stack: 1 frame goes, then intern"
//
// The encoder writes a new node as "the k-th different function that this caller calls". So a path that is known
// beneath another caller is mostly ones. Numbers of stacks are differences; 0 means the next new stack.

#include <algorithm>
#include <cassert>

#include "libcmt/format/stacks/stack_streams.h"

namespace cmt::format {
namespace {

constexpr std::uint32_t stack_number_limit = (std::uint32_t{1} << 31) - 1;

std::uint64_t time_field(std::uint64_t ns) { return ns == unknown ? 0 : std::min(ns, stack_time_limit) + 1; }

void put_string(VarintWriter& out, std::string_view text, std::size_t limit) {
  text = text.substr(0, limit);
  out.put(text.size());
  out.put(text);
}

template <class Number>
Number& at_grown(std::vector<Number>& numbers, std::size_t index) {
  if (numbers.size() <= index) numbers.resize(std::max(index + 1, numbers.size() * 2));
  return numbers[index];
}

}  // namespace

StackNumber StackEncoder::define(StackId id) {
  assert(table_ != nullptr && id != 0 && nodes_ <= nodes_limit_);
  if (id >= table_->node_count() || stacks_ == stack_number_limit) return {};
  StackId parent = id;
  for (path_.clear(); parent != 0 && at_grown(node_numbers_, parent) == NodeNumber{};
       parent = table_->node(parent).parent) {
    path_.push_back(parent);
  }
  if (path_.size() > nodes_limit_ - nodes_) return {};
  put_attachment(parent);
  definitions_.put(path_.size());
  FrameId caller = table_->node(parent).frame;
  for (auto node = path_.rbegin(); node != path_.rend(); ++node) {
    const FrameId frame = table_->node(*node).frame;
    put_frame(at_grown(frame_numbers_, caller), frame);
    node_numbers_[*node] = NodeNumber{++nodes_};
    caller = frame;
  }
  last_ = id;
  return at_grown(stack_numbers_, id) = StackNumber{++stacks_};
}

/// Puts the node to which the new nodes are attached: by its distance from the last stack's end, or by its number.
void StackEncoder::put_attachment(StackId parent) {
  assert(parent == 0 || node_numbers_[parent] != NodeNumber{});
  StackId at = last_;
  std::uint64_t steps = 0;
  for (; at > parent && steps < attachment_steps; ++steps) at = table_->node(at).parent;
  if (at == parent && steps < attachment_steps) return definitions_.put(steps);
  definitions_.put(attachment_steps + (nodes_ - (parent != 0 ? raw(node_numbers_[parent]) : 0)));
}

void StackEncoder::put_frame(FrameNumber caller, FrameId id) {
  assert(raw(caller) < called_counts_.size());
  const FrameNumber known = id != 0 ? at_grown(frame_numbers_, id) : FrameNumber{};
  const bool is_new = id != 0 && known == FrameNumber{};
  const std::uint64_t number = is_new ? frames_.size() : raw(known);
  const auto [rank, is_new_pair] = ranks_.try_emplace(std::uint64_t{raw(caller)} << 32 | number, 0);
  if (!is_new_pair) return definitions_.put(rank->second);
  rank.value() = ++called_counts_[raw(caller)];
  definitions_.put(std::uint64_t{0});
  if (is_new) return define_frame(id);
  definitions_.put(frames_.size() - number);
}

void StackEncoder::define_frame(FrameId id) {
  const Frame& frame = table_->frame(id);
  definitions_.put(std::uint64_t{0});
  frame_numbers_[id] = FrameNumber{static_cast<std::uint32_t>(frames_.size())};
  frames_.push_back(id);
  called_counts_.push_back(0);
  assert(called_counts_.size() == frames_.size());
  const bool is_new = frame.module != 0 && at_grown(module_numbers_, frame.module) == ModuleNumber{};
  const std::uint64_t module_field = is_new ? 0 : raw(module_numbers_[frame.module]) + std::uint64_t{1};
  definitions_.put(module_field << 1 | (frame.is_exact ? 1 : 0));
  if (is_new) define_module(frame.module);
  WrittenModule& module = modules_[raw(module_numbers_[frame.module])];
  definitions_.put(zigzag(frame.address - module.last_address));
  module.last_address = frame.address;
}

void StackEncoder::define_module(ModuleId id) {
  const Module& module = table_->module(id);
  module_numbers_[id] = ModuleNumber{static_cast<std::uint32_t>(modules_.size())};
  modules_.push_back({id, module.unloaded_ns, module.begin});
  put_string(definitions_, module.path, module_path_limit);
  put_string(definitions_, module.build_id, build_id_limit);
  definitions_.put(module.begin);
  definitions_.put(module.end - module.begin);
  definitions_.put(zigzag(module.begin - module.bias));
  definitions_.put(time_field(module.loaded_ns));
  definitions_.put(time_field(module.unloaded_ns));
}

void StackEncoder::put_unloaded(VarintWriter& out) {
  assert(modules_before_ <= modules_.size());
  const auto went = [this](const WrittenModule& module) {
    return table_->module(module.id).unloaded_ns != module.unloaded_ns;
  };
  const std::span<const WrittenModule> known(modules_.data(), modules_before_);
  out.put(static_cast<std::uint64_t>(std::count_if(known.begin(), known.end(), went)));
  for (std::size_t number = 1; number < known.size(); ++number) {
    if (!went(modules_[number])) continue;
    modules_[number].unloaded_ns = table_->module(modules_[number].id).unloaded_ns;
    out.put(number);
    out.put(time_field(modules_[number].unloaded_ns));
  }
}

std::string StackEncoder::finish_definitions() {
  if (table_ == nullptr) return {};
  VarintWriter out(definitions_.size());
  put_unloaded(out);
  modules_before_ = modules_.size();
  frames_before_ = frames_.size();
  if (definitions_.size() == 0 && out.size() == 1) return {};
  const std::string stacks = definitions_.take();
  out.put(std::string_view(stacks));
  return out.take();
}

/// Removes the entries that need no value, and puts the rule and the others. `newest`: the last stack that is defined
/// before the first of them.
void StackEncoder::put_numbers(VarintWriter& out, std::vector<std::uint32_t>& numbers, std::uint64_t newest) {
  const bool all = std::any_of(numbers.begin(), numbers.end(), [](auto number) { return number > only_releases; });
  if (!all) std::erase(numbers, only_releases);
  out.put(static_cast<std::uint64_t>(all ? StackRule::releasing_too : StackRule::allocating));
  std::uint64_t last = 0;
  out.put_while(numbers.data(), numbers.data() + numbers.size(), [&](std::uint32_t entry, std::uint64_t& value) {
    const std::uint64_t number = entry & ~only_releases;
    const bool is_new = number > newest;
    assert(number <= newest + 1);  // so that 0 can mean the next new one
    if (is_new) newest = number;
    value = is_new ? 0 : zigzag(number - last) + 1;
    last = number;
    return true;
  });
}

std::string StackEncoder::finish_numbers() {
  std::string bytes;
  if (std::any_of(numbers_.begin(), numbers_.end(), [](auto number) { return (number & ~only_releases) != 0; })) {
    VarintWriter out(numbers_.size());
    put_numbers(out, numbers_, stacks_before_);
    bytes = out.take();
  }
  numbers_.clear();
  pool_stacks_before_ = stacks_;
  return bytes;
}

std::string StackEncoder::finish_pool_numbers() {
  bool has_any = false;
  for (std::uint32_t& entry : pool_stacks_) {
    const std::uint32_t number = raw(number_of(entry & ~only_releases));
    entry = (entry & only_releases) | number;
    has_any |= number != 0;
  }
  std::string bytes;
  if (has_any) {
    VarintWriter out(pool_stacks_.size());
    out.put(std::uint64_t{pool_stacks_before_ - stacks_before_});
    put_numbers(out, pool_stacks_, pool_stacks_before_);
    bytes = out.take();
  }
  pool_stacks_.clear();
  stacks_before_ = stacks_;
  return bytes;
}

}  // namespace cmt::format
