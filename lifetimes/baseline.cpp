// A gate for programs: judges allocations, peak and leaks of a trace by those of an earlier trace. These figures do not
// depend on the machine, and hardly on its load.
#include "lifetimes/baseline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analysis/fates/amount.h"
#include "cmt/error.h"
#include "lifetimes/by_stack.h"
#include "lifetimes/diff.h"
#include "lifetimes/summarise.h"
#include "lifetimes/summary.h"
#include "toolkit/command/command_line.h"
#include "toolkit/command/limits.h"
#include "toolkit/command/open_trace.h"
#include "toolkit/output/fields.h"
#include "toolkit/output/numbers.h"
#include "toolkit/trace/slice.h"

namespace cmt::lifetimes {
namespace {

using command::Limit;

constexpr int status_worse = 3;

const std::vector<std::string>& figure_names() {
  static const std::vector<std::string> names{"allocations", "bytes", "peak", "leaks"};
  return names;
}

std::uint64_t figure_of(const Summary& summary, const std::string& figure) {
  const SizeSummary total = summary.total();
  if (figure == "allocations") return total.allocated.blocks;
  if (figure == "bytes") return total.allocated.bytes;
  return figure == "peak" ? summary.peak_bytes_max() : total.leaked.bytes;
}

std::string amount_text(const std::string& figure, std::uint64_t amount) {
  return figure == "allocations" ? output::with_commas(amount) : output::bytes_text(amount);
}

std::string percent_text(double share, int decimals) {
  return (share < 0 ? "" : "+") + output::fixed(100 * share, decimals) + " %";
}

/// "+2.0 %, allowed +1.0 %". Shares that differ have as many digits as it takes to show that.
std::string shares_text(const ProgramFigure& figure) {
  if (figure.before == 0 && figure.after != 0) return "from none, allowed " + percent_text(figure.allowed, 1);
  const double share = figure.share();
  constexpr int decimals_max = 10;  // as exact as is_worse() is
  int decimals = 1;
  if (std::abs(share - figure.allowed) > ProgramFigure::rounding) {
    while (decimals < decimals_max && percent_text(share, decimals) == percent_text(figure.allowed, decimals))
      ++decimals;
  }
  return percent_text(share, decimals) + ", allowed " + percent_text(figure.allowed, decimals);
}

/// "4.62 MiB -> 4.70 MiB". Amounts that differ and have the same text are printed in full.
std::string amounts_text(const ProgramFigure& figure) {
  const std::string before = amount_text(figure.figure, figure.before),
                    after = amount_text(figure.figure, figure.after);
  if (before != after || figure.before == figure.after) return before + " -> " + after;
  return output::with_commas(figure.before) + " -> " + output::with_commas(figure.after) + " bytes";
}

std::string line_of(const ProgramFigure& figure) {
  return std::string(figure.is_worse() ? "worse: " : "ok: ") + (figure.phase ? *figure.phase + ": " : "") +
         figure.figure + " " + amounts_text(figure) + " (" + shares_text(figure) + ")\n";
}

/// The figure of a function that adds up to a figure of the program.
analysis::Metric metric_of(const std::string& figure) {
  if (figure == "allocations") return analysis::Metric::blocks;
  if (figure == "bytes") return analysis::Metric::bytes;
  return figure == "peak" ? analysis::Metric::peak : analysis::Metric::live;
}

/// Returns whether a file is JSON rather than a trace. A log of ltrace can begin with "[pid " or "[0x", no other trace
/// with a bracket.
bool is_json(const std::string& path) {
  const auto input = command::open_decompressed(path);
  const std::string_view begin = input->peek(2);
  return begin.starts_with('{') || (begin.starts_with('[') && !begin.starts_with("[p") && !begin.starts_with("[0"));
}

bool has_stacks(const std::string& path) {
  return command::open_trace(path, {.addresses = false, .stacks = true}).header().has_stacks;
}

[[noreturn]] void refuse_lost(const std::string& path, std::uint64_t lost) {
  throw FormatError(command::input_name(path),
                    "lacks " + output::counted(lost, "event") + " that the recorder has lost: not judged");
}

/// Throws FormatError if a trace breaks off: its figures would be those of its beginning. A trace without events is
/// that of a recording that failed, and would be better than any other. So would be one that lacks events.
void check_whole(const Summary& summary, const std::string& path) {
  for (const Input& input : summary.inputs) {
    if (input.truncated) throw FormatError(command::input_name(path), "breaks off: not judged");
    if (input.lost) refuse_lost(path, *input.lost);
    if (input.events == 0) throw FormatError(command::input_name(path), "has no events: not judged");
  }
}

/// The blocks that a phase has allocated, which may be none. A phase begins anew at each mark of its label.
struct Phase {
  analysis::Amount allocated;
  std::uint64_t begins = 0;
};
using Phases = std::map<std::string, Phase>;  // by label

/// Marks whose labels begin with a bracket only end a phase.
Phases phases_of(trace::Options options, const std::string& path) {
  options.path = path;
  trace::Trace trace(options, false);
  Phases phases;
  Phase* phase = nullptr;
  trace.for_each([&](const Event& event) {
    if (event.kind == Kind::mark) {
      phase = event.label.starts_with('[') ? nullptr : &phases[std::string(event.label)];
      if (phase != nullptr) ++phase->begins;
    }
    if (event.makes_block() && phase != nullptr) phase->allocated.add_block(event.bytes());
  });
  if (trace.truncated()) throw FormatError(command::input_name(path), "breaks off: not judged");
  if (trace.lost_events() != 0) refuse_lost(path, trace.lost_events());
  if (phases.empty()) throw FormatError(command::input_name(path), "has no marks (cmt_mark), and so no phases");
  trace.complaints().say_count();
  return phases;
}

ProgramGate compare_phases(const Phases& before, const Phases& after, const std::vector<Limit>& limits) {
  ProgramGate gate;
  for (const auto& [phase, its] : after) {
    const auto found = before.find(phase);
    if (found == before.end()) {
      gate.only_after.push_back(phase);
      continue;
    }
    for (const Limit& limit : limits) {
      const bool is_bytes = limit.figure == "bytes";
      gate.figures.push_back({.figure = limit.figure,
                              .before = is_bytes ? found->second.allocated.bytes : found->second.allocated.blocks,
                              .after = is_bytes ? its.allocated.bytes : its.allocated.blocks,
                              .allowed = limit.share,
                              .phase = phase});
    }
  }
  for (const auto& [phase, its] : before) {
    if (!after.contains(phase)) gate.only_before.push_back(phase);
  }
  return gate;
}

/// Prints the functions whose blocks or bytes have changed in the phase of a figure. `is_first`: it begins several
/// times in a trace, and only the first part of it is a slice.
void explain(const ProgramFigure& figure, bool is_first, const std::string& before_path, const trace::Options& options,
             const command::CommandLine& line) {
  StackOptions changes = parse_stack_options(line);
  changes.contributors.by = analysis::By::function;
  changes.contributors.metric = metric_of(figure.figure);
  changes.slice = trace::SliceRange::phase(*figure.phase);
  if (is_first) changes.slice->text += ", up to the next mark only; the phase begins several times";
  report_difference(before_path, options, changes);
}

int judge_phases(const trace::Options& options, const command::CommandLine& line, const std::string& before_path) {
  if (is_json(before_path)) throw FormatError(before_path, "a summary has no phases: --by=phase needs a trace");
  const auto limits =
      line.parsed("fail-if", "allocations+0%,bytes+1%",
                  "a list such as allocations+0%,bytes+1%, of allocations and bytes", [](const std::string& text) {
                    return command::parse_limits(text, {"allocations", "bytes"});
                  });
  const Phases before = phases_of(options, before_path), after = phases_of(options, options.path);
  const ProgramGate gate = compare_phases(before, after, limits);
  if (gate.figures.empty())
    throw FormatError(command::input_name(options.path), "has no phase of the baseline: not judged");
  std::vector<ProgramFigure> worse;
  for (const ProgramFigure& figure : gate.figures) {
    if (figure.is_worse()) worse.push_back(figure);
  }
  const int status = worse.empty() ? 0 : status_worse;
  if (options.form == trace::Options::Form::json) return command::print(output::json_text(gate)), status;
  std::string text;
  for (const ProgramFigure& figure : worse) text += line_of(figure);
  for (const std::string& phase : gate.only_before) text += "not judged: " + phase + ": only in the baseline\n";
  for (const std::string& phase : gate.only_after) text += "not judged: " + phase + ": not in the baseline\n";
  command::print(text + output::counted(gate.figures.size(), "figure") +
                 " judged: " + output::with_commas(worse.size()) + " worse\n");
  if (!worse.empty() && options.path != "-" && has_stacks(before_path) && has_stacks(options.path)) {
    command::print("\n");
    const std::string& phase = *worse.front().phase;
    explain(worse.front(), before.at(phase).begins > 1 || after.at(phase).begins > 1, before_path, options, line);
  }
  return status;
}

}  // namespace

void refuse_baseline_options(const command::CommandLine& line) {
  if (!line.has("baseline")) {
    if (line.has("fail-if")) throw command::UsageError("--fail-if needs --baseline");
    return;
  }
  line.refuse_together("baseline", {"merge", "summary", "counts", "leaks", "totals", "plot", "csv", "diff", "folded",
                                    "pprof", "speedscope", "slice", "clock", "sort", "top", "min"});
  if (line.value("by", "phase") != "phase") throw command::UsageError("--baseline goes with --by=phase alone");
  if (line.value("baseline", "").empty() || line.value("baseline", "") == "-")
    throw command::UsageError("--baseline needs a file");
}

int judge_by_baseline(const trace::Options& options, const command::CommandLine& line) {
  const std::string path = line.value("baseline", "");
  if (line.has("by")) return judge_phases(options, line, path);
  const auto limits = line.parsed("fail-if", "allocations+1%,peak+2%,leaks+0%",
                                  "a list such as allocations+1%,peak+2%, of allocations, bytes, peak and leaks",
                                  [](const std::string& text) { return command::parse_limits(text, figure_names()); });
  const bool has_trace = !is_json(path);
  trace::Options before_options = options;
  before_options.path = path;
  std::vector<Summary> before;
  if (has_trace)
    before.push_back(summary_of(before_options));
  else
    before = read_json(path);
  if (before.size() != 1) throw FormatError(path, "a list of summaries is no baseline of one trace");
  if (before.front().inputs.size() != 1)
    throw FormatError(path, "a summary of several traces is no baseline of one trace");
  check_whole(before.front(), path);
  const Summary after = summary_of(options);
  check_whole(after, options.path);
  ProgramGate gate;
  for (const Limit& limit : limits) {
    gate.figures.push_back({.figure = limit.figure,
                            .before = figure_of(before.front(), limit.figure),
                            .after = figure_of(after, limit.figure),
                            .allowed = limit.share});
  }
  const auto worse =
      std::find_if(gate.figures.begin(), gate.figures.end(), [](const ProgramFigure& each) { return each.is_worse(); });
  const bool is_worse = worse != gate.figures.end();
  if (options.form == trace::Options::Form::json)
    return command::print(output::json_text(gate)), is_worse ? status_worse : 0;
  std::string text;
  for (const ProgramFigure& figure : gate.figures) text += line_of(figure);
  command::print(text);
  if (is_worse && has_trace && options.path != "-" && has_stacks(path) && has_stacks(options.path)) {
    command::print("\n");
    StackOptions changes = parse_stack_options(line);
    changes.contributors.metric = metric_of(worse->figure);  // a function that leaks need not be in the peak
    report_difference(path, options, changes);
  }
  return is_worse ? status_worse : 0;
}

}  // namespace cmt::lifetimes
