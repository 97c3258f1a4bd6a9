/// Chooses stacks by --focus and --ignore.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "analysis/stacks/labels.h"
#include "cmt/stacks.h"

namespace cmt::analysis {

/// Finds the stacks with a function that matches an expression.
class MatchingStacks {
 public:
  /// `expression`: an extended regular expression for names of functions, of source files, of lines ("rows.py:41") and
  /// of libraries. An empty one matches no stack.
  MatchingStacks(const StackTable& stacks, const std::string& expression);

  bool has(StackId stack) const { return nodes_[stack]; }

 private:
  bool matches(NamePattern& pattern, FrameId frame);

  const StackTable& stacks_;
  std::vector<bool> nodes_;
  std::vector<std::string> libraries_;  // by frame
  std::deque<std::string> lines_;       // of source files
};

/// The message where a selection has no stack, as after a typing mistake.
inline constexpr const char* no_stack_matches =
    "no stack has a function, file, line or library that is asked for (--focus, --ignore)";

/// Returns the uses (groups/group.h) of the stacks with a function that matches `focus` and none that matches
/// `ignored`. An empty `focus` keeps all stacks; an empty `ignored` leaves out none.
template <class SomeUses>
SomeUses select_stacks(SomeUses uses, const StackTable& stacks, const std::string& focus, const std::string& ignored) {
  const MatchingStacks focused(stacks, focus), left_out(stacks, ignored);
  std::erase_if(uses.entries, [&](const auto& entry) {
    return (!focus.empty() && !focused.has(entry.key)) || left_out.has(entry.key);
  });
  return uses;
}

}  // namespace cmt::analysis
