#include "lifetimes/by_stack.h"

#include <filesystem>

#include "toolkit/allocations/folded.h"
#include "toolkit/allocations/groups/options.h"
#include "toolkit/allocations/named_stacks.h"
#include "toolkit/allocations/selection.h"
#include "toolkit/allocations/stack_tree.h"
#include "toolkit/command/command_line.h"

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

Metric metric_option(const command::CommandLine& line, const char* option) {
  return line.parsed(
      option, "peak",
      "bytes, blocks, peak, live, temporary, short-lived, other-thread, reallocated, growth or untouched",
      [](const std::string& text) { return parse_metric(text.empty() ? "peak" : text); });
}

}  // namespace

StackOptions parse_stack_options(const command::CommandLine& line) {
  StackOptions options;
  options.folded = line.has("folded");
  options.debug_directories = line.values("debug-dir");
  options.contributors = parse_group_options<Use>(line);
  options.contributors.metric = metric_option(line, options.folded ? "folded" : "sort");
  if (line.has("slice")) options.slice = line.parsed("slice", "", annotate::slice_form, annotate::SliceRange::parse);
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
  if (needs_stacks) require_stacks(trace.stacks(), trace.header(), options.path);
  const StackTable stacks = needs_stacks ? named_stacks(trace.stacks(), StackTree(trace.stacks(), uses).frames(),
                                                        trace.header(), {options.tool, stack_options.debug_directories})
                                         : StackTable();
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
