/// lifetimes --baseline: judges a trace by an earlier one.
#pragma once

#include <cstdint>
#include <optional>
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
  std::optional<std::string> phase = {};

  /// A share such as 1.1 % is no exact double: a growth by just this share is allowed.
  static constexpr double rounding = 1e-12;
  bool is_worse() const { return static_cast<double>(after) > static_cast<double>(before) * (1 + allowed + rounding); }

  /// The change as a share of the baseline, which is 0 only if nothing has changed.
  double share() const { return before == 0 ? 0 : static_cast<double>(after) / static_cast<double>(before) - 1; }
};

template <class Visitor, output::DescribedAs<ProgramFigure> F>
void describe(Visitor& field, F& figure) {
  field("phase", output::omit_if_empty(figure.phase), "with --by=phase: the label of its mark");
  field("figure", figure.figure, "allocations (blocks), bytes, peak or leaks (bytes)");
  field("before", figure.before, "of the baseline");
  field("after", figure.after, "of the trace");
  field("allowed", figure.allowed, "the share of --fail-if");
  field("worse", figure.is_worse(), "whether it is greater by more than that");
}

/// The figures that --baseline judges.
struct ProgramGate {
  std::vector<ProgramFigure> figures = {};
  std::vector<std::string> only_before = {}, only_after = {};
};

template <class Visitor, output::DescribedAs<ProgramGate> G>
void describe(Visitor& field, G& gate) {
  field("schema", std::string_view("cmt.program_gate/1"), "the name and version of this form");
  field("figures", gate.figures, "with --by=phase: of each phase that both traces have");
  field("only_before", gate.only_before, "phases of the baseline that the trace lacks: not judged");
  field("only_after", gate.only_after, "phases that only the trace has: not judged");
}

/// Throws UsageError if the options of --baseline do not go with the others.
void refuse_baseline_options(const command::CommandLine& line);

/// Compares the trace that the options name with --baseline, a trace or a summary in JSON. Prints a line for each
/// figure. If a figure is worse and both are traces with call stacks, also prints the changes of it by function. With
/// --by=phase the figures are those of each phase. Returns the exit status: 3 if a figure is worse by more than
/// --fail-if allows.
int judge_by_baseline(const trace::Options& options, const command::CommandLine& line);

}  // namespace cmt::lifetimes
