// Reads two traces, compares them and prints the difference.
#include "lifetimes/diff.h"

#include "analysis/differences/compared_trace.h"
#include "cmt/error.h"
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
  ComparedTrace before(compared, before_path), after(compared, options.path);
  if ((before.header().sampled() == 0) != (after.header().sampled() == 0))
    throw FormatError(options.path, "one trace is sampled and the other is not: they are not compared");
  count_both(before, after, {asked.by});
  Difference report;
  const auto difference_of = [&](const StackTable& stacks, DiffUses uses) {
    uses.set_intervals(before.uses(asked.by).interval, after.uses(asked.by).interval);
    return find_difference(stacks, uses, asked);
  };
  if (is_of_stacks(asked.by)) {
    MergedStacks merged = merge_stacks(before.side(), after.side(), asked);
    report = difference_of(merged.stacks, std::move(merged.uses));
  } else {
    report = difference_of({}, merge_sets(before.uses(asked.by), after.uses(asked.by)));
  }
  report.before = before.facts();
  report.after = after.facts();
  report.clock = options.clock;
  if (stack_options.slice) report.slice = stack_options.slice->text;
  using Form = trace::Options::Form;
  command::print(options.form == Form::json  ? output::json_text(report)
                 : options.form == Form::csv ? to_csv(report)
                                             : to_text(report));
  before.say_defects();
  after.say_defects();
}

}  // namespace cmt::lifetimes
