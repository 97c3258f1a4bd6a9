/// lifetimes --baseline: judges a trace by an earlier one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "toolkit/command/command_line.h"
#include "toolkit/output/fields.h"
#include "toolkit/trace/trace_tool.h"

namespace cmt::lifetimes {

/// One figure of the baseline and of the trace.
struct ProgramFigure {
  std::string figure = {};
  std::uint64_t before = 0, after = 0;
  double allowed = 0;

  bool is_worse() const { return static_cast<double>(after) > static_cast<double>(before) * (1 + allowed); }
};

template <class Visitor, output::DescribedAs<ProgramFigure> F>
void describe(Visitor& field, F& figure) {
  field("figure", figure.figure, "allocations (blocks), bytes, peak or leaks (bytes)");
  field("before", figure.before, "of the baseline");
  field("after", figure.after, "of the trace");
  field("allowed", figure.allowed, "the share of --fail-if");
  field("worse", figure.is_worse(), "whether it is greater by more than that");
}

/// The figures that --baseline judges.
struct ProgramGate {
  std::vector<ProgramFigure> figures = {};
};

template <class Visitor, output::DescribedAs<ProgramGate> G>
void describe(Visitor& field, G& gate) {
  field("schema", std::string_view("cmt.program_gate/1"), "the name and version of this form");
  field("figures", gate.figures, "");
}

/// Throws UsageError if the options of --baseline do not go with the others.
void refuse_baseline_options(const command::CommandLine& line);

/// Compares the trace that the options name with --baseline, a trace or a summary in JSON. Prints a line for each
/// figure. If a figure is worse and both are traces with call stacks, also prints the changes by function. Returns the
/// exit status: 3 if a figure is worse by more than --fail-if allows.
int judge_by_baseline(const trace::Options& options, const command::CommandLine& line);

}  // namespace cmt::lifetimes
