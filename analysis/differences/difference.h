/// Compares two traces: lists the contributors (contributors.h) that changed from one to the other.
///
/// merged_stacks.h matches the contributors of both traces by name. The largest change comes first. Changes that may be
/// chance (chance.h) come after all others.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/differences/diff_use.h"
#include "analysis/groups/group.h"
#include "analysis/stacks/contributors.h"

namespace cmt::analysis {

/// A contributor in both traces.
struct ChangedContributor : GroupOf<DiffUse> {
  Lifetimes before{};  ///< of its own blocks that have ended
  Lifetimes after{};
  std::int64_t change = 0;      ///< of the figure that is sorted by
  bool is_change_known = true;  ///< not so of untouched bytes that are not known in both: then the change is 0
  double share = 0;             ///< of the sum of all changes, those taken without their signs
  bool is_new = false;          ///< it is in no stack of the first trace that allocates
  bool is_gone = false;
  double squared_bytes = 0;  ///< of its own blocks, in both
  bool is_maybe_chance = false;
  std::optional<Range> range{};  ///< of the change, of sampled traces

  bool comes_last() const { return is_maybe_chance; }
  std::optional<std::int64_t> known_change() const { return is_change_known ? std::optional(change) : std::nullopt; }
};

inline std::string_view status_of(const ChangedContributor& contributor) {
  return contributor.is_new ? "new" : contributor.is_gone ? "gone" : "changed";
}

/// Quantiles of the lifetimes in both traces.
template <class Visitor>
void describe_lifetimes(Visitor& field, const Lifetimes& before, const Lifetimes& after) {
  field("before_lifetime_p50", lifetime_quantile(before, 0.5),
        "in clock_unit, of its own blocks in the first trace: half of the ended ones lived no longer; up to 12.5 % too "
        "high");
  field("before_lifetime_p90", lifetime_quantile(before, 0.9), "90 % of them lived no longer; up to 12.5 % too high");
  field("before_lifetime_p99", lifetime_quantile(before, 0.99), "99 % of them lived no longer; up to 12.5 % too high");
  field("after_lifetime_p50", lifetime_quantile(after, 0.5), "the same of the second trace");
  field("after_lifetime_p90", lifetime_quantile(after, 0.9), "");
  field("after_lifetime_p99", lifetime_quantile(after, 0.99), "");
}

template <class Visitor>
void describe(Visitor& field, const ChangedContributor& contributor) {
  field("status", status_of(contributor), "new: not in the first trace; gone: not in the second; or changed");
  field(
      "change", contributor.known_change(),
      "of the figure of sorted_by: the second trace's less the first one's; null: of untouched bytes, where these are "
      "not known in both");
  std::optional<std::int64_t> low, high;
  if (contributor.range) {
    low = std::llround(contributor.range->low);
    high = std::llround(contributor.range->high);
  }
  field("change_low", output::omit_if_empty(low), "of sampled traces: the lower end of its 95 % interval");
  field("change_high", output::omit_if_empty(high), "of sampled traces: the upper end");
  field("share", contributor.share,
        "of the sum of all changes of the figure of metric, those taken without their signs: from -1 to 1");
  field("may_be_chance", contributor.is_maybe_chance,
        "whether the change is within 4 standard deviations of what calls in random order do: see dispersion; of "
        "sampled traces: whether 0 is in its 95 % interval");
  describe_figures(field, contributor);
  describe_lifetimes(field, contributor.before, contributor.after);
  describe_stack(field, contributor);
}

/// A stack whose figure has changed.
struct ChangedStack {
  std::int64_t change = 0;
  DiffUse use;
  std::vector<StackLine> stack{};
  std::uint64_t stack_left_out = 0;
};

template <class Visitor>
void describe(Visitor& field, const ChangedStack& stack) {
  field("change", stack.change, "of the figure of sorted_by");
  field("use", stack.use, "what the stack has in both traces");
  field("stack", stack.stack, "the innermost function first; of more than 50, the inner 40 and the outer 10");
  field("stack_left_out", stack.stack_left_out, "functions between these");
}

/// How many ended blocks of a class of lifetimes there are in both traces.
struct LifetimeChange {
  std::uint64_t lifetime_min = 0;
  std::uint64_t before = 0;
  std::uint64_t after = 0;
};

template <class Visitor>
void describe(Visitor& field, const LifetimeChange& change) {
  field("lifetime_min", change.lifetime_min, "the least of the class");
  field("before", change.before, "");
  field("after", change.after, "");
}

/// One of the traces.
struct DiffTrace {
  std::string name;  ///< of the file
  std::uint64_t events = 0;
  std::uint64_t defects = 0;
  bool truncated = false;
  std::uint64_t stacks = 0;
  std::uint64_t peak_event = 0;
  std::uint64_t peak_time_ns = unknown;
};

template <class Visitor>
void describe(Visitor& field, const DiffTrace& trace) {
  field("name", trace.name, "the file's name without its folder");
  field("events", trace.events, "events read, of the slice");
  field("defects", trace.defects, "defects found in the trace");
  field("truncated", trace.truncated, "whether the trace breaks off");
  field("stacks", trace.stacks, "different stacks that have allocated");
  field("peak_event", trace.peak_event, "the event with the most live bytes, counted from 1");
  field("peak_time_ns", output::nullable(trace.peak_time_ns), "its time since the recording began");
}

struct Difference {
  DiffTrace before;
  DiffTrace after;
  By by = By::function;
  Metric metric = Metric::peak;
  bool inclusive = false;
  std::string slice;
  heap::Clock::Unit clock = heap::Clock::Unit::events;
  DiffUse total;
  std::int64_t change = 0;
  std::uint64_t change_sum = 0;  ///< of all contributors, without signs
  std::optional<double> dispersion;
  std::uint64_t maybe_chance = 0;  ///< contributors
  bool is_sampled = false;
  std::optional<std::uint64_t> unseen_below{};  ///< of sampled traces: by the larger interval of both
  std::vector<ChangedContributor> contributors;
  std::uint64_t left_out = 0;
  std::vector<ChangedStack> stacks;
  std::vector<LifetimeChange> lifetimes;
};

inline constexpr std::string_view difference_schema = "cmt.difference/1";

template <class Visitor>
void describe(Visitor& field, const Difference& report) {
  field("schema", difference_schema, "the name and version of this form");
  field("before", report.before, "the first trace");
  field("after", report.after, "the second");
  field("by", name(report.by), "function, caller, line, library, thread, size or phase");
  field("sorted_by", name(report.metric), "the figure whose change is sorted by, as in cmt.contributors/1");
  field("sorted_inclusive", report.inclusive, "whether by inclusive, or by self");
  field("slice", report.slice, "the part of both traces; empty: all of them");
  field("clock_unit", unit_name(report.clock), "what lifetimes are counted in: events, ns or bytes");
  field("sampled", report.is_sampled, "whether the traces are sampled: then the figures are estimates");
  field("unseen_below_bytes", output::omit_if_empty(report.unseen_below),
        "of sampled traces: below this a contributor can be without a sample in one of them: with 5 % or more");
  field("total", report.total, "of all stacks");
  field("change", report.total.known_change(report.metric),
        "of the total, of the figure of sorted_by; null: not known");
  field("change_sum", report.change_sum, "the sum of the changes of all contributors' own, without their signs");
  field("dispersion", report.dispersion,
        "how much the figure of the median contributor varies between the traces, as a variance over that of "
        "independent calls; null: not known, as of live bytes, of few contributors or of runs with different work");
  field("may_be_chance", report.maybe_chance, "how many contributors have changed no more than that makes likely");
  field("contributors", report.contributors,
        "those of which any figure has changed, the largest change first; those that may be chance come last");
  field("contributors_left_out", report.left_out, "how many more there are, beyond --top and below --min");
  field("stacks", report.stacks, "the ten stacks that have changed most, the largest first");
  field("lifetimes", output::as_tuples(report.lifetimes),
        "ended blocks by lifetime, in clock_unit: [lifetime_min, before, after], where these differ");
}

/// Returns the 95 % interval of a change between sampled traces.
Range change_range(const DiffUse& use, Metric metric);

/// How many changed stacks a report contains.
inline constexpr std::size_t changed_stacks_max = 10;

/// Returns the difference of stacks that merge_stacks() has merged, or of sets with names (merge_sets()). The caller
/// sets the facts of both traces, the slice and the clock.
Difference find_difference(const StackTable& stacks, const DiffUses& uses, const GroupOptions<DiffUse>& options);

/// Merges the sets of both traces by name: threads, sizes or phases.
DiffUses merge_sets(const Uses& before, const Uses& after);

std::string to_text(const Difference& report);
std::string to_csv(const Difference& report);

}  // namespace cmt::analysis
