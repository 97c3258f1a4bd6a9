// Counts each trace event by event, names the frames of its stacks, and adds these to one tree of calls.

#include "cmtreport/input/read_traces.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "analysis/fates/use.h"
#include "analysis/stacks/named_stacks.h"
#include "analysis/stacks/selection.h"
#include "cmtreport/model/freed_memory.h"
#include "toolkit/command/command_line.h"
#include "toolkit/command/open_trace.h"
#include "toolkit/output/numbers.h"
#include "toolkit/symbols/name_frames.h"
#include "toolkit/trace/trace_tool.h"

namespace cmt::report {
namespace {

std::optional<std::uint64_t> number_of(const Header& header, std::string_view key) {
  const auto text = header.find(key);
  std::uint64_t number = 0;
  if (!text) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  return error == std::errc() && end == text->data() + text->size() ? std::optional(number) : std::nullopt;
}

std::string text_of(const Header& header, std::string_view key) { return std::string(header.find(key).value_or("")); }

/// The axis of all traces, and the begin of each on it.
struct Axis {
  AxisUnit unit = AxisUnit::share;
  std::vector<std::uint64_t> starts{};
};

/// The start of a trace by two clocks. The monotonic clock begins anew with each boot of the machine.
struct Start {
  std::uint64_t monotonic_ns = 0;
  std::optional<std::time_t> wall{};
};

std::optional<Start> start_of(const std::string& path) {
  const Reader reader = command::open_trace(path, {.addresses = false});
  const auto monotonic = number_of(reader.header(), "start_monotonic_ns");
  if (!reader.header().has_times || !monotonic || *monotonic > position_max) return std::nullopt;
  return Start{*monotonic, symbols::start_of(reader.header())};
}

/// Whether two starts can be of one boot of one machine: both clocks then have the same time between them.
bool are_of_one_clock(const Start& first, const Start& second) {
  constexpr double seconds_apart = 5;  // a header has the wall clock in seconds, and that clock may be adjusted
  if (!first.wall || !second.wall) return true;
  const double monotonic = (static_cast<double>(second.monotonic_ns) - static_cast<double>(first.monotonic_ns)) / 1e9;
  return std::abs(std::difftime(*second.wall, *first.wall) - monotonic) <= seconds_apart;
}

Axis common_axis(const std::vector<std::string>& paths) {
  const Axis shares{AxisUnit::share, std::vector<std::uint64_t>(paths.size())};
  std::vector<Start> starts;
  for (const std::string& path : paths) {
    const auto start = start_of(path);
    if (!start || (!starts.empty() && !are_of_one_clock(starts.front(), *start))) return shares;
    starts.push_back(*start);
  }
  const auto first = std::min_element(starts.begin(), starts.end(),
                                      [](const Start& a, const Start& b) { return a.monotonic_ns < b.monotonic_ns; });
  Axis axis{AxisUnit::time, {}};
  for (const Start& start : starts) axis.starts.push_back(start.monotonic_ns - first->monotonic_ns);
  return axis;
}

/// Whether any two of several processes ran at the same time.
bool overlap(const std::vector<TraceFigures>& traces) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> spans;
  for (const TraceFigures& trace : traces) spans.emplace_back(trace.start, trace.model->intervals().end_position());
  std::sort(spans.begin(), spans.end());
  return std::adjacent_find(spans.begin(), spans.end(), [](const auto& before, const auto& after) {
           return after.first < before.second;
         }) != spans.end();
}

/// Warns of the limits of a sum of several processes.
void complain_of_axis(const std::string& tool, AxisUnit unit, const std::vector<TraceFigures>& traces) {
  if (unit == AxisUnit::share)
    command::complain(tool,
                      "these traces have no clock in common: what they had after the same share of their events "
                      "is added up");
  else if (!overlap(traces))
    command::complain(tool, "no two of these processes ran at the same time");
}

/// The stacks that have allocated.
struct UsedStacks {
  std::vector<std::uint64_t> weights;  ///< by stack: allocated bytes, and 1 for each block; at least 1 if it is used
  std::uint64_t count = 0;
  std::uint64_t unknown_blocks = 0;  ///< blocks whose stack is not known
  std::uint64_t cut_bytes = 0;       ///< of blocks whose stack is cut
};

/// Whether a stack lacks its outer callers, by stack.
std::vector<bool> cut_stacks(std::span<const StackNode> stacks) {
  std::vector<bool> is_cut(stacks.size());
  for (StackId id = 1; id < stacks.size(); ++id)
    is_cut[id] = stacks[id].parent == 0 ? stacks[id].frame == 0 : is_cut[stacks[id].parent];
  return is_cut;
}

UsedStacks used_stacks(const TraceModel& model, std::span<const StackNode> nodes) {
  const std::size_t stacks = nodes.size();
  const std::vector<bool> is_cut = cut_stacks(nodes);
  UsedStacks uses;
  std::vector<bool> is_used(stacks);
  uses.weights.resize(stacks);
  for (const Interval& interval : model.intervals().intervals()) {
    interval.changes.for_each([&](KeyId key, const SparseMeasures& measures) {
      is_used[key] = true;
      uses.weights[key] += measures[Measure::allocated_bytes] + measures[Measure::allocated_blocks];
      if (is_cut[key]) uses.cut_bytes += measures[Measure::allocated_bytes];
      if (key == 0) uses.unknown_blocks += measures[Measure::allocated_blocks];
    });
  }
  for (KeyId key = 0; key < stacks; ++key) {
    if (!is_used[key]) continue;
    ++uses.count;
    uses.weights[key] = std::max<std::uint64_t>(uses.weights[key], 1);
  }
  return uses;
}

/// The frames of the stacks that have a weight, and of the stacks that call them, each once.
std::vector<FrameId> used_frames(const StackTable& stacks, const std::vector<std::uint64_t>& weights) {
  std::vector<bool> is_used(stacks.node_count()), is_known(stacks.frame_count());
  for (StackId node = stacks.node_count(); --node > 0;) {  // a parent has a lower number
    if (weights[node] != 0) is_used[node] = true;
    if (is_used[node]) is_used[stacks.node(node).parent] = true;
  }
  std::vector<FrameId> frames;
  for (StackId node = 1; node < stacks.node_count(); ++node) {
    const FrameId frame = stacks.node(node).frame;
    if (!is_used[node] || frame == 0 || is_known[frame]) continue;
    is_known[frame] = true;
    frames.push_back(frame);
  }
  return frames;
}

/// Takes the weight from stacks without a function that matches.
void focus_on(const std::string& focus, const StackTable& named, UsedStacks& uses) {
  const analysis::MatchingStacks matching(named, focus);
  for (KeyId key = 0; key < uses.weights.size(); ++key) {
    if (!matching.has(key)) uses.weights[key] = 0;
  }
}

void add_named_stacks(TraceFigures& figures, CallTree& tree, const trace::Trace& trace, const ReadSettings& settings) {
  UsedStacks uses = used_stacks(*figures.model, trace.stacks().nodes());
  figures.process.stacks = uses.count;
  figures.process.lost.unknown_stack_blocks = uses.unknown_blocks;
  figures.process.lost.cut_stack_bytes = uses.cut_bytes;
  const std::string& focus = settings.functions.focus;
  StackTable named = (focus.empty() ? analysis::named_frames : analysis::named_stacks)(
      trace.stacks(), used_frames(trace.stacks(), uses.weights), trace.header(),
      {.tool = settings.tool, .debug_directories = settings.debug_directories});
  give_back_freed_memory();
  if (!focus.empty()) focus_on(focus, named, uses);
  const analysis::ShownStacks shown = analysis::show_stacks(std::move(named), trace.stacks().nodes(),
                                                            settings.functions.native, analysis::Key::function);
  if (shown.nodes.empty()) {
    figures.node_of_key =
        tree.add_stacks(trace.stacks().nodes(), shown.stacks, std::move(uses.weights), settings.functions);
    return;
  }
  FunctionOptions functions = settings.functions;
  functions.charges = shown.charges(functions.charges);
  std::vector<std::uint64_t> weights(shown.stacks.node_count());
  for (StackId id = 0; id < uses.weights.size(); ++id) weights[shown.of(id)] += uses.weights[id];
  const std::vector<CallId> node_of =
      tree.add_stacks(shown.stacks.nodes(), shown.stacks, std::move(weights), functions);
  for (StackId id = 0; id < uses.weights.size(); ++id)
    figures.node_of_key.push_back(uses.weights[id] == 0 ? CallTree::left_out : node_of[shown.of(id)]);
}

void add_sizes(TraceFigures& figures, CallTree& tree) {
  const analysis::AllocationKeys names(analysis::By::size);
  figures.node_of_key.resize(SizeClasses::count, CallTree::left_out);
  for (KeyId size = 0; size < SizeClasses::count; ++size) {
    if (figures.model->sizes()[size].allocated.blocks == 0) continue;
    figures.node_of_key[size] = tree.add_named(names.name(size));
    ++figures.process.stacks;
  }
}

/// The signal that ended the process, by the last event; empty: none.
std::string ended_by(const TraceModel& model) {
  if (model.marks().empty() || model.marks().back().event != model.intervals().events()) return {};
  const std::string_view label = model.marks().back().label;
  return label.starts_with(ended_by_label) ? std::string(label.substr(ended_by_label.size())) : "";
}

Process process_of(const std::string& path, trace::Trace& trace, const TraceModel& model) {
  const Header& header = trace.header();
  Process process{.name = std::filesystem::path(path).filename().string(),
                  .program = text_of(header, "program"),
                  .command = text_of(header, "command"),
                  .pid = number_of(header, "pid"),
                  .start = text_of(header, "start"),
                  .events = model.intervals().events(),
                  .peak_time_ns = unknown,
                  .largest_resident = model.samples().largest().resident_bytes};
  if (const ResidentSample& largest = model.samples().largest(); largest.is_known()) {
    process.largest_resident_live = largest.live_bytes;
    process.largest_resident_event = largest.event;
  }
  for (const Interval& interval : model.intervals().intervals()) {
    process.allocated_blocks = interval.allocated.blocks;
    process.allocated_bytes = interval.allocated.bytes;
    process.end_live_bytes = interval.live.bytes;
    process.end_live_blocks = interval.live.blocks;
    if (interval.peak.bytes <= process.peak_live_bytes) continue;
    process.peak_live_bytes = interval.peak.bytes;
    process.peak_live_blocks = interval.peak.blocks;
    process.peak_event = interval.peak_event;
    process.peak_time_ns = interval.peak_time_ns;
  }
  if (const std::uint64_t recorded = trace.recorded_ns(); recorded != 0) process.recorded_ns = recorded;
  if (header.touched_min() != 0) process.touched_min = header.touched_min();
  process.has_stacks = model.is_by_stack();
  process.truncated = trace.truncated();
  process.ended_by = ended_by(model);
  process.memory = command::memory_text(header);
  process.lost = {.is_known = trace.totals().has_value(),
                  .repairs = trace.totals() ? trace.totals()->repairs.total() : 0,
                  .defects = trace.complaints().count(),
                  .unknown_ends = model.unknown_ends(),
                  .unknown_touch_bytes = model.unknown_touch_bytes(),
                  .marks = model.marks_left_out(),
                  .pauses = model.pauses()};
  process.pools_not_counted = trace.pools().not_counted();
  return process;
}

/// `is_one_of_several`: then the process keeps its blocks until its end, while others run.
std::unique_ptr<TraceModel> count_events(trace::Trace& trace, bool by_time, std::uint64_t start,
                                         bool is_one_of_several) {
  auto model = std::make_unique<TraceModel>(ModelOptions{.by_time = by_time,
                                                         .start = start,
                                                         .by_stack = trace.header().has_stacks,
                                                         .touched_min = trace.header().touched_min()},
                                            trace.complaints());
  trace.for_each_ahead([&](const Event& event, bool is_near) { model->fetch(event, is_near); },
                       [&](const Event& event) { model->count_event(event); });
  if (trace.lacks_last_touches()) model->note_unknown_end();
  model->finish(is_one_of_several ? trace.recorded_ns() : 0);
  return model;
}

/// Whether a trace says little by its times, so that it is read again, by events. Memory over time would be a few
/// steps, and no function could be seen to leak. Samples of resident memory need the time. Either
/// - all events have one or two times, or
/// - the recording is short, and one interval has more than a twentieth of the events, which are many.
bool is_clock_too_coarse(const TraceModel& model) {
  constexpr std::uint64_t events_min = 16, events_max = 1 << 20, many_events = 256;
  constexpr std::size_t times_max = 2;
  const IntervalCollector& intervals = model.intervals();
  const std::uint64_t events = intervals.events();
  if (events < events_min || events > events_max || model.samples().largest().is_known()) return false;
  std::size_t times = 0;
  std::uint64_t before = 0, most = 0;
  for (const Interval& interval : intervals.intervals()) {
    if (interval.last_event != before) ++times;
    most = std::max(most, interval.last_event - before);
    before = interval.last_event;
  }
  const bool is_short = intervals.end_position() <= short_recording_ns;
  return times <= times_max || (is_short && most >= many_events && most > events / 20);
}

}  // namespace

