/// The report of lifetimes --by: the allocations of a trace by function, line or library, or by thread, size or phase.
///
/// A stack is charged to its contributor: its innermost function that is no allocation function (labels.h). The
/// inclusive figures of a function also have the allocations of the functions that it calls. A recursive function
/// counts once in each stack.
///
///     main -> parse -> operator new          charged to parse; in the inclusive figures of main and parse
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/fates/use.h"
#include "analysis/groups/group.h"
#include "toolkit/output/fields.h"
#include "toolkit/trace/pools.h"

namespace cmt::analysis {

using Caller = CallerOf<Use>;
using ContributorOptions = GroupOptions<Use>;

struct Contributor : GroupOf<Use> {
  Lifetimes lifetimes{};  ///< of its own ended blocks
};

template <class Visitor>
void describe(Visitor& field, const Contributor& contributor) {
  describe_figures(field, contributor);
  const auto quantile = [&](double share) { return lifetime_quantile(contributor.lifetimes, share); };
  field("lifetime_p50", quantile(0.5),
        "in clock_unit, of its own: half of the ended blocks lived no longer; up to 12.5 % too high");
  field("lifetime_p90", quantile(0.9), "90 % of them lived no longer; up to 12.5 % too high");
  field("lifetime_p99", quantile(0.99), "99 % of them lived no longer; up to 12.5 % too high");
  describe_stack(field, contributor);
}

/// How a trace was sampled.
struct Sampling {
  std::uint64_t first_interval = 0, interval = 0;  ///< bytes, at the start and at the end
  std::uint64_t samples = 0, live_samples = 0;
  std::optional<std::uint64_t> lost{};  ///< blocks that the recorder lost; none: the trace breaks off
};

template <class Visitor, output::DescribedAs<Sampling> S>
void describe(Visitor& field, S& sampling) {
  field("first_interval_bytes", sampling.first_interval, "the mean bytes between two samples, at the start");
  field("interval_bytes", sampling.interval, "at the end");
  field("samples", sampling.samples, "blocks on which the estimates of allocated blocks rest");
  field("live_samples", sampling.live_samples, "of these, live at the end");
  field("samples_lost", sampling.lost,
        "samples for which the recorder had no room, which are in no estimate; null: the trace breaks off");
  field("unseen_below_bytes", whole(unseen_below(sampling.interval)),
        "below this a contributor can be without a sample: with 5 % or more");
  field("not_computed",
        std::string_view("all events are needed for temporary_blocks, short_lived_blocks, "
                         "other_thread_blocks, reallocated_blocks, untouched_bytes and lifetimes"),
        "why these are null");
}

struct Contributors {
  std::string name;  ///< of the file
  By by = By::function;
  Metric metric = Metric::peak;
  bool inclusive = false;
  std::string slice;  ///< the value of --slice; empty: the whole trace
  heap::Clock::Unit clock = heap::Clock::Unit::events;
  std::uint64_t short_lived_max = 0;
  std::uint64_t events = 0;
  std::uint64_t defects = 0;
  bool truncated = false;
  std::uint64_t stacks = 0;
  std::uint64_t peak_event = 0;
  std::uint64_t peak_time_ns = unknown;
  Use total;
  Use of_unknown_stacks;
  std::vector<Contributor> contributors;
  std::uint64_t left_out = 0;
  std::optional<Sampling> sampling;  ///< empty: the trace has all blocks
  std::optional<std::vector<trace::PoolCount>> pools_not_counted{};
};

std::string_view name(By by);
std::string_view name(Metric metric);
std::optional<By> parse_by(std::string_view text);
std::optional<Metric> parse_metric(std::string_view text);

inline constexpr std::string_view contributors_schema = "cmt.contributors/1";

template <class Visitor, output::DescribedAs<Contributors> C>
void describe(Visitor& field, C& report) {
  field("schema", contributors_schema, "the name and version of this form");
  field("name", report.name, "the file's name without its folder");
  field("by", name(report.by), "function, caller, line, library, thread, size or phase");
  field("sorted_by", name(report.metric),
        "bytes (allocated), blocks (allocated), peak, live (at the end), temporary, short-lived, other-thread, "
        "reallocated, growth or untouched");
  field("sorted_inclusive", report.inclusive, "whether by inclusive, or by self");
  field("slice", report.slice, "the part of the trace; empty: all of it");
  field("clock_unit", unit_name(report.clock), "what lifetimes are counted in: events, ns or bytes");
  field("short_lived_max", report.short_lived_max, "a lifetime up to this is short, in clock_unit");
  field("events", report.events, "events read, of the slice");
  field("defects", report.defects, "defects found in the trace");
  field("truncated", report.truncated, "whether the trace breaks off");
  field("stacks", report.stacks, "different stacks that have allocated");
  field("peak_event", report.peak_event,
        "the event with the most live bytes, counted from 1 from the start of the trace, of a slice too");
  field("peak_time_ns", output::nullable(report.peak_time_ns), "its time since the recording began");
  field("sampling", output::omit_if_empty(report.sampling), "of a sampled trace: the figures are estimates");
  field("total", report.total, "of all stacks");
  field("unknown_stacks", report.of_unknown_stacks, "of allocations whose stack is not known");
  field("contributors", report.contributors, "the largest first");
  field("contributors_left_out", report.left_out, "how many more there are, beyond --top and below --min");
  field("pools_not_counted", output::omit_if_empty(report.pools_not_counted),
        "of a whole trace: the pools that have events, which are in none of these figures (--pool)");
}

/// Returns the allocations of `uses` by contributor. `stacks` has the frames' names. The caller sets the report's name,
/// slice, clock, defects and truncation. Memory and time grow with the nodes of the stacks, however deep those are.
Contributors find_contributors(const StackTable& stacks, const Uses& uses, const ContributorOptions& options);

/// Returns a figure with its unit: "-1.5 MiB", "1,234".
std::string figure_text(std::int64_t figure, Metric metric);
/// The same of a use: "-" if nothing is known, ">= 8.93 MiB" if that is the least.
std::string figure_text(const Use& use, Metric metric);
/// Explains ">=" of untouched bytes, and how all is known.
std::string unknown_touches_text(std::uint64_t unknown_bytes);
/// The same; empty if the figure of all is exact.
std::string unknown_text(const Use& all, Metric metric);
/// Returns what the metric counts, to follow a number: "live at the peak".
std::string metric_text(Metric metric);

std::string to_text(const Contributors& report);
std::string to_csv(const Contributors& report);

}  // namespace cmt::analysis
