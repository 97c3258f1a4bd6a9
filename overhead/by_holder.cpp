// Finds the moment of --at in a pass over the trace, and prints the holders of the pages at that moment.
#include "overhead/by_holder.h"

#include <filesystem>
#include <functional>
#include <optional>
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
#include "overhead/pool_use.h"
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
  std::optional<std::uint64_t> arena_bytes{};  // of a pool
};

/// The blocks of malloc, for MomentFinder.
class PlacedHolders {
 public:
  PlacedHolders(trace::Trace& trace, const trace::Options& options, const HolderOptions& asked, int page_shift)
      : page_shift_(page_shift),
        keys_(asked.groups.by),
        summariser_(options.path, page_shift, trace.header().has_usable, trace.complaints()) {}

  /// Fills `held` at each sample of the summary's holders. It frees the last figures first.
  void keep_at_holders(HeldAtMoment& held) {
    summariser_.call_at_holders([this, &held](const heap::AddressIndex&, const MemoryUse& now) {
      held = {};
      held = held_at(now);
    });
  }
  void count_event(const Event& event) {
    keys_.count_event(event);
    summariser_.count_event(event);
  }
  std::uint64_t event() const { return summariser_.now().event; }
  HeldAtMoment held() { return held_at(summariser_.now()); }
  void finish(bool truncated) { summariser_.finish(truncated); }
  std::string name(KeyId key) const { return keys_.name(key); }

 private:
  HeldAtMoment held_at(const MemoryUse& now) {
    return {find_page_uses(summariser_.live(), page_shift_, now.old_before(),
                           [this](const heap::PlacedBlock& block) { return keys_.of_block(block); }),
            now.event, now.time_ns};
  }

  int page_shift_;
  BlockKeys keys_;
  Summariser summariser_;
};

/// The blocks of a pool, for MomentFinder.
class PooledHolders {
 public:
  PooledHolders(trace::Trace& trace, const trace::Options&, const HolderOptions& asked, int)
      : trace_(trace), follower_(asked.groups.by, trace.complaints()) {}

  void keep_at_holders(HeldAtMoment& held) {
    follower_.call_at_holders([this, &held] {
      held = {};
      held = this->held();
    });
  }
  void count_event(const Event& event) { follower_.count_event(event, trace_.pools().arena_bytes()); }
  std::uint64_t event() const { return follower_.now().event; }
  HeldAtMoment held() {
    const PoolMoment& now = follower_.now();
    return {follower_.uses(), now.event, now.time_ns, now.arena_bytes};
  }
  void finish(bool) { follower_.finish(trace_.pools().arena_bytes()); }
  std::string name(KeyId key) const { return follower_.name(key); }

 private:
  trace::Trace& trace_;
  PoolFollower follower_;
};

/// Finds the moment in one pass over a trace.
template <class Blocks>
class MomentFinder {
 public:
  MomentFinder(trace::Trace& trace, const trace::Options& options, const HolderOptions& asked, int page_shift)
      : trace_(trace), path_(options.path), blocks_(trace, options, asked, page_shift) {}

  /// Returns the pages at the sample of the summary's holders.
  HeldAtMoment at_most_unused() {
    blocks_.keep_at_holders(held_);
    trace_.for_each([this](const Event& event) { blocks_.count_event(event); });
    blocks_.finish(trace_.truncated());
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
      if (!is_reached) blocks_.count_event(event);
      return !is_reached;
    });
    if (!is_reached && part.unit == SliceBound::Unit::mark) progress.finish(path_);  // throws, and lists the marks
    const bool is_its_end = part.unit == SliceBound::Unit::events && blocks_.event() == part.to->value;
    if (!is_reached && !is_its_end) throw FormatError(path_, "the trace ends before --at=" + part.text);
    held_ = blocks_.held();
    return finish();
  }

 private:
  HeldAtMoment finish() {
    for (PageUses::Entry& entry : held_.uses.entries) entry.name = blocks_.name(entry.key);
    return std::move(held_);
  }

  trace::Trace& trace_;
  const std::string& path_;
  Blocks blocks_;
  HeldAtMoment held_;
};

/// `until`: empty for the sample with the most unused bytes.
template <class Blocks>
HeldAtMoment find_held(trace::Trace& trace, const trace::Options& options, const HolderOptions& asked, int page_shift,
                       const std::optional<trace::SliceRange>& until) {
  MomentFinder<Blocks> finder(trace, options, asked, page_shift);
  return until ? finder.at_end_of(*until) : finder.at_most_unused();
}

/// Returns the part of the trace up to the event with the most live bytes. Reads the trace, without its addresses.
trace::SliceRange find_peak(const trace::Options& options) {
  Reader reader = command::open_trace(options.path, {.addresses = false, .times = false, .usable = false});
  heap::LiveAccount account;
  trace::Pools pools(options.pool);
  std::uint64_t events = 0, peak_event = 0;
  for (auto batch = reader.read(); !batch.empty(); batch = reader.read()) {
    for (const Event& each : batch) {
      const Event* const event = pools.view(each);
      if (event == nullptr) continue;
      const std::uint64_t before = account.bytes_peak();
      account.count(*event);
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
  const bool is_of_pool = line.has("pool");
  options.groups.metric = line.parsed("sort", is_of_pool ? "live" : "unused", page_metrics, parse_page_metric);
  if (is_of_pool && options.groups.metric != PageMetric::live && options.groups.metric != PageMetric::blocks)
    throw command::UsageError(
        "--pool goes with --sort=live and --sort=blocks only: the pages of its blocks are not known");
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
  if (holder_options.moment.is_peak) until = find_peak(options);
  const bool is_of_pool = !options.pool.empty();
  trace::Trace trace(options, !is_of_pool, needs_stacks);
  HeldAtMoment held = is_of_pool ? find_held<PooledHolders>(trace, options, holder_options, page_shift, until)
                                 : find_held<PlacedHolders>(trace, options, holder_options, page_shift, until);
  ShownStacks shown;
  if (needs_stacks) {
    if (!held.uses.entries.empty()) require_stacks(trace.stacks(), trace.header(), options.path);
    StackTable named = named_stacks(trace.stacks(), StackTree(trace.stacks(), held.uses).frames(), trace.header(),
                                    {options.tool, holder_options.debug_directories});
    held.uses = select_stacks(std::move(held.uses), named, asked.focus, asked.ignored);
    shown = show_stacks(std::move(named), trace.stacks().nodes(), asked.native, key_of(asked.by));
    held.uses = shown_uses(std::move(held.uses), shown);
    asked.charges = shown.charges(asked.charges);
  }
  PageHolders report = find_page_holders(shown.stacks, held.uses, asked);
  report.name = options.name_with_pool(std::filesystem::path(options.path).filename().string());
  if (is_of_pool) report.pool = options.pool;
  report.arena_bytes = held.arena_bytes;
  report.at = holder_options.moment.text;
  report.event = held.event;
  report.time_ns = held.time_ns;
  report.defects = trace.complaints().count();
  report.truncated = trace.truncated();
  report.pools_not_counted = trace.pools().not_counted();
  using Form = trace::Options::Form;
  command::print(options.form == Form::json  ? output::json_text(report)
                 : options.form == Form::csv ? to_csv(report)
                                             : to_text(report));
  trace.complaints().say_count();
}

}  // namespace cmt::overhead
