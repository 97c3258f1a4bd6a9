// Marks each node below a frame that matches: a parent has a lower number than its children.
#include "analysis/stacks/selection.h"

#include <cassert>

namespace cmt::analysis {

MatchingStacks::MatchingStacks(const StackTable& stacks, const std::string& expression)
    : stacks_(stacks), nodes_(stacks.node_count()) {
  NamePattern pattern(expression);
  if (pattern.is_empty()) return;
  for (FrameId frame = 0; frame < stacks.frame_count(); ++frame) libraries_.push_back(library_text(stacks, frame));
  std::vector<bool> frames(stacks.frame_count());
  for (FrameId frame = 1; frame < stacks.frame_count(); ++frame) frames[frame] = matches(pattern, frame);
  for (StackId node = 1; node < stacks.node_count(); ++node) {
    assert(stacks.node(node).parent < node);  // so what is known of the parent is known already
    nodes_[node] = nodes_[stacks.node(node).parent] || frames[stacks.node(node).frame];
  }
}

bool MatchingStacks::matches(NamePattern& pattern, FrameId frame) {
  for (const FrameName& name : stacks_.names(frame)) {
    if (pattern.matches_function(name.function) || pattern.matches_place(name.file)) return true;
    if (name.line == 0) continue;
    lines_.push_back(std::string(name.file) + ":" + std::to_string(name.line));
    if (pattern.matches_place(lines_.back())) return true;
  }
  return stacks_.frame(frame).module != 0 && pattern.matches_place(libraries_[frame]);
}

}  // namespace cmt::analysis
