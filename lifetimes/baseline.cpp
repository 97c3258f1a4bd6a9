// A gate for programs: judges allocations, peak and leaks of a trace by those of an earlier trace. These figures do not
// depend on the machine, and hardly on its load.
#include "lifetimes/baseline.h"

#include <string>
#include <vector>

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

std::string change_text(const ProgramFigure& figure) {
  if (figure.before == 0) return figure.after == 0 ? "+0.0 %" : "from none";
  const double change = static_cast<double>(figure.after) / static_cast<double>(figure.before) - 1;
  return (change < 0 ? "" : "+") + output::fixed(100 * change, 1) + " %";
}

std::string line_of(const ProgramFigure& figure) {
  return std::string(figure.is_worse() ? "worse: " : "ok: ") + figure.figure + " " +
         amount_text(figure.figure, figure.before) + " -> " + amount_text(figure.figure, figure.after) + " (" +
         change_text(figure) + ", allowed +" + output::fixed(100 * figure.allowed, 1) + " %)\n";
}

/// Returns whether a file is JSON rather than a trace. A log of ltrace can begin with "[pid " or "[0x", no other trace
/// with a bracket.
bool is_json(const std::string& path) {
  const auto input = command::open_decompressed(path);
  const std::string_view begin = input->peek(2);
  return begin.starts_with('{') || (begin.starts_with('[') && !begin.starts_with("[p") && !begin.starts_with("[0"));
}

bool has_stacks(trace::Options options, const std::string& path) {
  options.path = path;
  return trace::Trace(options, false, true).header().has_stacks;
}

/// Throws FormatError if a trace breaks off: its figures would be those of its beginning.
void check_whole(const Summary& summary, const std::string& path) {
  for (const Input& input : summary.inputs) {
    if (input.truncated) throw FormatError(command::input_name(path), "breaks off: not judged");
  }
}

}  // namespace

void refuse_baseline_options(const command::CommandLine& line) {
  if (!line.has("baseline")) {
    if (line.has("fail-if")) throw command::UsageError("--fail-if needs --baseline");
    return;
  }
  line.refuse_together("baseline", {"merge", "summary", "counts", "leaks", "totals", "plot", "csv", "by", "diff",
                                    "folded", "pprof", "speedscope", "slice", "clock"});
  if (line.value("baseline", "").empty() || line.value("baseline", "") == "-")
    throw command::UsageError("--baseline needs a file");
}

int judge_by_baseline(const trace::Options& options, const command::CommandLine& line) {
  const auto limits = line.parsed("fail-if", "allocations+1%,peak+2%,leaks+0%",
                                  "a list such as allocations+1%,peak+2%, of allocations, bytes, peak and leaks",
                                  [](const std::string& text) { return command::parse_limits(text, figure_names()); });
  const std::string path = line.value("baseline", "");
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
  bool is_worse = false;
  for (const Limit& limit : limits) {
    gate.figures.push_back({.figure = limit.figure,
                            .before = figure_of(before.front(), limit.figure),
                            .after = figure_of(after, limit.figure),
                            .allowed = limit.share});
    is_worse = is_worse || gate.figures.back().is_worse();
  }
  if (options.form == trace::Options::Form::json)
    return command::print(output::json_text(gate)), is_worse ? status_worse : 0;
  std::string text;
  for (const ProgramFigure& figure : gate.figures) text += line_of(figure);
  command::print(text);
  if (is_worse && has_trace && options.path != "-" && has_stacks(options, path) && has_stacks(options, options.path)) {
    command::print("\n");
    report_difference(path, options, parse_stack_options(line));
  }
  return is_worse ? status_worse : 0;
}

}  // namespace cmt::lifetimes
