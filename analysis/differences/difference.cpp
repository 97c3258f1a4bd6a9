// Builds the report of --diff: changes, shares, marks of chance, and the order of the contributors.
#include "analysis/differences/difference.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

#include "analysis/differences/chance.h"
#include "analysis/groups/callers.h"
#include "analysis/groups/group_walk.h"
#include "analysis/groups/stack_ends.h"

namespace cmt::analysis {
namespace {

bool is_nothing(const Use& use) { return use.allocated.blocks == 0 && use.peak.blocks == 0 && use.leaked.blocks == 0; }

/// Sets the change and the share of each contributor, and whether it is new or gone. Removes unchanged contributors.
void set_changes(Difference& report, const GroupOptions<DiffUse>& options) {
  for (const ChangedContributor& each : report.contributors)
    report.change_sum += static_cast<std::uint64_t>(each.self.metric(options.metric));
  const auto chosen = [&](const ChangedContributor& each) -> const DiffUse& {
    return options.inclusive ? each.inclusive : each.self;
  };
  std::erase_if(report.contributors, [&](const ChangedContributor& each) {
    return !chosen(each).is_changed() && (options.inclusive || each.before == each.after);
  });
  for (ChangedContributor& each : report.contributors) {
    each.change = chosen(each).change(options.metric);
    each.is_change_known = chosen(each).knows(options.metric);
    if (report.change_sum != 0) each.share = static_cast<double>(each.change) / static_cast<double>(report.change_sum);
    each.is_new = is_nothing(each.inclusive.before) && !is_nothing(each.inclusive.after);
    each.is_gone = !is_nothing(each.inclusive.before) && is_nothing(each.inclusive.after);
  }
}

/// Marks the changes that may be chance. The dispersion needs all contributors, unchanged ones too: the caller removes
/// those later.
void mark_chance(Difference& report, const GroupOptions<DiffUse>& options) {
  if (report.is_sampled) {
    for (ChangedContributor& each : report.contributors) {
      const DiffUse& use = options.inclusive ? each.inclusive : each.self;
      each.range = change_range(use, options.metric);
      each.is_maybe_chance = use.change(options.metric) != 0 && each.range->has(0);
      report.maybe_chance += each.is_maybe_chance;
    }
    return;
  }
  if (options.inclusive) return;
  const auto samples_of = [&](Metric metric) {
    std::vector<ChanceSample> samples;
    for (const ChangedContributor& each : report.contributors) {
      if (const auto sample = chance_sample(each.self, each.squared_bytes, metric)) samples.push_back(*sample);
    }
    return samples;
  };
  const std::vector<ChanceSample> samples = samples_of(options.metric), blocks = samples_of(Metric::blocks);
  report.dispersion = dispersion_of(samples);
  const auto of_blocks = dispersion_of(blocks);
  if (!report.dispersion || !of_blocks) return;
  assert(samples.size() == report.contributors.size() && blocks.size() == samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    report.contributors[i].is_maybe_chance =
        samples[i].change != 0 && is_within_chance(samples[i], *report.dispersion) &&
        (options.metric != Metric::bytes || is_within_chance(blocks[i], *of_blocks));
    report.maybe_chance += report.contributors[i].is_maybe_chance;
  }
}

/// The largest changes by stack.
std::vector<ChangedStack> find_changed_stacks(const DiffUses& uses, const StackEnds& ends, Metric metric) {
  std::vector<const DiffUses::Entry*> changed;
  for (const DiffUses::Entry& entry : uses.entries) {
    if (entry.key != 0 && entry.use.change(metric) != 0) changed.push_back(&entry);
  }
  const std::size_t count = std::min(changed.size(), changed_stacks_max);
  std::partial_sort(changed.begin(), changed.begin() + static_cast<std::ptrdiff_t>(count), changed.end(),
                    [&](const DiffUses::Entry* a, const DiffUses::Entry* b) {
                      const std::int64_t of_a = a->use.metric(metric), of_b = b->use.metric(metric);
                      return of_a != of_b ? of_a > of_b : a->key < b->key;
                    });
  std::vector<ChangedStack> stacks;
  for (std::size_t i = 0; i < count; ++i) {
    stacks.push_back({.change = changed[i]->use.change(metric), .use = changed[i]->use});
    stacks.back().stack = ends.lines(changed[i]->key, stacks.back().stack_left_out);
  }
  return stacks;
}

std::vector<LifetimeChange> find_lifetime_changes(const DiffUses& uses) {
  std::map<std::uint32_t, LifetimeChange> classes;
  for (const DiffUses::Entry& entry : uses.entries) {
    for (const auto& [age, count] : entry.before.classes) classes[age].before += count;
    for (const auto& [age, count] : entry.after.classes) classes[age].after += count;
  }
  std::vector<LifetimeChange> changes;
  for (auto& [age, change] : classes) {
    change.lifetime_min = AgeClasses::low(age);
    if (change.before != change.after) changes.push_back(change);
  }
  return changes;
}

}  // namespace

Range change_range(const DiffUse& use, Metric metric) {
  const SampledUse &before = *use.before.sampled, &after = *use.after.sampled;
  if (metric == Metric::peak) return change95(before.peak, after.peak);
  if (metric == Metric::live) return change95(before.live, after.live);
  if (metric != Metric::growth) return change95(before.allocated, after.allocated, metric == Metric::blocks);
  // The growth of both: each is a change.
  const Range old_growth = change95(before.at_begin, before.live), growth = change95(after.at_begin, after.live);
  return {growth.low - old_growth.high, growth.high - old_growth.low};
}

DiffUses merge_sets(const Uses& before, const Uses& after) {
  std::map<std::string, DiffUses::Entry> sets;
  for (const Uses::Entry& each : before.entries) {
    DiffUses::Entry& set = sets[each.name];
    set.use.before += each.use;
    set.squared_bytes += each.squared_bytes;
    add_lifetimes(set.before, each.lifetimes);
  }
  for (const Uses::Entry& each : after.entries) {
    DiffUses::Entry& set = sets[each.name];
    set.use.after += each.use;
    set.squared_bytes += each.squared_bytes;
    add_lifetimes(set.after, each.lifetimes);
  }
  DiffUses merged;
  for (auto& [name, set] : sets) {
    set.key = static_cast<KeyId>(merged.entries.size());
    set.name = name;
    merged.entries.push_back(std::move(set));
  }
  return merged;
}

Difference find_difference(const StackTable& stacks, const DiffUses& uses, const GroupOptions<DiffUse>& options) {
  Difference report;
  report.by = options.by;
  report.metric = options.metric;
  report.inclusive = options.inclusive;
  for (const DiffUses::Entry& entry : uses.entries) report.total += entry.use;
  report.is_sampled = uses.before_interval != 0;
  if (report.is_sampled) report.unseen_below = whole(unseen_below(std::max(uses.before_interval, uses.after_interval)));
  uses.fill(report.total);
  report.change = report.total.change(options.metric);
  report.lifetimes = find_lifetime_changes(uses);
  if (!is_of_stacks(options.by)) {
    for (const DiffUses::Entry& entry : uses.entries) {
      report.contributors.push_back({{.name = entry.name, .self = entry.use, .inclusive = entry.use}});
      report.contributors.back().before = entry.before;
      report.contributors.back().after = entry.after;
      report.contributors.back().squared_bytes = entry.squared_bytes;
    }
    mark_chance(report, options);
    set_changes(report, options);
    report.left_out = sort_and_cut(report.contributors, uses, options);
    return report;
  }
  Labels labels(stacks, key_of(options.by), {.raw = true});  // merged stacks have no others
  StackGroups<DiffUse> found = GroupWalk<DiffUses>(stacks, uses, labels, options.metric).find_groups();
  assert(found.own_groups.size() == uses.entries.size());
  for (GroupOf<DiffUse>& group : found.groups) {
    uses.fill(group.self);
    uses.fill(group.inclusive);
    report.contributors.push_back({std::move(group)});
  }
  for (std::size_t i = 0; i < uses.entries.size(); ++i) {
    ChangedContributor& own = report.contributors[index_of(found.own_groups[i])];
    add_lifetimes(own.before, uses.entries[i].before);
    add_lifetimes(own.after, uses.entries[i].after);
    own.squared_bytes += uses.entries[i].squared_bytes;
  }
  mark_chance(report, options);
  set_changes(report, options);
  report.left_out = sort_and_cut(report.contributors, uses, options);
  if (options.by == By::caller) add_callers(report.contributors, stacks, uses, labels, options);
  const StackEnds ends(stacks);
  for (ChangedContributor& each : report.contributors) each.stack = ends.lines(each.largest, each.stack_left_out);
  report.stacks = find_changed_stacks(uses, ends, options.metric);
  return report;
}

}  // namespace cmt::analysis
