// Builds the report of overhead --by. A pass over the shared pages finds those that only one group
// is on.
#include "analysis/held_pages/page_holders.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "analysis/groups/callers.h"
#include "analysis/groups/group_walk.h"
#include "analysis/groups/stack_ends.h"

namespace cmt::analysis {
namespace {

constexpr std::uint32_t no_entry = 0xffffffff;

/// Calls visit(entries) for each page with blocks of several keys. `entries` are the indices of these keys in
/// `uses.entries`. A page with a block of another key is left out: no group has that page alone.
template <class Visit>
void for_each_shared_page(const PageUses& uses, Visit visit) {
  std::unordered_map<KeyId, std::uint32_t> places;
  for (std::uint32_t i = 0; i < uses.entries.size(); ++i) places.emplace(uses.entries[i].key, i);
  std::vector<std::uint32_t> entries;
  const auto& pages = uses.shared_pages;
  for (std::size_t at = 0; at < pages.size(); at += pages[at] + std::size_t{1}) {
    entries.clear();
    assert(pages[at] >= 2 && pages[at] < pages.size() - at);
    for (std::size_t i = 1; i <= pages[at]; ++i) {
      const auto found = places.find(pages[at + i]);
      entries.push_back(found == places.end() ? no_entry : found->second);
    }
    if (std::find(entries.begin(), entries.end(), no_entry) == entries.end()) visit(std::as_const(entries));
  }
}

/// Returns the groups that each entry's stack is in, each once.
std::vector<std::vector<GroupNumber>> find_groups_of_stacks(const StackTable& stacks, const PageUses& uses,
                                                            Labels& labels, const StackGroups<PageUse>& found) {
  std::unordered_map<LabelId, GroupNumber> numbers;
  for (std::uint32_t i = 0; i < found.groups.size(); ++i) numbers.emplace(found.groups[i].label, GroupNumber{i});
  std::vector<std::vector<GroupNumber>> groups(uses.entries.size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    groups[i].push_back(found.own_groups[i]);
    std::optional<LabelId> outermost;
    for (StackId at = uses.entries[i].key; at != 0; at = stacks.node(at).parent) {
      for (const Label& label : labels.of_frame(stacks.node(at).frame)) {
        outermost = label.text;
        if (!label.is_allocation) groups[i].push_back(numbers.at(label.text));
      }
    }
    if (outermost) groups[i].push_back(numbers.at(*outermost));
    std::sort(groups[i].begin(), groups[i].end());
    groups[i].erase(std::unique(groups[i].begin(), groups[i].end()), groups[i].end());
  }
  return groups;
}

/// Adds the pages that stacks of one group share with each other only. The pages of one stack are counted already.
void add_sole_pages(const PageUses& uses, StackGroups<PageUse>& found,
                    const std::vector<std::vector<GroupNumber>>& groups_of) {
  std::vector<GroupNumber> common, both;
  for_each_shared_page(uses, [&](const std::vector<std::uint32_t>& entries) {
    const GroupNumber own = found.own_groups[entries.front()];
    const auto is_own = [&](std::uint32_t entry) { return found.own_groups[entry] == own; };
    if (std::all_of(entries.begin(), entries.end(), is_own))
      found.groups[index_of(own)].self.sole_bytes += uses.page_size;
    common = groups_of[entries.front()];
    for (std::size_t i = 1; i < entries.size() && !common.empty(); ++i) {
      const std::vector<GroupNumber>& others = groups_of[entries[i]];
      both.clear();
      std::set_intersection(common.begin(), common.end(), others.begin(), others.end(), std::back_inserter(both));
      common.swap(both);
    }
    for (const GroupNumber group : common) found.groups[index_of(group)].inclusive.sole_bytes += uses.page_size;
  });
}

void forget_sole_pages(std::vector<CallerOf<PageUse>>& callers) {
  for (CallerOf<PageUse>& each : callers) {
    each.use.sole_bytes = unknown;
    forget_sole_pages(each.callers);
  }
}

void forget_pages(std::vector<CallerOf<PageUse>>& callers) {
  for (CallerOf<PageUse>& each : callers) {
    each.use.forget_pages();
    forget_pages(each.callers);
  }
}

/// Returns the report of blocks of which no pages are known.
PageHolders without_pages(PageHolders report) {
  report.total.forget_pages();
  report.of_unknown_stacks.forget_pages();
  for (PageHolder& each : report.holders) {
    each.self.forget_pages();
    each.inclusive.forget_pages();
    forget_pages(each.callers);
  }
  return report;
}

PageUse total_of(const PageUses& uses) {
  PageUse total;
  for (const PageUses::Entry& entry : uses.entries) total += entry.use;
  for_each_shared_page(uses, [&](const std::vector<std::uint32_t>&) { total.sole_bytes += uses.page_size; });
  return total;
}

}  // namespace

double least_figure(const PageUses& uses, const GroupOptions<PageUse>& options) {
  return options.min * static_cast<double>(total_of(uses).metric(options.metric));
}

namespace {

PageHolders find_holders_and_pages(const StackTable& stacks, const PageUses& uses,
                                   const GroupOptions<PageUse>& options) {
  PageHolders report;
  report.by = options.by;
  report.metric = options.metric;
  report.inclusive = options.inclusive;
  report.page_size = uses.page_size;
  report.total = total_of(uses);
  if (!is_of_stacks(options.by)) {
    for (const PageUses::Entry& entry : uses.entries)
      report.holders.push_back({.name = entry.name, .self = entry.use, .inclusive = entry.use});
    report.left_out = sort_and_cut(report.holders, uses, options);
    return report;
  }
  for (const PageUses::Entry& entry : uses.entries) {
    if (entry.key == 0) report.of_unknown_stacks = entry.use;
    report.stacks += entry.key != 0;
  }
  Labels labels(stacks, key_of(options.by), options.charges, options.hidden);
  StackGroups<PageUse> found = GroupWalk<PageUses>(stacks, uses, labels, options.metric).find_groups();
  add_sole_pages(uses, found, find_groups_of_stacks(stacks, uses, labels, found));
  report.holders = std::move(found.groups);
  report.left_out = sort_and_cut(report.holders, uses, options);
  if (options.by == By::caller) add_callers(report.holders, stacks, uses, labels, options);
  const StackEnds ends(stacks);
  for (PageHolder& each : report.holders) {
    forget_sole_pages(each.callers);
    each.stack = ends.lines(each.largest, each.stack_left_out);
  }
  return report;
}

}  // namespace

PageHolders find_page_holders(const StackTable& stacks, const PageUses& uses, const GroupOptions<PageUse>& options) {
  PageHolders report = find_holders_and_pages(stacks, uses, options);
  return uses.page_size == 0 ? without_pages(std::move(report)) : report;
}

}  // namespace cmt::analysis
