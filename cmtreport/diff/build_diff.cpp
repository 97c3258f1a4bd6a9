// Builds the report of a difference. Both traces become one tree of calls, so that a function is one node in both, and
// the tree is folded by the size of the changes.

#include "cmtreport/diff/build_diff.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "analysis/differences/compared_trace.h"
#include "cmtreport/build/build.h"
#include "cmtreport/report/call_tree.h"
#include "cmtreport/report/fold.h"
#include "toolkit/command/open_trace.h"

namespace cmt::report {
namespace {

using analysis::By;
using analysis::ComparedTrace;
using analysis::Difference;
using analysis::DiffUse;
using analysis::DiffUses;
using analysis::Metric;

/// The most nodes of a page of some megabytes.
constexpr std::size_t nodes_max = 60'000;

/// The figures whose changes become findings.
constexpr std::array<Metric, 5> metrics_of_findings{Metric::peak, Metric::bytes, Metric::live, Metric::temporary,
                                                    Metric::blocks};

std::uint64_t magnitude(std::int64_t number) { return static_cast<std::uint64_t>(number < 0 ? -number : number); }

/// The figures that decide whether a node is folded: the sizes of its changes, in the figures that become findings. Its
/// bytes in both traces together count too, so that large nodes stay visible. They take the places of
/// short_lived_blocks and untouched_bytes.
NodeTotals judged_by(const DiffUse& use) {
  NodeTotals totals;
  const auto both = [&use](Metric metric) {
    return static_cast<std::uint64_t>(use.before.metric(metric) + use.after.metric(metric));
  };
  totals.sum[Measure::allocated_bytes] = magnitude(use.change(Metric::bytes));
  totals.sum[Measure::allocated_blocks] = magnitude(use.change(Metric::blocks));
  totals.sum[Measure::temporary_blocks] = magnitude(use.change(Metric::temporary));
  totals.sum[Measure::leaked_bytes] = magnitude(use.change(Metric::live));
  totals.sum[Measure::reallocated_blocks] = magnitude(use.change(Metric::reallocated));
  totals.sum[Measure::short_lived_blocks] = both(Metric::bytes);
  totals.sum[Measure::untouched_bytes] = both(Metric::peak);
  totals.peak_bytes = magnitude(use.change(Metric::peak));
  return totals;
}

/// The tree of both traces, with the figures of each node's own allocations.
struct ComparedTree {
  CallTree tree;
  std::vector<DiffUse> uses;  ///< by node
};

ComparedTree tree_of_stacks(const analysis::MergedStacks& merged) {
  ComparedTree compared;
  std::vector<std::uint64_t> weights(merged.stacks.node_count());
  for (const DiffUses::Entry& entry : merged.uses.entries)
    weights[entry.key] = 1 + magnitude(entry.use.change(Metric::bytes));
  const std::vector<CallId> node_of =
      compared.tree.add_stacks(merged.stacks.nodes(), merged.stacks, std::move(weights), {.charges = {.raw = true}});
  compared.tree.finish();
  compared.uses.resize(compared.tree.nodes().size());
  assert(std::all_of(merged.uses.entries.begin(), merged.uses.entries.end(), [&](const DiffUses::Entry& entry) {
    return index_of(node_of[entry.key]) < compared.uses.size();  // each entry has a weight, so none is left out
  }));
  for (const DiffUses::Entry& entry : merged.uses.entries) compared.uses[index_of(node_of[entry.key])] += entry.use;
  return compared;
}

ComparedTree tree_of_sizes(const DiffUses& sizes) {
  ComparedTree compared;
  for (const DiffUses::Entry& entry : sizes.entries) {
    const std::size_t node = index_of(compared.tree.add_named(entry.name));
    if (node >= compared.uses.size()) compared.uses.resize(node + 1);
    compared.uses[node] += entry.use;
  }
  compared.tree.finish();
  compared.uses.resize(compared.tree.nodes().size());
  return compared;
}

void set_tree(DiffReport& report, const ComparedTree& compared) {
  TotalsByNode totals(compared.tree.nodes().size());
  for (std::size_t node = 0; node < compared.uses.size(); ++node) {
    const DiffUse& use = compared.uses[node];
    if (use.before.metric(Metric::blocks) != 0 || use.after.metric(Metric::blocks) != 0)
      totals.append(static_cast<CallId>(node), judged_by(use));
  }
  const Folding folding(compared.tree, totals);
  double share = folding.least_share({.nodes = nodes_max / 2, .changes = ~std::uint64_t{0}});
  FoldedTree folded = folding.fold(share);
  for (; folded.nodes.parent.size() > nodes_max && share <= 0.5; share *= 2) folded = folding.fold(2 * share);
  assert(folded.node_of.size() == compared.uses.size());
  std::vector<DiffUse> uses(folded.nodes.parent.size());
  for (std::size_t node = 0; node < compared.uses.size(); ++node) uses[folded.node_of[node]] += compared.uses[node];
  for (std::size_t i = 0; i < diff_measures.size(); ++i) {
    ComparedFigures& figures = report.figures.by_measure[i];
    for (NodeNumber node = 0; node < uses.size(); ++node) {
      const std::int64_t before = uses[node].before.metric(diff_measures[i].metric);
      const std::int64_t after = uses[node].after.metric(diff_measures[i].metric);
      if (before == 0 && after == 0) continue;
      figures.node.push_back(node);
      figures.before.push_back(before);
      figures.after.push_back(after);
    }
  }
  report.nodes = std::move(folded.nodes);
  report.frames = std::move(folded.frames);
  report.folded = folded.folded;
}

std::string header_text(const ComparedTrace& trace, std::string_view key) {
  return std::string(trace.header().find(key).value_or(""));
}

DiffSideFacts facts_of(ComparedTrace& trace) {
  const analysis::DiffTrace facts = trace.facts();
  return {.name = facts.name,
          .program = header_text(trace, "program"),
          .command = header_text(trace, "command"),
          .start = header_text(trace, "start"),
          .events = facts.events,
          .defects = facts.defects,
          .truncated = facts.truncated};
}

}  // namespace

DiffReport compare_traces(const std::string& before_path, const std::string& after_path, const ReadSettings& settings) {
  analysis::GroupOptions<DiffUse> groups{.metric = Metric::bytes,
                                         .charges = settings.functions.charges,
                                         .native = settings.functions.native,
                                         .focus = settings.functions.focus,
                                         .hidden = settings.functions.hidden};
  analysis::CompareOptions options;
  options.trace.tool = settings.tool;
  options.trace.strict = settings.strict;
  options.groups = groups;
  options.debug_directories = settings.debug_directories;
  ComparedTrace before(options, before_path), after(options, after_path);
  command::refuse_samples(before_path, before.header());  // findings and the page need all blocks
  command::refuse_samples(after_path, after.header());
  require_stacks_for(settings.functions, before.header(), before_path);
  require_stacks_for(settings.functions, after.header(), after_path);
  DiffReport report;
  report.has_stacks = before.header().has_stacks && after.header().has_stacks;
  count_both(before, after, report.has_stacks ? std::vector{By::size, By::function} : std::vector{By::size});
  report.before = facts_of(before);
  report.after = facts_of(after);
  report.name = report.before.name + " to " + report.after.name;

  const auto with_facts = [&](Difference difference) {
    difference.before = before.facts();
    difference.after = after.facts();
    return difference;
  };
  const DiffUses sizes = merge_sets(before.uses(By::size), after.uses(By::size));
  std::optional<analysis::MergedStacks> merged;
  if (report.has_stacks) merged = merge_stacks(before.side(), after.side(), groups);
  const auto difference_by = [&](By by, Metric metric) {
    groups.by = by;
    groups.metric = metric;
    groups.top = by == By::function ? diff_contributors_max : 0;
    return with_facts(by == By::size ? find_difference({}, sizes, groups)
                                     : find_difference(merged->stacks, merged->uses, groups));
  };
  report.by_size = difference_by(By::size, Metric::bytes);
  if (merged) report.by_function = difference_by(By::function, Metric::bytes);
  report.total = (report.by_function ? *report.by_function : report.by_size).total;
  set_tree(report, merged ? tree_of_stacks(*merged) : tree_of_sizes(sizes));
  std::vector<Difference> differences;
  for (const Metric metric : metrics_of_findings)
    differences.push_back(difference_by(merged ? By::function : By::size, metric));
  report.findings = find_changes(report, differences);
  before.say_defects();
  after.say_defects();
  return report;
}

}  // namespace cmt::report
