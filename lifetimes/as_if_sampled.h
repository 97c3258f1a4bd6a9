/// lifetimes --as-if-sampled: judges a sampler by a full trace.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/sampling/estimate.h"
#include "lifetimes/by_stack.h"

namespace cmt::lifetimes {

/// How the sampler is simulated.
struct SamplerOptions {
  std::uint64_t interval = 0;  ///< bytes
  unsigned runs = 0;
  std::uint64_t seed = 0;
};

/// Bytes of a set of blocks, and their estimate by the first run.
struct JudgedBytes {
  std::uint64_t bytes = 0;
  analysis::Estimate estimate{};

  bool holds() const { return analysis::interval95(estimate).has(static_cast<double>(bytes)); }
};

template <class Visitor>
void describe(Visitor& field, const JudgedBytes& judged) {
  field("bytes", judged.bytes, "the truth");
  field("estimate", judged.estimate, "by the first run");
  field("holds", judged.holds(), "whether the interval of the estimate has the truth");
}

/// The three figures that a sampler estimates, in the order of reports.
inline constexpr std::array<std::string_view, 3> judged_figures{"allocated", "peak", "end_live"};
template <class T>
using PerFigure = std::array<T, judged_figures.size()>;

template <class Visitor, class T>
void describe_each(Visitor& field, const PerFigure<T>& figures) {
  field("allocated", figures[0], "of blocks made");
  field("peak", figures[1], "of those live at the peak of live bytes");
  field("end_live", figures[2], "of those live at the end");
}

struct JudgedSet {
  std::string name;
  PerFigure<JudgedBytes> figures{};
};

template <class Visitor>
void describe(Visitor& field, const JudgedSet& set) {
  field("name", set.name, "of the function, line or library; \"thread 3 (name)\"; sizes; or a mark's label");
  describe_each(field, set.figures);
}

/// The intervals of all runs.
struct Coverage {
  std::uint64_t sets = 0;    ///< with share_min of the figure or more
  double held = 0;           ///< of their intervals in all runs
  double width_median = 0;   ///< half of an interval's width over the truth
  std::uint64_t unseen = 0;  ///< sets of any size without a sample in the first run
  std::uint64_t unseen_bytes = 0;
};

inline constexpr double share_min = 0.001;

template <class Visitor>
void describe(Visitor& field, const Coverage& coverage) {
  field("sets", coverage.sets, "with 0.1 % of the figure or more");
  field("held", coverage.held, "the share of their intervals, in all runs, that have the truth");
  field("half_width_median", coverage.width_median, "half of an interval's width, as a share of the truth");
  field("unseen", coverage.unseen, "sets of any size without a sample in the first run");
  field("unseen_bytes", coverage.unseen_bytes, "the truth about these");
}

/// The same of each figure.
struct Coverages {
  PerFigure<Coverage> figures{};
};
template <class Visitor>
void describe(Visitor& field, const Coverages& coverages) {
  describe_each(field, coverages.figures);
}

/// Relative, root of the mean square over all runs.
struct TotalErrors {
  PerFigure<double> figures{};
};
template <class Visitor>
void describe(Visitor& field, const TotalErrors& errors) {
  describe_each(field, errors.figures);
}

struct SamplerReport {
  std::string name;  ///< of the file
  analysis::By by = analysis::By::function;
  analysis::Metric metric = analysis::Metric::peak;
  SamplerOptions sampler;
  std::uint64_t allocations = 0;
  JudgedSet total;
  TotalErrors total_errors;
  Coverages of_sets;
  Coverages of_stacks;  ///< empty if sets are not of stacks
  std::vector<JudgedSet> sets;
  std::uint64_t left_out = 0;
};

template <class Visitor>
void describe(Visitor& field, const SamplerReport& report) {
  field("schema", std::string_view("cmt.as_if_sampled/1"), "the name and version of this form");
  field("name", report.name, "the file's name without its folder");
  field("by", analysis::name(report.by), "function, line, library, thread, size or phase");
  field("sorted_by", analysis::name(report.metric), "bytes (allocated), peak or live (at the end)");
  field("interval_bytes", report.sampler.interval, "the sampling interval");
  field("runs", report.sampler.runs, "samplers that were simulated");
  field("seed", report.sampler.seed, "of their random numbers");
  field("unseen_below_bytes", analysis::whole(analysis::unseen_below(report.sampler.interval)),
        "below this a set can be without a sample: with 5 % or more");
  field("allocations", report.allocations, "blocks made, in the trace");
  field("total", report.total, "of all sets");
  field("total_error", report.total_errors, "of the totals, relative: the root mean square of all runs");
  field("coverage", report.of_sets, "of the intervals of the sets");
  field("stack_coverage", report.of_stacks, "of the intervals of whole stacks; zeros if sets are not of stacks");
  field("sets", report.sets, "the largest first");
  field("sets_left_out", report.left_out, "how many more there are, beyond --top and below --min");
}

/// Returns whether the option is given. Throws UsageError if it does not go with the others.
bool asks_as_if_sampled(const command::CommandLine& line);

/// Reads the full trace that the options name, simulates samplers, and prints how far off their estimates are. Throws
/// UsageError for a bad value of an option.
void judge_samplers(const trace::Options& options, const command::CommandLine& line);

}  // namespace cmt::lifetimes
