// Builds the report of lifetimes --by from the counts of each stack.
#include "analysis/stacks/contributors.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "analysis/groups/callers.h"
#include "analysis/groups/group_walk.h"
#include "analysis/groups/stack_ends.h"

namespace cmt::analysis {
namespace {

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
  const auto found =
      std::find_if(names.begin(), names.end(), [value](const auto& each) { return each.first == value; });
  assert(found != names.end());
  return found->second;
}
template <class Value, std::size_t count>
std::optional<Value> value_in(const std::array<std::pair<Value, std::string_view>, count>& names,
                              std::string_view text) {
  for (const auto& [value, value_name] : names) {
    if (value_name == text) return value;
  }
  return std::nullopt;
}

}  // namespace

std::string_view name(By by) { return name_in(by_names, by); }
std::string_view name(Metric metric) { return name_in(metric_names, metric); }
std::optional<By> parse_by(std::string_view text) { return value_in(by_names, text); }
std::optional<Metric> parse_metric(std::string_view text) { return value_in(metric_names, text); }

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
  fill_unseen(report.total, uses.interval);
  if (!is_of_stacks(options.by)) {
    for (const Uses::Entry& entry : uses.entries)
      report.contributors.push_back({{.name = entry.name, .self = entry.use, .inclusive = entry.use}, entry.lifetimes});
    report.left_out = sort_and_cut(report.contributors, uses, options);
    return report;
  }
  for (const Uses::Entry& entry : uses.entries) {
    if (entry.key == 0) report.of_unknown_stacks = entry.use;
    report.stacks += entry.key != 0;
  }
  Labels labels(stacks, key_of(options.by), options.charges, options.hidden);
  StackGroups<Use> found = GroupWalk<Uses>(stacks, uses, labels, options.metric).find_groups();
  for (GroupOf<Use>& group : found.groups) {
    fill_unseen(group.self, uses.interval);
    fill_unseen(group.inclusive, uses.interval);
    report.contributors.push_back({std::move(group), {}});
  }
  for (std::size_t i = 0; i < uses.entries.size(); ++i)
    add_lifetimes(report.contributors[index_of(found.own_groups[i])].lifetimes, uses.entries[i].lifetimes);
  report.left_out = sort_and_cut(report.contributors, uses, options);
  if (options.by == By::caller) add_callers(report.contributors, stacks, uses, labels, options);
  const StackEnds ends(stacks);
  for (Contributor& each : report.contributors) each.stack = ends.lines(each.largest, each.stack_left_out);
  return report;
}

}  // namespace cmt::analysis
