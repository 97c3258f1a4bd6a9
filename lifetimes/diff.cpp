#include "lifetimes/diff.h"

#include <filesystem>
#include <future>
#include <utility>

#include "toolkit/allocations/diff/difference.h"
#include "toolkit/allocations/diff/merged_stacks.h"
#include "toolkit/allocations/named_stacks.h"
#include "toolkit/allocations/selection.h"
#include "toolkit/allocations/stack_tree.h"
#include "toolkit/command/command_line.h"

namespace cmt::lifetimes {

using namespace allocations;

namespace {

/// One of the two traces: what each stack, or other set, has allocated in it. It does not move: the trace borrows its
/// options, and the stacks the texts of the trace.
class CountedTrace {
 public:
  CountedTrace(annotate::Options options, const std::string& path, const StackOptions& asked)
      : options_(with_path(std::move(options), path)), asked_(asked), trace_(options_, false, has_stacks()) {}
  CountedTrace(const CountedTrace&) = delete;
  CountedTrace& operator=(const CountedTrace&) = delete;

  void count() {
    const std::uint64_t touched_min = trace_.header().touched_min();
    if (asked_.contributors.metric == Metric::untouched && touched_min == 0)
      throw FormatError(options_.path, "touched pages were not recorded (needed by untouched)");
    uses_ = count_uses(trace_, {asked_.contributors.by, options_.clock, asked_.slice, touched_min}, options_.path);
    if (has_stacks()) require_stacks(trace_.stacks(), trace_.header(), options_.path);
    for (const Uses::Entry& entry : uses_.entries) stack_count_ += has_stacks() && entry.key != 0;
  }

  /// Names the stacks, and keeps those that are asked for. Not for two threads at once: both may read the same files.
  void name_stacks() {
    if (!has_stacks()) return;
    stacks_ = named_stacks(trace_.stacks(), StackTree(trace_.stacks(), uses_).frames(), trace_.header(),
                           {options_.tool, asked_.debug_directories});
    uses_ = select_stacks(std::move(uses_), stacks_, asked_.contributors.focus, asked_.contributors.ignored);
  }

  const Uses& uses() const { return uses_; }
  DiffSide side() const { return {stacks_, uses_}; }

  DiffTrace facts() {
    return {.name = std::filesystem::path(options_.path).filename().string(),
            .events = uses_.events,
            .defects = trace_.complaints().count(),
            .truncated = trace_.truncated(),
            .stacks = stack_count_,
            .peak_event = uses_.peak_event,
            .peak_time_ns = uses_.peak_time_ns};
  }

  void say_defects() { trace_.complaints().say_count(); }

 private:
  static annotate::Options with_path(annotate::Options options, const std::string& path) {
    options.path = path;
    return options;
  }
  bool has_stacks() const { return is_of_stacks(asked_.contributors.by); }

  const annotate::Options options_;
  const StackOptions& asked_;
  annotate::Trace trace_;
  Uses uses_;
  StackTable stacks_;
  std::uint64_t stack_count_ = 0;
};

/// The options of a contributor's report, of a difference.
GroupOptions<DiffUse> options_of(const ContributorOptions& asked) {
  return {.by = asked.by,
          .metric = asked.metric,
          .inclusive = asked.inclusive,
          .skipped = asked.skipped,
          .focus = asked.focus,
          .ignored = asked.ignored,
          .hidden = asked.hidden,
          .min = asked.min,
          .top = asked.top};
}

}  // namespace

void report_difference(const std::string& before_path, const annotate::Options& options,
                       const StackOptions& stack_options) {
  CountedTrace before(options, before_path, stack_options), after(options, options.path, stack_options);
  std::future<void> counting = std::async(std::launch::async, [&before] { before.count(); });
  after.count();
  counting.get();
  before.name_stacks();
  after.name_stacks();
  const GroupOptions<DiffUse> asked = options_of(stack_options.contributors);
  Difference report;
  if (is_of_stacks(asked.by)) {
    const MergedStacks merged = merge_stacks(before.side(), after.side(), asked);
    report = find_difference(merged.stacks, merged.uses, asked);
  } else {
    report = find_difference({}, merge_sets(before.uses(), after.uses()), asked);
  }
  report.before = before.facts();
  report.after = after.facts();
  report.clock = options.clock;
  if (stack_options.slice) report.slice = stack_options.slice->text;
  using Form = annotate::Options::Form;
  command::print(options.form == Form::json  ? output::json_text(report)
                 : options.form == Form::csv ? to_csv(report)
                                             : to_text(report));
  before.say_defects();
  after.say_defects();
}

}  // namespace cmt::lifetimes
