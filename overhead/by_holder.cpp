// Finds the moment of --at in a pass over the trace, and prints the holders of the pages at that moment.
#include "overhead/by_holder.h"

#include <filesystem>
#include <utility>

#include "analysis/groups/options.h"
#include "analysis/places/block_keys.h"
#include "analysis/places/summarise.h"
#include "analysis/stacks/named_stacks.h"
#include "analysis/stacks/native_frames.h"
#include "analysis/stacks/selection.h"
#include "analysis/stacks/stack_tree.h"
#include "cmt/reader.h"
#include "libcmt/heap/live_totals.h"
#include "toolkit/command/command_line.h"
#include "toolkit/command/open_trace.h"

namespace cmt::overhead {

using namespace analysis;
namespace {

/// The pages that the blocks held at the moment of --at.
struct HeldAtMoment {
  PageUses uses;
  std::uint64_t event = 0;
  std::uint64_t time_ns = unknown;
};

/// Finds the moment in one pass over a trace.
class MomentFinder {
 public:
  MomentFinder(trace::Trace& trace, const trace::Options& options, const HolderOptions& asked, int page_shift)
      : trace_(trace),
        path_(options.path),
        page_shift_(page_shift),
        keys_(asked.groups.by),
        summariser_(options.path, page_shift, trace.header().has_usable, trace.complaints()) {}

  /// Returns the pages at the sample of the summary's holders.
  HeldAtMoment at_most_unused() {
    summariser_.call_at_holders([this](const heap::AddressIndex&, const MemoryUse& now) { walk(now); });
    trace_.for_each([this](const Event& event) { count_event(event); });
    summariser_.finish(trace_.truncated());
    return finish();
  }

  /// Returns the pages after the events of a part of the trace from its start.
  HeldAtMoment at_end_of(const trace::SliceRange& part) {
    using trace::SliceBound;
    if (part.unit == SliceBound::Unit::time && !trace_.header().has_times)
      throw FormatError(path_, "times were not recorded (needed by --at=" + part.text + ")");
    trace::SliceProgress progress(part);
    bool is_reached = false;
    trace_.for_each([&](const Event& event) {
      is_reached = progress.next(event) == trace::SliceProgress::Place::after;
      if (!is_reached) count_event(event);
      return !is_reached;
    });
    if (!is_reached && part.unit == SliceBound::Unit::mark) progress.finish(path_);  // throws, and lists the marks
    const bool is_its_end = part.unit == SliceBound::Unit::events && summariser_.now().event == part.to->value;
    if (!is_reached && !is_its_end) throw FormatError(path_, "the trace ends before --at=" + part.text);
    walk(summariser_.now());
    return finish();
  }

 private:
  void count_event(const Event& event) {
    keys_.count_event(event);
    summariser_.count_event(event);
  }

  void walk(const MemoryUse& now) {
    held_.event = now.event;
    held_.time_ns = now.time_ns;
    held_.uses = find_page_uses(summariser_.live(), page_shift_, now.old_before(),
                                [this](const heap::PlacedBlock& block) { return keys_.of_block(block); });
  }

  HeldAtMoment finish() {
    for (PageUses::Entry& entry : held_.uses.entries) entry.name = keys_.name(entry.key);
    return std::move(held_);
  }

  trace::Trace& trace_;
  const std::string& path_;
  int page_shift_;
  BlockKeys keys_;
  Summariser summariser_;
  HeldAtMoment held_;
};

/// Returns the part of the trace up to the event with the most live bytes. Reads the trace, without its addresses.
trace::SliceRange find_peak(const std::string& path) {
  Reader reader = command::open_trace(path, {.addresses = false, .times = false, .usable = false});
  heap::LiveAccount account;
  std::uint64_t events = 0, peak_event = 0;
  for (auto batch = reader.read(); !batch.empty(); batch = reader.read()) {
    for (const Event& event : batch) {
      const std::uint64_t before = account.bytes_peak();
      account.count(event);
      ++events;
      if (account.bytes_peak() > before) peak_event = events;
    }
  }
  return {.unit = trace::SliceBound::Unit::events, .from = {}, .to = {{.value = peak_event}}, .text = "peak"};
}

}  // namespace

std::optional<HolderMoment> HolderMoment::parse(const std::string& text) {
  HolderMoment moment{.text = text, .is_peak = text == "peak"};
  if (moment.is_peak || text == "unused") return moment;
  moment.until = trace::SliceRange::parse(":" + text);
  if (!moment.until) return std::nullopt;
  moment.until->text = text;
  return moment;
}

HolderOptions parse_holder_options(const command::CommandLine& line, const std::string& path) {
  HolderOptions options;
  options.groups = parse_group_options<PageUse>(line);
  options.groups.metric = line.parsed("sort", "unused", page_metrics, parse_page_metric);
  if (options.groups.metric == PageMetric::sole && options.groups.by == By::caller)
    throw command::UsageError("--sort=sole does not go with --by=caller: it is not told of callers");
  options.moment = line.parsed("at", "unused", "unused, peak, a number of events, a time as 1.5s, or a mark as @load",
                               HolderMoment::parse);
  if (options.moment.is_peak &&
      (path == "-" || (std::filesystem::exists(path) && !std::filesystem::is_regular_file(path))))
    throw command::UsageError("--at=peak reads the trace twice: it needs a file");
  options.debug_directories = line.values("debug-dir");
  return options;
}

void report_holders(const trace::Options& options, const HolderOptions& holder_options, int page_shift) {
  GroupOptions<PageUse> asked = holder_options.groups;
  const bool needs_stacks = is_of_stacks(asked.by);
  std::optional<trace::SliceRange> until = holder_options.moment.until;
  if (holder_options.moment.is_peak) until = find_peak(options.path);
  trace::Trace trace(options, true, needs_stacks);
  MomentFinder finder(trace, options, holder_options, page_shift);
  HeldAtMoment held = until ? finder.at_end_of(*until) : finder.at_most_unused();
  ShownStacks shown;
  if (needs_stacks) {
    require_stacks(trace.stacks(), trace.header(), options.path);
    StackTable named = named_stacks(trace.stacks(), StackTree(trace.stacks(), held.uses).frames(), trace.header(),
                                    {options.tool, holder_options.debug_directories});
    held.uses = select_stacks(std::move(held.uses), named, asked.focus, asked.ignored);
    shown = show_stacks(std::move(named), trace.stacks().nodes(), asked.native, key_of(asked.by));
    held.uses = shown_uses(std::move(held.uses), shown);
    asked.charges = shown.charges(asked.charges);
  }
  PageHolders report = find_page_holders(shown.stacks, held.uses, asked);
  report.name = std::filesystem::path(options.path).filename().string();
  report.at = holder_options.moment.text;
  report.event = held.event;
  report.time_ns = held.time_ns;
  report.defects = trace.complaints().count();
  report.truncated = trace.truncated();
  using Form = trace::Options::Form;
  command::print(options.form == Form::json  ? output::json_text(report)
                 : options.form == Form::csv ? to_csv(report)
                                             : to_text(report));
  trace.complaints().say_count();
}

}  // namespace cmt::overhead