void require_stacks_for(const FunctionOptions& functions, const Header& header, const std::string& path) {
  if (header.has_stacks) return;
  const std::string option = !functions.focus.empty()             ? "--focus"
                             : !functions.hidden.empty()          ? "--hide"
                             : !functions.charges.skipped.empty() ? "--skip"
                                                                  : "";
  if (!option.empty()) throw FormatError(path, "call stacks were not recorded (needed by " + option + ")");
}

Recording read_traces(const std::vector<std::string>& paths, const ReadSettings& settings) {
  const Axis common = paths.size() > 1 ? common_axis(paths) : Axis{AxisUnit::time, {0}};
  AxisUnit unit = common.unit;
  CallTree tree;
  std::vector<TraceFigures> traces;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    trace::Options options{.tool = settings.tool,
                           .path = paths[i],
                           .strict = settings.strict,
                           .jobs = settings.jobs,
                           .pool = settings.pool};
    std::optional<trace::Trace> trace;
    TraceFigures figures{.process = {}, .model = {}, .node_of_key = {}, .start = common.starts[i]};
    for (bool counted = false; !counted;) {
      trace.emplace(options, false, true);
      require_stacks_for(settings.functions, trace->header(), paths[i]);
      if (paths.size() == 1 && !trace->header().has_times) unit = AxisUnit::events;
      figures.model = count_events(*trace, unit == AxisUnit::time, figures.start, paths.size() > 1);
      counted = unit != AxisUnit::time || paths.size() > 1 || !is_clock_too_coarse(*figures.model) ||
                trace->complaints().count() != 0 || trace->truncated() || !command::can_be_read_again(paths[i]);
      if (!counted) unit = AxisUnit::events;
      options.says_pools = false;
    }
    give_back_freed_memory();
    figures.process = process_of(paths[i], *trace, *figures.model);
    figures.process.name = options.name_with_pool(figures.process.name);
    if (figures.model->is_by_stack())
      add_named_stacks(figures, tree, *trace, settings);
    else
      add_sizes(figures, tree);
    trace->complaints().say_count();
    traces.push_back(std::move(figures));
  }
  give_back_freed_memory();
  if (traces.size() > 1) complain_of_axis(settings.tool, unit, traces);
  std::uint64_t cut_bytes = 0, all_bytes = 0;
  for (const TraceFigures& trace : traces) {
    cut_bytes += trace.process.lost.cut_stack_bytes;
    all_bytes += trace.process.allocated_bytes;
  }
  tree.finish("[cut: " + output::percent_text(cut_bytes, all_bytes) +
              " of all allocated bytes lack their outer callers]");
  return Recording(unit, std::move(tree), std::move(traces));
}

}  // namespace cmt::report
