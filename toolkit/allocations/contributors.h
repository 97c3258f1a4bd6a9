/// Who allocates: the allocations of a trace by the function, with its callers or without, the line or the library; or
/// by the thread, the size or the phase.
///
/// A stack is charged to its innermost function that is no allocation function (labels.h): that is its contributor. A
/// function also has all that the functions that it calls allocate; recursive ones are counted once in each stack.
///
///     main -> parse -> operator new          charged to parse; main and parse have it with callees
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "toolkit/allocations/labels.h"
#include "toolkit/allocations/use.h"
#include "toolkit/output/fields.h"

namespace cmt::allocations {

/// A function of a stack.
struct StackLine {
  std::string function;
  std::string library;
  std::optional<std::string> file;
  std::optional<std::uint64_t> line;
};

template <class Visitor, output::DescribedAs<StackLine> S>
void describe(Visitor& field, S& line) {
  field("function", line.function, "its name, or else its library with an offset, or else an address");
  field("library", line.library, "the file's name without its folder");
  field("file", line.file, "of the source");
  field("line", line.line, "in that file");
}

/// A function in a tree of callers, and what those of its allocations have that come from there.
struct Caller {
  std::string name;
  Use use;
  std::vector<Caller> callers{};  ///< the largest first; those below --min are left out
};

/// How many levels a tree of callers has: a recursive function would else have as many as it is deep.
inline constexpr std::size_t caller_levels_max = 40;

template <class Visitor, output::DescribedAs<Caller> C>
void describe(Visitor& field, C& caller) {
  field("name", caller.name, "of the function that calls");
  field("use", caller.use, "of allocations that come from there");
  field("callers", caller.callers, "who calls it there, as here; 40 levels at most");
}

struct Contributor {
  std::string name;
  LabelId label = 0;  ///< of a function, a line or a library: what it is known by where names are the same
  Use self;
  Use inclusive;
  Lifetimes lifetimes{};  ///< of its own blocks that have ended
  std::vector<Caller> callers{};
  StackId largest = 0;  ///< of its own stacks, or if it has none of those through it, that with most by the metric
  std::vector<StackLine> stack;
  std::uint64_t stack_left_out = 0;
};

/// How many functions of a stack are kept, of a deep one: a report of many would else be as large as their square.
inline constexpr std::size_t inner_lines_max = 40, outer_lines_max = 10;

template <class Visitor, output::DescribedAs<Contributor> C>
void describe(Visitor& field, C& contributor) {
  field("name", contributor.name, "of the function, line or library; \"thread 3 (name)\"; sizes; or a mark's label");
  field("self", contributor.self, "of stacks of which it is the innermost that is no allocation function");
  field("inclusive", contributor.inclusive, "of stacks that it is anywhere in; without stacks the same as self");
  const auto quantile = [&](double share) { return lifetime_quantile(contributor.lifetimes, share); };
  field("lifetime_p50", quantile(0.5), "in clock_unit, of its own: half of the ended blocks lived no longer");
  field("lifetime_p90", quantile(0.9), "90 % of them lived no longer");
  field("lifetime_p99", quantile(0.99), "99 % of them lived no longer");
  field("callers", contributor.callers, "by caller: who calls it, the largest first");
  field("stack", contributor.stack,
        "the largest of its stacks by sorted_by, the innermost function first; of more than 50, the inner 40 and the "
        "outer 10");
  field("stack_left_out", contributor.stack_left_out, "functions between these");
}

struct ContributorOptions {
  By by = By::function;
  Metric metric = Metric::peak;
  bool inclusive = false;  ///< sorts by what functions have with those that they call
  std::string skipped{};   ///< functions that count as allocation functions, an extended regular expression
  std::string focus{};     ///< only stacks with a function that matches; empty: all
  std::string ignored{};   ///< no stacks with a function that matches
  std::string hidden{};    ///< functions that are taken out of stacks
  double min = 0;          ///< contributors and callers below this share of the total are left out
  std::size_t top = 0;     ///< how many contributors; 0: all
};

struct Contributors {
  std::string name;  ///< of the file
  By by = By::function;
  Metric metric = Metric::peak;
  bool inclusive = false;
  std::string slice;  ///< as it was given; empty: the whole trace
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
  field("total", report.total, "of all stacks");
  field("unknown_stacks", report.of_unknown_stacks, "of allocations whose stack is not known");
  field("contributors", report.contributors, "the largest first");
  field("contributors_left_out", report.left_out, "how many more there are, beyond --top and below --min");
}

/// The least figure that --min lets through: that share of the sum of all figures, whether those grow or shrink. 0:
/// all.
double least_figure(const Uses& uses, const ContributorOptions& options);
inline bool is_at_least(std::int64_t figure, double least) {
  return static_cast<double>(figure < 0 ? -figure : figure) >= least;
}

/// The allocations of `uses` by contributor. `stacks` has the frames' names. The report's name, slice, clock, defects
/// and truncation are the caller's. Memory and time: by the nodes of the stacks, however deep those are.
Contributors find_contributors(const StackTable& stacks, const Uses& uses, const ContributorOptions& options);

std::string to_text(const Contributors& report);
std::string to_csv(const Contributors& report);

}  // namespace cmt::allocations
