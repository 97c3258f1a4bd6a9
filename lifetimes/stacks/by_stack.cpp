#include "lifetimes/stacks/by_stack.h"

#include <filesystem>
#include <stdexcept>

#include "lifetimes/stacks/folded.h"
#include "lifetimes/stacks/stack_tree.h"
#include "toolkit/command/command_line.h"
#include "toolkit/symbols/name_frames.h"

namespace cmt::lifetimes {
namespace {

/// Counts what each stack has allocated, from the whole trace.
StackUses count_uses(annotate::Trace& trace) {
  StackUseCounter counter(trace.complaints());
  trace.for_each([&](const Event& event, std::size_t) { counter.count_event(event); });
  return counter.finish();
}

/// The stacks of the trace with the names of the frames that have allocated. Borrows the trace's texts.
StackTable named_stacks(const annotate::Trace& trace, const annotate::Options& options,
                        const StackOptions& stack_options, const StackUses& uses) {
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
  return line.parsed(option, "peak", "bytes, blocks, peak, live or temporary",
                     [](const std::string& text) { return parse_metric(text.empty() ? "peak" : text); });
}

}  // namespace

StackOptions parse_stack_options(const command::CommandLine& line) {
  StackOptions options;
  options.folded = line.has("folded");
  options.debug_directories = line.values("debug-dir");
  ContributorOptions& contributors = options.contributors;
  contributors.by = line.parsed("by", "function", "function, caller, line or library", parse_by);
  contributors.metric = metric_option(line, options.folded ? "folded" : "sort");
  contributors.inclusive = line.has("inclusive");
  contributors.skipped = line.checked("skip", [](const std::string& expression) -> std::string {
    try {
      Labels(StackTable(), Key::function, expression);
      return {};
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
  });
  const bool is_text = !line.has("json") && !line.has("csv");
  contributors.top = line.number("top", is_text ? 20 : 0, 0, 1'000'000'000);
  return options;
}

void report_stacks(const annotate::Options& options, const StackOptions& stack_options) {
  annotate::Trace trace(options, false, true);
  const StackUses uses = count_uses(trace);
  if (!trace.header().has_stacks && trace.stacks().node_count() == 1)  // the header knows only of the first events
    throw FormatError(options.path, "call stacks were not recorded (cmttrace --stacks records them)");
  const StackTable stacks = named_stacks(trace, options, stack_options, uses);
  if (stack_options.folded) {
    write_folded(stacks, uses, stack_options.contributors.metric,
                 [](const std::string& text) { command::print(text); });
  } else {
    Contributors report = find_contributors(stacks, uses, stack_options.contributors);
    report.name = std::filesystem::path(options.path).filename().string();
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
