/// Builds the trees of callers of --by=caller, down to a share of the total and to 40 levels.
#pragma once

#include <algorithm>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/groups/group.h"
#include "analysis/stacks/stack_tree.h"

namespace cmt::analysis {

inline constexpr LabelId no_label{0xffffffff};

/// Returns, for each node in the tree, the nearest node from there outwards with a label that is no allocation
/// function's. Without one it is the outermost node with a label; 0: none.
std::vector<StackId> find_labelled(const StackTable& stacks, const StackTree& tree, Labels& labels);

/// A place in a stack: a label of a frame. The callers are the labels from there outwards.
class StackPlace {
 public:
  explicit StackPlace(StackId node) : node_(node) {}

  /// Returns the label at this place and moves one place outwards. Returns no_label at the end of the stack.
  /// `labelled` is the result of find_labelled().
  LabelId next(const StackTable& stacks, const std::vector<StackId>& labelled, Labels& labels);

 private:
  StackId node_;
  std::size_t index_ = 0;
};

/// Builds trees of callers.
template <class Figures>
class CallerTree {
 public:
  struct Part {
    const Figures* use;
    StackPlace place;
    LabelId label = no_label;
  };

  template <class SomeUses>
  CallerTree(const StackTable& stacks, const SomeUses& uses, Labels& labels, const GroupOptions<Figures>& options)
      : stacks_(stacks),
        labels_(labels),
        labelled_(find_labelled(stacks, StackTree(stacks, uses), labels)),
        metric_(options.metric),
        least_(least_figure(uses, options)) {}

  /// Takes a step outwards in the stack of a part.
  LabelId advance(Part& part) { return part.label = part.place.next(stacks_, labelled_, labels_); }

  /// Returns the callers of parts that have come as far as the same functions.
  std::vector<CallerOf<Figures>> callers_of(std::span<Part> parts, std::size_t level) {
    if (level == caller_levels_max) return {};
    for (Part& part : parts) advance(part);
    std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.label < b.label; });
    std::vector<CallerOf<Figures>> callers;
    for (auto begin = parts.begin(); begin != parts.end() && begin->label != no_label;) {
      const auto end = std::find_if(begin, parts.end(), [&](const Part& part) { return part.label != begin->label; });
      CallerOf<Figures> caller{.name = std::string(labels_.text(begin->label)), .use = {}};
      for (auto part = begin; part != end; ++part) caller.use += *part->use;
      if (is_at_least(caller.use.metric(metric_), least_)) {
        caller.callers = callers_of({begin, end}, level + 1);
        callers.push_back(std::move(caller));
      }
      begin = end;
    }
    std::sort(callers.begin(), callers.end(), [this](const CallerOf<Figures>& a, const CallerOf<Figures>& b) {
      const std::int64_t of_a = a.use.metric(metric_), of_b = b.use.metric(metric_);
      return of_a != of_b ? of_a > of_b : a.name < b.name;
    });
    return callers;
  }

 private:
  const StackTable& stacks_;
  Labels& labels_;
  std::vector<StackId> labelled_;
  typename Figures::Metric metric_;
  double least_;
};

/// Adds the tree of callers to each of the groups, which are of functions. A caller has its share of the function's own
/// allocations, and callers of its own. Callers below `options.min` of the total, by `options.metric`, are left out
/// with their callers. Memory: the stacks that have allocated. Time: the same, times the levels of the trees.
template <class Group, class SomeUses, class Figures>
void add_callers(std::vector<Group>& groups, const StackTable& stacks, const SomeUses& uses, Labels& labels,
                 const GroupOptions<Figures>& options) {
  CallerTree<Figures> tree(stacks, uses, labels, options);
  std::unordered_map<LabelId, std::vector<typename CallerTree<Figures>::Part>> parts_of;
  for (const Group& each : groups) parts_of[each.label];
  for (const auto& entry : uses.entries) {
    typename CallerTree<Figures>::Part part{&entry.use, StackPlace(entry.key)};
    const auto found = parts_of.find(tree.advance(part));
    if (found != parts_of.end()) found->second.push_back(part);
  }
  for (Group& each : groups) each.callers = tree.callers_of(parts_of[each.label], 0);
}

}  // namespace cmt::analysis
