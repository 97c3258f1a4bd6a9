#include "toolkit/allocations/selection.h"

#include <string>
#include <vector>

#include "toolkit/allocations/labels.h"

namespace cmt::allocations {
namespace {

/// Which frames and nodes match an expression.
class Matches {
 public:
  Matches(const StackTable& stacks, const std::string& expression) : stacks_(stacks), nodes_(stacks.node_count()) {
    NamePattern pattern(expression);
    if (pattern.is_empty()) return;
    for (FrameId frame = 0; frame < stacks.frame_count(); ++frame) libraries_.push_back(library_text(stacks, frame));
    std::vector<bool> frames(stacks.frame_count());
    for (FrameId frame = 1; frame < stacks.frame_count(); ++frame) frames[frame] = matches(pattern, frame);
    for (StackId node = 1; node < stacks.node_count(); ++node)  // a parent has a lower number
      nodes_[node] = nodes_[stacks.node(node).parent] || frames[stacks.node(node).frame];
  }

  bool has(StackId stack) const { return nodes_[stack]; }

 private:
  bool matches(NamePattern& pattern, FrameId frame) const {
    for (const FrameName& name : stacks_.names(frame)) {
      if (pattern.matches(name.function) || pattern.matches(name.file)) return true;
    }
    return stacks_.frame(frame).module != 0 && pattern.matches(libraries_[frame]);
  }

  const StackTable& stacks_;
  std::vector<bool> nodes_;
  std::vector<std::string> libraries_;  // by frame
};

}  // namespace

Uses select_stacks(Uses uses, const StackTable& stacks, const std::string& focus, const std::string& ignored) {
  const Matches focused(stacks, focus), left_out(stacks, ignored);
  std::erase_if(uses.entries, [&](const Uses::Entry& entry) {
    return (!focus.empty() && !focused.has(entry.key)) || left_out.has(entry.key);
  });
  return uses;
}

}  // namespace cmt::allocations
