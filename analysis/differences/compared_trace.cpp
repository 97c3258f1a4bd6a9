// Reads and names one of the two traces of --diff. Two threads read both traces at the same time.
#include "analysis/differences/compared_trace.h"

#include <algorithm>
#include <cassert>
#include <filesystem>
#include <future>
#include <utility>

#include "analysis/sampling/sample_counter.h"
#include "analysis/stacks/named_stacks.h"
#include "analysis/stacks/selection.h"
#include "analysis/stacks/stack_tree.h"

namespace cmt::analysis {
namespace {

trace::Options with_path(trace::Options options, const std::string& path) {
  options.path = path;
  return options;
}

}  // namespace

ComparedTrace::ComparedTrace(const CompareOptions& options, const std::string& path)
    : asked_(options),
      options_(with_path(options.trace, path)),
      trace_(options_, shows_moves(options.groups.metric, options_), options.reads_stacks, options.samples) {}

void ComparedTrace::count(const std::vector<By>& kinds) {
  assert(std::count_if(kinds.begin(), kinds.end(), is_of_stacks) <= 1);
  const std::uint64_t touched_min = trace_.header().touched_min();
  if (asked_.groups.metric == Metric::untouched && touched_min == 0)
    throw FormatError(options_.path, "touched pages were not recorded (needed by untouched)");
  if (asked_.slice) trace::SliceProgress(*asked_.slice).check(trace_.header(), options_.path);
  if (trace_.header().sampled() != 0) {
    refuse_unestimated(options_.path, asked_.groups.metric, options_.clock);
    count_samples(kinds);
  } else {
    count_blocks(kinds);
  }
  for (const Counted& counted : counted_) {
    if (!is_of_stacks(counted.kind)) continue;
    if (!counted.uses.entries.empty()) require_stacks(trace_.stacks(), trace_.header(), options_.path);
    for (const Uses::Entry& entry : counted.uses.entries) stack_count_ += entry.key != 0;
  }
}

void ComparedTrace::count_blocks(const std::vector<By>& kinds) {
  std::vector<UseCounter> counters;
  command::Complaints unheard(false, [](const std::string&) {});  // each counter finds the same defects
  const std::string part = asked_.slice ? "" : trace_.part_slices();
  for (const By kind : kinds)
    counters.emplace_back(UseOptions{kind, options_.clock, asked_.slice, trace_.header().touched_min(), part},
                          counters.empty() ? trace_.complaints() : unheard);
  count_with(counters, kinds);
}

void ComparedTrace::count_samples(const std::vector<By>& kinds) {
  std::vector<SampleCounter> counters;
  command::Complaints unheard(false, [](const std::string&) {});
  for (const By kind : kinds)
    counters.emplace_back(kind, trace_.header().sampled(), asked_.slice,
                          counters.empty() ? trace_.complaints() : unheard);
  count_with(counters, kinds);
}

template <class Counter>
void ComparedTrace::count_with(std::vector<Counter>& counters, const std::vector<By>& kinds) {
  const auto count_event = [&](const Event& event) {
    bool goes_on = false;
    for (Counter& counter : counters) goes_on |= counter.count_event(event);
    return goes_on;
  };
  if (asked_.slice)
    trace_.for_each(count_event);
  else
    trace_.for_each([&](const Event& event) { count_event(event); });
  if constexpr (requires(Counter & counter) { counter.note_unknown_end(); }) {
    for (Counter& counter : counters)
      if (trace_.lacks_last_touches()) counter.note_unknown_end();
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) counted_.push_back({kinds[i], counters[i].finish(options_.path)});
}

void ComparedTrace::name_stacks() {
  const auto found =
      std::find_if(counted_.begin(), counted_.end(), [](const Counted& counted) { return is_of_stacks(counted.kind); });
  if (found == counted_.end()) return;
  Uses& uses = found->uses;
  StackTable named = named_stacks(trace_.stacks(), StackTree(trace_.stacks(), uses).frames(), trace_.header(),
                                  {options_.tool, asked_.debug_directories});
  const bool had_stacks = !uses.entries.empty();
  uses = select_stacks(std::move(uses), named, asked_.groups.focus, asked_.groups.ignored);
  has_no_match_ = had_stacks && uses.entries.empty();
  shown_ = show_stacks(std::move(named), trace_.stacks().nodes(), asked_.groups.native, key_of(asked_.groups.by));
  uses = shown_uses(std::move(uses), shown_);
}

const Uses& ComparedTrace::uses(By kind) const {
  const auto found =
      std::find_if(counted_.begin(), counted_.end(), [kind](const Counted& counted) { return counted.kind == kind; });
  assert(found != counted_.end());
  return found->uses;
}

const Uses& ComparedTrace::uses_of_stacks() const {
  const auto found =
      std::find_if(counted_.begin(), counted_.end(), [](const Counted& counted) { return is_of_stacks(counted.kind); });
  assert(found != counted_.end());
  return found->uses;
}

DiffTrace ComparedTrace::facts() {
  assert(!counted_.empty());  // count() was called
  const Uses& uses = counted_.front().uses;
  return {.name = std::filesystem::path(options_.path).filename().string(),
          .events = uses.events,
          .defects = trace_.complaints().count(),
          .truncated = trace_.truncated(),
          .stacks = stack_count_,
          .peak_event = uses.peak_event,
          .peak_time_ns = uses.peak_time_ns};
}

void count_both(ComparedTrace& before, ComparedTrace& after, const std::vector<By>& kinds) {
  std::future<void> counting = std::async(std::launch::async, [&] { before.count(kinds); });
  after.count(kinds);
  counting.get();
  before.name_stacks();
  after.name_stacks();
  if (before.has_no_match() && after.has_no_match()) command::complain(after.tool(), no_stack_matches);
}

Difference compare(const CompareOptions& options, const std::string& before_path, const std::string& after_path) {
  const GroupOptions<DiffUse>& groups = options.groups;
  ComparedTrace before(options, before_path), after(options, after_path);
  if ((before.header().sampled() == 0) != (after.header().sampled() == 0))
    throw FormatError(after_path, "one trace is sampled and the other is not: they are not compared");
  count_both(before, after, {groups.by});
  Difference report;
  const auto difference_of = [&](const StackTable& stacks, DiffUses uses) {
    uses.set_intervals(before.uses(groups.by).interval, after.uses(groups.by).interval);
    return find_difference(stacks, uses, groups);
  };
  if (is_of_stacks(groups.by)) {
    MergedStacks merged = merge_stacks(before.side(), after.side(), groups);
    report = difference_of(merged.stacks, std::move(merged.uses));
  } else {
    report = difference_of({}, merge_sets(before.uses(groups.by), after.uses(groups.by)));
  }
  report.before = before.facts();
  report.after = after.facts();
  before.say_defects();
  after.say_defects();
  return report;
}

}  // namespace cmt::analysis
