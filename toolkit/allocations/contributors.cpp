#include "toolkit/allocations/contributors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "toolkit/allocations/callers.h"
#include "toolkit/allocations/stack_tree.h"

namespace cmt::allocations {
namespace {

using GroupId = std::uint32_t;

constexpr std::array<std::pair<By, std::string_view>, 7> by_names{{{By::function, "function"},
                                                                   {By::caller, "caller"},
                                                                   {By::line, "line"},
                                                                   {By::library, "library"},
                                                                   {By::thread, "thread"},
                                                                   {By::size, "size"},
                                                                   {By::phase, "phase"}}};
constexpr std::array<std::pair<Metric, std::string_view>, 10> metric_names{{{Metric::bytes, "bytes"},
                                                                            {Metric::blocks, "blocks"},
                                                                            {Metric::peak, "peak"},
                                                                            {Metric::live, "live"},
                                                                            {Metric::temporary, "temporary"},
                                                                            {Metric::short_lived, "short-lived"},
                                                                            {Metric::other_thread, "other-thread"},
                                                                            {Metric::reallocated, "reallocated"},
                                                                            {Metric::growth, "growth"},
                                                                            {Metric::untouched, "untouched"}}};

template <class Names, class Value>
std::string_view name_in(const Names& names, Value value) {
  return std::find_if(names.begin(), names.end(), [value](const auto& each) { return each.first == value; })->second;
}
template <class Value, std::size_t count>
std::optional<Value> value_in(const std::array<std::pair<Value, std::string_view>, count>& names,
                              std::string_view text) {
  for (const auto& [value, value_name] : names) {
    if (value_name == text) return value;
  }
  return std::nullopt;
}

Key key_of(By by) { return by == By::line ? Key::line : by == By::library ? Key::library : Key::function; }

/// A stack and its figure by the metric that is sorted by.
struct Largest {
  StackId stack = 0;
  std::int64_t figure = 0;

  void take_larger(const Largest& other) {
    if (other.figure > figure || stack == 0) *this = other;
  }
};

struct Group {
  Use self;
  Use inclusive;
  Lifetimes lifetimes;
  Largest own;      ///< of the stacks that are charged to it
  Largest through;  ///< of all stacks that it is in
  std::uint32_t on_path = 0;
};

/// Goes through the tree of stacks, from the root to each leaf, and keeps which groups the path is in.
class GroupWalk {
 public:
  GroupWalk(const StackTable& stacks, const Uses& uses, Labels& labels, Metric metric)
      : stacks_(stacks), uses_(uses), labels_(labels), metric_(metric) {}

  std::vector<Contributor> contributors() {
    walk();
    std::vector<Contributor> found;
    for (GroupId id = 0; id < groups_.size(); ++id) {
      Group& group = groups_[id];
      found.push_back({.name = std::string(labels_.text(labels_of_groups_[id])),
                       .label = labels_of_groups_[id],
                       .self = group.self,
                       .inclusive = group.inclusive,
                       .lifetimes = std::move(group.lifetimes),
                       .largest = (group.own.stack != 0 ? group.own : group.through).stack,
                       .stack = {}});
    }
    return found;
  }

 private:
  /// A node of the path from the root.
  struct Step {
    StackId next_child = 0;
    std::size_t groups_before = 0;
    Use use{};
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
  }

  void enter(std::vector<Step>& path, const StackTree& tree, StackId node) {
    path.push_back({tree.first_child(node), path_groups_.size()});
    if (node != 0) {
      const std::span<const Label> labels = labels_.of_frame(stacks_.node(node).frame);
      for (auto label = labels.rbegin(); label != labels.rend(); ++label) {
        if (label->is_allocation) continue;
        path_groups_.push_back(group_of(label->text));
        ++groups_[path_groups_.back()].on_path;
      }
    }
    const Uses::Entry* const entry = entry_of(node);
    if (entry == nullptr) return;
    const Largest stack{node, entry->use.metric(metric_)};
    path.back().use = entry->use;
    path.back().largest = stack;
    Group& group = groups_[path_groups_.empty() ? group_of(labels_.intern("[unknown]")) : path_groups_.back()];
    group.self += entry->use;
    add_lifetimes(group.lifetimes, entry->lifetimes);
    group.own.take_larger(stack);
    if (path_groups_.empty()) group.inclusive += entry->use;
  }

  void leave(std::vector<Step>& path) {
    const Step step = path.back();
    path.pop_back();
    while (path_groups_.size() > step.groups_before) {
      Group& group = groups_[path_groups_.back()];
      path_groups_.pop_back();
      if (--group.on_path != 0) continue;
      group.inclusive += step.use;
      group.through.take_larger(step.largest);
    }
    if (path.empty()) return;
    path.back().use += step.use;
    path.back().largest.take_larger(step.largest);
  }

  const Uses::Entry* entry_of(StackId node) const {
    const auto found = std::lower_bound(uses_.entries.begin(), uses_.entries.end(), node,
                                        [](const Uses::Entry& entry, StackId id) { return entry.key < id; });
    return found != uses_.entries.end() && found->key == node ? &*found : nullptr;
  }

  GroupId group_of(LabelId label) {
    const auto [found, is_new] = ids_.try_emplace(label, static_cast<GroupId>(groups_.size()));
    if (is_new) {
      groups_.emplace_back();
      labels_of_groups_.push_back(label);
    }
    return found->second;
  }

