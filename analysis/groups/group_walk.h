/// Forms the groups of a report by stack. A recursive function counts once in each stack: a group counts its
/// occurrences on the current path.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/groups/group.h"
#include "analysis/stacks/stack_tree.h"

namespace cmt::analysis {

/// The place of a group in StackGroups::groups.
enum class GroupNumber : std::uint32_t {};
constexpr std::size_t index_of(GroupNumber group) { return static_cast<std::size_t>(group); }

/// The groups of stacks.
template <class Figures>
struct StackGroups {
  std::vector<GroupOf<Figures>> groups;  ///< without callers and stacks
  std::vector<GroupNumber> own_groups;   ///< for each entry of the uses: the group that it is charged to
};

/// Walks the tree of stacks, from the root to each leaf, and keeps the groups that the path is in. Memory and time grow
/// with the nodes of the stacks, however deep those are.
template <class SomeUses>
class GroupWalk {
 public:
  using Entry = typename decltype(SomeUses::entries)::value_type;
  using Figures = decltype(Entry::use);
  using Metric = typename Figures::Metric;

  GroupWalk(const StackTable& stacks, const SomeUses& uses, Labels& labels, Metric metric)
      : stacks_(stacks),
        uses_(uses),
        labels_(labels),
        metric_(metric),
        own_groups_(uses.entries.size()),
        entry_numbers_(stacks.node_count()) {
    for (std::size_t i = 0; i < uses.entries.size(); ++i) {
      assert(uses.entries[i].key < entry_numbers_.size());
      assert(i == 0 || uses.entries[i - 1].key < uses.entries[i].key);
      entry_numbers_[uses.entries[i].key] = static_cast<std::uint32_t>(i + 1);
    }
  }

  StackGroups<Figures> find_groups() {
    walk();
    StackGroups<Figures> found;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const Group& group = groups_[i];
      found.groups.push_back({.name = std::string(labels_.text(labels_of_groups_[i])),
                              .label = labels_of_groups_[i],
                              .self = group.self,
                              .inclusive = group.inclusive,
                              .largest = (group.own.stack != 0 ? group.own : group.through).stack});
    }
    found.own_groups = std::move(own_groups_);
    return found;
  }

 private:
  /// A stack and its figure by the metric of the report.
  struct Largest {
    StackId stack = 0;
    std::int64_t figure = 0;

    void take_larger(const Largest& other) {
      if (other.figure > figure || stack == 0) *this = other;
    }
  };
  struct Group {
    Figures self{};
    Figures inclusive{};
    Largest own{};      ///< of the stacks that are charged to it
    Largest through{};  ///< of all stacks that it is in
    std::uint32_t on_path = 0;
  };
  /// A node of the path from the root.
  struct Step {
    StackId next_child = 0;
    std::size_t groups_before = 0;
    Figures use{};
    Largest largest{};
  };

  void walk() {
    const StackTree tree(stacks_, uses_);
    std::vector<Step> path;
    enter(path, tree, 0);
    while (!path.empty()) {
      const StackId child = path.back().next_child;
      if (child != 0) {
        path.back().next_child = tree.next_sibling(child);
        enter(path, tree, child);
      } else {
        leave(path);
      }
    }
    assert(path_groups_.empty());
  }

  void enter(std::vector<Step>& path, const StackTree& tree, StackId node) {
    path.push_back({tree.first_child(node), path_groups_.size()});
    if (node != 0) {
      const std::span<const Label> labels = labels_.of_frame(stacks_.node(node).frame);
      for (auto label = labels.rbegin(); label != labels.rend(); ++label) {
        if (label->is_allocation && !path_groups_.empty()) continue;  // the outermost function has no caller to charge
        path_groups_.push_back(group_of(label->text));
        ++group_at(path_groups_.back()).on_path;
      }
    }
    const std::uint32_t number = entry_numbers_[node];
    if (number == 0) return;
    const Entry* const entry = &uses_.entries[number - 1];
    const Largest stack{node, entry->use.metric(metric_)};
    path.back().use = entry->use;
    path.back().largest = stack;
    const GroupNumber own = path_groups_.empty() ? group_of(labels_.intern("[unknown]")) : path_groups_.back();
    own_groups_[number - 1] = own;
    Group& group = group_at(own);
    group.self += entry->use;
    group.own.take_larger(stack);
    if (path_groups_.empty()) group.inclusive += entry->use;
  }

  void leave(std::vector<Step>& path) {
    const Step step = path.back();
    path.pop_back();
    while (path_groups_.size() > step.groups_before) {
      Group& group = group_at(path_groups_.back());
      path_groups_.pop_back();
      assert(group.on_path != 0);
      if (--group.on_path != 0) continue;
      group.inclusive += step.use;
      group.through.take_larger(step.largest);
    }
    if (path.empty()) return;
    path.back().use += step.use;
    path.back().largest.take_larger(step.largest);
  }

  Group& group_at(GroupNumber number) { return groups_[index_of(number)]; }
  GroupNumber group_of(LabelId label) {
    const auto [found, is_new] = ids_.try_emplace(label, static_cast<GroupNumber>(groups_.size()));
    if (is_new) {
      groups_.emplace_back();
      labels_of_groups_.push_back(label);
    }
    return found->second;
  }

  const StackTable& stacks_;
  const SomeUses& uses_;
  Labels& labels_;
  Metric metric_;
  std::unordered_map<LabelId, GroupNumber> ids_;
  std::vector<LabelId> labels_of_groups_;
  std::vector<Group> groups_;
  std::vector<GroupNumber> path_groups_;  // of the path, outermost first
  std::vector<GroupNumber> own_groups_;
  std::vector<std::uint32_t> entry_numbers_;  // by node: the entry's, from 1 on; 0: it has none
};

/// Sorts groups, the largest first; groups for which comes_last() is true come last. Removes the groups below --min and
/// beyond --top, and returns their number.
template <class Group, class SomeUses, class Figures>
std::uint64_t sort_and_cut(std::vector<Group>& groups, const SomeUses& uses, const GroupOptions<Figures>& options) {
  const auto figure = [&](const Group& each) {
    return (options.inclusive ? each.inclusive : each.self).metric(options.metric);
  };
  std::sort(groups.begin(), groups.end(), [&](const Group& a, const Group& b) {
    return figure(a) != figure(b) ? figure(a) > figure(b) : a.name < b.name;
  });
  if constexpr (requires(const Group& each) { each.comes_last(); })
    std::stable_partition(groups.begin(), groups.end(), [](const Group& each) { return !each.comes_last(); });
  const double least = least_figure(uses, options);
  const std::size_t before = groups.size();
  std::erase_if(groups, [&](const Group& each) { return !is_at_least(figure(each), least); });
  if (options.top != 0 && groups.size() > options.top) groups.resize(options.top);
  return before - groups.size();
}

}  // namespace cmt::analysis
