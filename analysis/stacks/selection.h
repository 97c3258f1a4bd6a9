#pragma once

#include <string>
#include <vector>

#include "analysis/stacks/labels.h"
#include "cmt/stacks.h"

namespace cmt::analysis {

/// Which stacks have a function that an expression matches.
class MatchingStacks {
 public:
  /// An extended regular expression, compared with names of functions, of source files and of libraries. Empty: matches
  /// none.
  MatchingStacks(const StackTable& stacks, const std::string& expression);

  bool has(StackId stack) const { return nodes_[stack]; }

 private:
  bool matches(NamePattern& pattern, FrameId frame) const;

  const StackTable& stacks_;
  std::vector<bool> nodes_;
  std::vector<std::string> libraries_;  // by frame
};

/// The uses (groups/group.h) of those stacks that have a function which matches `focus`, and none which matches
/// `ignored`. Empty: all, and none.
template <class SomeUses>
SomeUses select_stacks(SomeUses uses, const StackTable& stacks, const std::string& focus, const std::string& ignored) {
  const MatchingStacks focused(stacks, focus), left_out(stacks, ignored);
  std::erase_if(uses.entries, [&](const auto& entry) {
    return (!focus.empty() && !focused.has(entry.key)) || left_out.has(entry.key);
  });
  return uses;
}

}  // namespace cmt::analysis
