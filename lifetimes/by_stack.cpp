// Counts, names and prints allocations by stack. A slice may begin at a keyframe with origins.
#include "lifetimes/by_stack.h"

#include <filesystem>

#include "analysis/groups/options.h"
#include "analysis/sampling/sample_counter.h"
#include "analysis/stacks/named_stacks.h"
#include "analysis/stacks/native_frames.h"
#include "analysis/stacks/selection.h"
#include "analysis/stacks/stack_tree.h"
#include "toolkit/command/command_line.h"
#include "toolkit/command/output_path.h"
#include "toolkit/output/numbers.h"
#include "toolkit/symbols/modules_ahead.h"

namespace cmt::lifetimes {

using namespace analysis;

namespace {

Uses count_slice(trace::Trace& trace, UseCounter& counter, const UseOptions& options, const std::string& path) {
  const auto visit = [&](const Event& event) { return counter.count_event(event); };
  std::optional<trace::LateStart> start;
  if (UseCounter::can_start_late(options)) start = trace.start_late(*options.slice);
  if (!start) {
    trace.for_each(visit);
    if (trace.lacks_last_touches()) counter.note_unknown_end();
    return counter.finish(path);
  }
  EarlyEvents early(path, start->event, options.clock);
  counter.start_late(*start, early.find_first_tag());
  trace.for_each(visit);
  early.complete(counter.early_ends());
  if (trace.lacks_last_touches()) counter.note_unknown_end();
  Uses uses = counter.finish(path);
  if (uses.peak_event == start->event)
    uses.peak_time_ns = early.last_time_ns();  // origins have only the last known one
  return uses;
}

}  // namespace

Uses count_uses(trace::Trace& trace, const UseOptions& options, const std::string& path) {
  if (options.slice) trace::SliceProgress(*options.slice).check(trace.header(), path);
  if (const std::uint64_t interval = trace.header().sampled(); interval != 0) {
    SampleCounter counter(options.by, interval, options.slice, trace.complaints());
    trace.for_each([&](const Event& event) { return counter.count_event(event); });
    return counter.finish(path);
  }
  UseCounter counter(options, trace.complaints());
  if (options.slice) return count_slice(trace, counter, options, path);
  trace.for_each([&](const Event& event) { counter.count_event(event); });
  if (trace.lacks_last_touches()) counter.note_unknown_end();
  return counter.finish(path);
}

ShownStacks name_uses(Uses& uses, const trace::Trace& trace, const trace::Options& options,
                      const ContributorOptions& asked, const NamedStacksOptions& naming) {
  if (!uses.entries.empty()) require_stacks(trace.stacks(), trace.header(), options.path);
  StackTable named = named_stacks(trace.stacks(), StackTree(trace.stacks(), uses).frames(), trace.header(), naming);
  const bool had_stacks = !uses.entries.empty();
  uses = select_stacks(std::move(uses), named, asked.focus, asked.ignored);
  if (had_stacks && uses.entries.empty()) command::complain(options.tool, analysis::no_stack_matches);
  ShownStacks shown = show_stacks(std::move(named), trace.stacks().nodes(), asked.native, key_of(asked.by));
  uses = shown_uses(std::move(uses), shown);
  return shown;
}

StackOptions parse_stack_options(const command::CommandLine& line) {
  StackOptions options;
  options.exported = parse_export_options(line);
  options.debug_directories = line.values("debug-dir");
  options.contributors = parse_group_options<Use>(line);
  options.contributors.metric = line.has("folded") ? options.exported.metric : parse_metric_option(line, "sort");
  if (line.has("slice")) options.slice = line.parsed("slice", "", trace::slice_form, trace::SliceRange::parse);
  return options;
}

namespace {

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

/// Returns the samples that the recorder lost, or nullopt if the trace breaks off.
std::optional<std::uint64_t> samples_lost(const trace::Trace& trace) {
  return trace.totals() ? std::optional(trace.totals()->samples_lost) : std::nullopt;
}

/// Returns the comments of a profile: its trace and the options that chose its stacks.
std::vector<std::string> comments(trace::Trace& trace, const trace::Options& options, const StackOptions& asked,
                                  const Uses& uses) {
  std::vector<std::string> facts{"cmt lifetimes " CMT_VERSION ", of " + file_name(options.path)};
  if (const auto command = trace.header().find("command")) facts.push_back("command: " + std::string(*command));
  facts.push_back(output::counted(uses.events, "event"));
  if (asked.slice) facts.push_back("slice: " + asked.slice->text);
  if (const std::string& focus = asked.contributors.focus; !focus.empty()) facts.push_back("focus: " + focus);
  if (const std::string& ignored = asked.contributors.ignored; !ignored.empty()) facts.push_back("ignore: " + ignored);
  if (trace.header().sampled() != 0)
    facts.push_back("estimates from samples: " + command::sampling_text(trace.header()) +
                    " at the start; a stack below " + output::bytes_text(whole(unseen_below(uses.interval))) +
                    " can be without a sample");
  if (const std::uint64_t lost = samples_lost(trace).value_or(0); lost != 0)
    facts.push_back(output::counted(lost, "sample") + " lost");
  if (trace.truncated()) facts.emplace_back("the trace breaks off");
  if (const std::uint64_t defects = trace.complaints().count(); defects != 0)
    facts.push_back(output::counted(defects, "defect"));
  return facts;
}

std::optional<Sampling> sampling_of(const trace::Trace& trace, const Uses& uses, const Use& total) {
  const std::uint64_t interval = trace.header().sampled();
  if (interval == 0) return std::nullopt;
  return Sampling{interval, uses.interval, total.sampled->allocated.samples, total.sampled->live.samples,
                  samples_lost(trace)};
}

Contributors contributors_of(trace::Trace& trace, const trace::Options& options, const StackOptions& asked,
                             const StackTable& stacks, const Uses& uses) {
  Contributors report = find_contributors(stacks, uses, asked.contributors);
  report.name = options.name_with_pool(file_name(options.path));
  if (asked.slice)
    report.slice = asked.slice->text;
  else
    report.pools_not_counted = trace.pools().not_counted();
  report.clock = options.clock;
  report.defects = trace.complaints().count();
  report.truncated = trace.truncated();
  report.sampling = sampling_of(trace, uses, report.total);
  return report;
}

void print_contributors(const Contributors& report, trace::Options::Form form) {
  using Form = trace::Options::Form;
  command::print(form == Form::json ? output::json_text(report) : form == Form::csv ? to_csv(report) : to_text(report));
}

}  // namespace

void report_stacks(const trace::Options& options, const StackOptions& stack_options) {
  const ContributorOptions& asked = stack_options.contributors;
  command::refuse_input_as_output(stack_options.exported.path, {options.path});
  Export exported(stack_options.exported);
  const bool is_export = stack_options.exported.form != ExportForm::none;
  const bool needs_stacks = is_export || is_of_stacks(asked.by);
  trace::Trace trace(options, shows_moves(asked.metric, options), needs_stacks, command::Samples::accepted);
  const std::uint64_t touched_min = trace.header().touched_min();
  if (trace.header().sampled() != 0) refuse_unestimated(options.path, asked.metric, options.clock);
  if (asked.metric == Metric::untouched && touched_min == 0)
    throw FormatError(options.path, "touched pages were not recorded (needed by untouched)");
  NamedStacksOptions naming{options.tool, stack_options.debug_directories};
  symbols::ModulesAhead ahead(naming_options(trace.header(), naming));
  if (needs_stacks && options.jobs > 1) {
    naming.ahead = &ahead;
    trace.call_while_reading([&] { ahead.open_modules_of(trace.stacks()); });
  }
  const bool may_be_part = !stack_options.slice && trace.header().sampled() == 0;
  const std::string part = may_be_part ? trace.part_slices() : "";
  Uses uses = count_uses(trace, {asked.by, options.clock, stack_options.slice, touched_min, part}, options.path);
  ShownStacks shown;
  if (needs_stacks) shown = name_uses(uses, trace, options, asked, naming);
  StackOptions charged = stack_options;
  charged.contributors.charges = shown.charges(asked.charges);
  if (is_export) {
    exported.write(shown.stacks, uses, charged.contributors.charges, asked.hidden,
                   {trace.header(), file_name(options.path), comments(trace, options, stack_options, uses)});
  } else {
    print_contributors(contributors_of(trace, options, charged, shown.stacks, uses), options.form);
  }
  trace.complaints().say_count();
}

}  // namespace cmt::lifetimes
