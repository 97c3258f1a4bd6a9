// Returns both ends of a deep stack without a walk over its middle.
#include "analysis/groups/stack_ends.h"

#include <algorithm>
#include <cassert>

namespace cmt::analysis {

StackEnds::StackEnds(const StackTable& stacks) : stacks_(stacks), depths_(stacks.node_count()), ends_(depths_.size()) {
  for (StackId id = 1; id < stacks.node_count(); ++id) {
    const StackNode& node = stacks.node(id);
    depths_[id] = depths_[node.parent] + std::max<std::uint64_t>(stacks.names(node.frame).size(), 1);
    ends_[id] = depths_[node.parent] >= outer_lines_max ? ends_[node.parent] : id;
  }
}

std::vector<StackLine> StackEnds::lines(StackId stack, std::uint64_t& left_out) const {
  assert(stack < depths_.size());
  const std::uint64_t depth = depths_[stack];
  left_out = depth > inner_lines_max + outer_lines_max ? depth - inner_lines_max - outer_lines_max : 0;
  std::vector<StackLine> found = lines_of(stack, left_out == 0 ? depth : inner_lines_max);
  if (left_out == 0) return found;
  found.resize(inner_lines_max);
  const std::vector<StackLine> outer = lines_of(ends_[stack], depth);
  assert(outer.size() >= outer_lines_max);
  found.insert(found.end(), outer.end() - outer_lines_max, outer.end());
  return found;
}

/// Returns at least `count` lines: the frame that completes them adds all of its lines.
std::vector<StackLine> StackEnds::lines_of(StackId stack, std::uint64_t count) const {
  std::vector<StackLine> found;
  for (StackId at = stack; at != 0 && found.size() < count; at = stacks_.node(at).parent) {
    const FrameId frame = stacks_.node(at).frame;
    const std::span<const FrameName> names = stacks_.names(frame);
    if (names.empty()) found.push_back({function_text(stacks_, frame, nullptr), library_text(stacks_, frame), {}, {}});
    for (const FrameName& each : names) {
      StackLine line{function_text(stacks_, frame, &each), library_text(stacks_, frame), {}, {}};
      if (!each.file.empty()) line.file = std::string(each.file);
      if (each.line != 0) line.line = each.line;
      found.push_back(std::move(line));
    }
  }
  return found;
}

}  // namespace cmt::analysis
