// Reads two traces, compares them and prints the difference.
#include "lifetimes/diff.h"

#include "analysis/differences/compared_trace.h"
#include "toolkit/command/command_line.h"

namespace cmt::lifetimes {

using namespace analysis;

namespace {

/// The options of a contributor's report, of a difference.
GroupOptions<DiffUse> options_of(const ContributorOptions& asked) {
  return {.by = asked.by,
          .metric = asked.metric,
          .inclusive = asked.inclusive,
          .charges = asked.charges,
          .focus = asked.focus,
          .ignored = asked.ignored,
          .hidden = asked.hidden,
          .min = asked.min,
          .top = asked.top};
}

}  // namespace

void report_difference(const std::string& before_path, const trace::Options& options,
                       const StackOptions& stack_options) {
  const GroupOptions<DiffUse> asked = options_of(stack_options.contributors);
  const CompareOptions compared{.trace = options,
                                .groups = asked,
                                .reads_stacks = is_of_stacks(asked.by),
                                .slice = stack_options.slice,
                                .debug_directories = stack_options.debug_directories,
                                .samples = command::Samples::accepted};
  Difference report = compare(compared, before_path, options.path);
  report.clock = options.clock;
  if (stack_options.slice) report.slice = stack_options.slice->text;
  using Form = trace::Options::Form;
  command::print(options.form == Form::json  ? output::json_text(report)
                 : options.form == Form::csv ? to_csv(report)
                                             : to_text(report));
}

}  // namespace cmt::lifetimes
