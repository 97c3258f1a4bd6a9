#include "lifetimes/by_stack.h"

#include <charconv>
#include <filesystem>
#include <stdexcept>

#include "toolkit/allocations/folded.h"
#include "toolkit/allocations/selection.h"
#include "toolkit/allocations/stack_tree.h"
#include "toolkit/command/command_line.h"
#include "toolkit/symbols/name_frames.h"

namespace cmt::lifetimes {

using namespace allocations;

namespace {

/// Counts what each stack, or other set, has allocated, from the whole trace or the slice.
Uses count_uses(annotate::Trace& trace, const UseOptions& options, const std::string& path) {
  if (options.slice) annotate::SliceProgress(*options.slice).check(trace.header(), path);
  UseCounter counter(options, trace.complaints());
  trace.for_each([&](const Event& event, std::size_t) { return counter.count_event(event); });
  return counter.finish(path);
}

/// The stacks of the trace with the names of the frames that have allocated. Borrows the trace's texts.
StackTable named_stacks(const annotate::Trace& trace, const annotate::Options& options,
                        const StackOptions& stack_options, const Uses& uses) {
  StackTable stacks = trace.stacks();
  symbols::NamingOptions naming{.perf_map = symbols::perf_map_of(trace.header()),
                                .start = symbols::start_of(trace.header()),
                                .say = [&](const std::string& message) { command::complain(options.tool, message); }};
  const auto& directories = stack_options.debug_directories;
  naming.debug_directories.insert(naming.debug_directories.begin(), directories.begin(), directories.end());
  symbols::name_frames(stacks, StackTree(stacks, uses).frames(), naming);
  return stacks;
}

Metric metric_option(const command::CommandLine& line, const char* option) {
  return line.parsed(
      option, "peak",
      "bytes, blocks, peak, live, temporary, short-lived, other-thread, reallocated, growth or untouched",
      [](const std::string& text) { return parse_metric(text.empty() ? "peak" : text); });
}

std::string pattern_option(const command::CommandLine& line, const char* option) {
  return line.checked(option, [](const std::string& expression) -> std::string {
    try {
      NamePattern pattern(expression);
      return {};
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
  });
}

/// "2.5%" or "2.5": a share of 1.
std::optional<double> parse_share(const std::string& text) {
  double percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (error != std::errc() || (!rest.empty() && rest != "%") || !(percent >= 0 && percent <= 100)) return std::nullopt;
  return percent / 100;
}

}  // namespace

StackOptions parse_stack_options(const command::CommandLine& line) {
  StackOptions options;
  options.folded = line.has("folded");
  options.debug_directories = line.values("debug-dir");
  ContributorOptions& contributors = options.contributors;
  contributors.by = line.parsed("by", "function", "function, caller, line, library, thread, size or phase", parse_by);
  contributors.metric = metric_option(line, options.folded ? "folded" : "sort");
  contributors.inclusive = line.has("inclusive");
  contributors.skipped = pattern_option(line, "skip");
  contributors.focus = pattern_option(line, "focus");
  contributors.ignored = pattern_option(line, "ignore");
  contributors.hidden = pattern_option(line, "hide");
  contributors.min = line.parsed("min", contributors.by == By::caller ? "1%" : "0", "a share, as 2.5%", parse_share);
  if (line.has("slice")) options.slice = line.parsed("slice", "", annotate::slice_form, annotate::SliceRange::parse);
  if (!is_of_stacks(contributors.by)) {
    for (const char* const option : {"inclusive", "skip", "focus", "ignore", "hide", "debug-dir"}) {
      if (line.has(option))
        throw command::UsageError(std::string("--") + option +
                                  " is about call stacks: not with --by=" + std::string(name(contributors.by)));
    }
  }
  const bool is_text = !line.has("json") && !line.has("csv");
  contributors.top = line.number("top", is_text ? 20 : 0, 0, 1'000'000'000);
  return options;
}

void report_stacks(const annotate::Options& options, const StackOptions& stack_options) {
  const ContributorOptions& asked = stack_options.contributors;
  const bool needs_stacks = stack_options.folded || is_of_stacks(asked.by);
  annotate::Trace trace(options, false, needs_stacks);
  const std::uint64_t touched_min = trace.header().touched_min();
  if (asked.metric == Metric::untouched && touched_min == 0)
    throw FormatError(options.path, "touched pages were not recorded (needed by untouched)");
  Uses uses = count_uses(trace, {asked.by, options.clock, stack_options.slice, touched_min}, options.path);
  // The header of a text or an unfinished trace knows only of the first events.
  if (needs_stacks && !trace.header().has_stacks && trace.stacks().node_count() == 1)
    throw FormatError(options.path, "call stacks were not recorded (cmttrace --stacks records them)");
  const StackTable stacks = needs_stacks ? named_stacks(trace, options, stack_options, uses) : StackTable();
  if (needs_stacks) uses = select_stacks(std::move(uses), stacks, asked.focus, asked.ignored);
  if (stack_options.folded) {
    write_folded(stacks, uses, asked.metric, asked.hidden, [](const std::string& text) { command::print(text); });
  } else {
    Contributors report = find_contributors(stacks, uses, asked);
    report.name = std::filesystem::path(options.path).filename().string();
    if (stack_options.slice) report.slice = stack_options.slice->text;
    report.clock = options.clock;
    report.defects = trace.complaints().count();
    report.truncated = trace.truncated();
    using Form = annotate::Options::Form;
    command::print(options.form == Form::json  ? output::json_text(report)
                   : options.form == Form::csv ? to_csv(report)
                                               : to_text(report));
  }
  trace.complaints().say_count();
}

}  // namespace cmt::lifetimes