  const StackTable& stacks_;
  const Uses& uses_;
  Labels& labels_;
  Metric metric_;
  std::unordered_map<LabelId, GroupId> ids_;
  std::vector<LabelId> labels_of_groups_;
  std::vector<Group> groups_;
  std::vector<GroupId> path_groups_;  // of the path, outermost first
};

/// Both ends of stacks, as lines. Time of each: by the lines that are kept, however deep it is.
class StackEnds {
 public:
  /// Borrows `stacks`.
  explicit StackEnds(const StackTable& stacks) : stacks_(stacks), depths_(stacks.node_count()), ends_(depths_.size()) {
    for (StackId id = 1; id < stacks.node_count(); ++id) {
      const StackNode& node = stacks.node(id);
      depths_[id] = depths_[node.parent] + std::max<std::uint64_t>(stacks.names(node.frame).size(), 1);
      ends_[id] = depths_[node.parent] >= outer_lines_max ? ends_[node.parent] : id;
    }
  }

  /// The innermost function first. `left_out`: how many between the ends.
  std::vector<StackLine> lines(StackId stack, std::uint64_t& left_out) const {
    const std::uint64_t depth = depths_[stack];
    left_out = depth > inner_lines_max + outer_lines_max ? depth - inner_lines_max - outer_lines_max : 0;
    std::vector<StackLine> found = lines_of(stack, left_out == 0 ? depth : inner_lines_max);
    if (left_out == 0) return found;
    found.resize(inner_lines_max);
    const std::vector<StackLine> outer = lines_of(ends_[stack], depth);
    found.insert(found.end(), outer.end() - outer_lines_max, outer.end());
    return found;
  }

 private:
  /// So many lines, and those that the same frame has.
  std::vector<StackLine> lines_of(StackId stack, std::uint64_t count) const {
    std::vector<StackLine> found;
    for (StackId at = stack; at != 0 && found.size() < count; at = stacks_.node(at).parent) {
      const FrameId frame = stacks_.node(at).frame;
      const std::span<const FrameName> names = stacks_.names(frame);
      if (names.empty())
        found.push_back({function_text(stacks_, frame, nullptr), library_text(stacks_, frame), {}, {}});
      for (const FrameName& each : names) {
        StackLine line{function_text(stacks_, frame, &each), library_text(stacks_, frame), {}, {}};
        if (!each.file.empty()) line.file = std::string(each.file);
        if (each.line != 0) line.line = each.line;
        found.push_back(std::move(line));
      }
    }
    return found;
  }

  const StackTable& stacks_;
  std::vector<std::uint64_t> depths_;  // in lines, by node
  std::vector<StackId> ends_;          // by node: the one of its path with which the outer lines are whole
};

/// The largest first, without those below --min and beyond --top.
void sort_and_cut(Contributors& report, const Uses& uses, const ContributorOptions& options) {
  const auto figure = [&](const Contributor& each) {
    return (options.inclusive ? each.inclusive : each.self).metric(options.metric);
  };
  std::vector<Contributor>& all = report.contributors;
  std::sort(all.begin(), all.end(), [&](const Contributor& a, const Contributor& b) {
    return figure(a) != figure(b) ? figure(a) > figure(b) : a.name < b.name;
  });
  const double least = least_figure(uses, options);
  const std::size_t before = all.size();
  std::erase_if(all, [&](const Contributor& each) { return !is_at_least(figure(each), least); });
  if (options.top != 0 && all.size() > options.top) all.resize(options.top);
  report.left_out = before - all.size();
}

}  // namespace

std::string_view name(By by) { return name_in(by_names, by); }
std::string_view name(Metric metric) { return name_in(metric_names, metric); }
std::optional<By> parse_by(std::string_view text) { return value_in(by_names, text); }
std::optional<Metric> parse_metric(std::string_view text) { return value_in(metric_names, text); }

double least_figure(const Uses& uses, const ContributorOptions& options) {
  double sum = 0;
  for (const Uses::Entry& entry : uses.entries) sum += std::abs(static_cast<double>(entry.use.metric(options.metric)));
  return options.min * sum;
}

Contributors find_contributors(const StackTable& stacks, const Uses& uses, const ContributorOptions& options) {
  Contributors report;
  report.by = options.by;
  report.metric = options.metric;
  report.inclusive = options.inclusive;
  report.events = uses.events;
  report.short_lived_max = uses.short_lived_max;
  report.peak_event = uses.peak_event;
  report.peak_time_ns = uses.peak_time_ns;
  for (const Uses::Entry& entry : uses.entries) report.total += entry.use;
  if (!is_of_stacks(options.by)) {
    for (const Uses::Entry& entry : uses.entries)
      report.contributors.push_back(
          {.name = entry.name, .self = entry.use, .inclusive = entry.use, .lifetimes = entry.lifetimes, .stack = {}});
    sort_and_cut(report, uses, options);
    return report;
  }
  for (const Uses::Entry& entry : uses.entries) {
    if (entry.key == 0) report.of_unknown_stacks = entry.use;
    report.stacks += entry.key != 0;
  }
  Labels labels(stacks, key_of(options.by), options.skipped, options.hidden);
  report.contributors = GroupWalk(stacks, uses, labels, options.metric).contributors();
  sort_and_cut(report, uses, options);
  if (options.by == By::caller) add_callers(report.contributors, stacks, uses, labels, options);
  const StackEnds ends(stacks);
  for (Contributor& each : report.contributors) each.stack = ends.lines(each.largest, each.stack_left_out);
  return report;
}

}  // namespace cmt::allocations
