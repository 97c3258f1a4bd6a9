// Fills in a report: each function computes one part of it. The order in build_report() keeps memory low: the changes
// are taken out of the recording as soon as no earlier part needs them.

#include "cmtreport/build/build.h"

#include <algorithm>
#include <cassert>
#include <tuple>
#include <utility>

#include "cmtreport/findings/findings.h"
#include "cmtreport/model/freed_memory.h"
#include "toolkit/output/numbers.h"

namespace cmt::report {
namespace {

PeakNodes peak_nodes(const PeakPlace& peak, const FoldedTree& folded, const TotalsByNode& totals) {
  std::vector<heap::LiveTotals> live(folded.nodes.parent.size());
  totals.for_each([&](CallId call, const NodeTotals& own) {
    assert(folded.node_of_call(call) < live.size());
    live[folded.node_of_call(call)] += {own.peak_bytes, own.peak_blocks};
  });
  PeakNodes nodes{.moment = peak.moment,
                  .process = peak.process,
                  .live_bytes = peak.live_bytes,
                  .node = {},
                  .bytes = {},
                  .blocks = {}};
  for (NodeNumber node = 0; node < live.size(); ++node) {
    if (live[node] == heap::LiveTotals{}) continue;
    nodes.node.push_back(node);
    nodes.bytes.push_back(live[node].bytes);
    nodes.blocks.push_back(live[node].blocks);
  }
  return nodes;
}

std::vector<Mark> marks_of(const Recording& recording) {
  std::vector<Mark> marks;
  for (std::size_t i = 0; i < recording.traces().size(); ++i) {
    const TraceFigures& trace = recording.traces()[i];
    for (const TraceMark& mark : trace.model->marks()) {
      marks.push_back({.label = mark.label,
                       .process = static_cast<std::uint32_t>(i),
                       .moment = recording.place_of(trace, mark.position),
                       .event = mark.event,
                       .time_ns = mark.time_ns});
    }
  }
  std::stable_sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) { return a.moment < b.moment; });
  return marks;
}

void add_activity(std::vector<Thread::Activity>& sum, const std::vector<Thread::Activity>& more) {
  for (const Thread::Activity& each : more) {
    const auto at = std::lower_bound(sum.begin(), sum.end(), each.moment,
                                     [](const Thread::Activity& a, std::uint64_t moment) { return a.moment < moment; });
    if (at != sum.end() && at->moment == each.moment)
      at->bytes += each.bytes;
    else
      sum.insert(at, each);
  }
}

std::vector<Thread::Activity> activity_of(const Recording& recording, const TraceFigures& trace,
                                          const ThreadActivity& counted) {
  const std::uint64_t width = trace.model->intervals().width();
  std::vector<Thread::Activity> activity;
  for (const ThreadActivity::Entry& entry : counted.entries()) {
    if (entry.bytes != 0)
      add_activity(activity, {{.moment = recording.moment_of(trace, entry.interval(width)), .bytes = entry.bytes}});
  }
  return activity;
}

/// The threads that have allocated most, and the sum of all others.
std::vector<Thread> threads_of(const Recording& recording) {
  std::vector<Thread> threads;
  for (std::size_t i = 0; i < recording.traces().size(); ++i) {
    const TraceFigures& trace = recording.traces()[i];
    for (const auto& [number, counts] : trace.model->threads()) {
      threads.push_back({.process = static_cast<std::uint32_t>(i),
                         .thread = number,
                         .name = counts.name,
                         .events = counts.events,
                         .allocated_blocks = counts.allocated.blocks,
                         .allocated_bytes = counts.allocated.bytes,
                         .activity = activity_of(recording, trace, counts.activity)});
    }
  }
  std::stable_sort(threads.begin(), threads.end(),
                   [](const Thread& a, const Thread& b) { return a.allocated_bytes > b.allocated_bytes; });
  if (threads.size() <= threads_max) return threads;
  Thread others;
  others.threads = threads.size() - threads_max;
  others.name = output::counted(others.threads, "other thread");
  for (auto each = threads.begin() + threads_max; each != threads.end(); ++each) {
    others.events += each->events;
    others.allocated_blocks += each->allocated_blocks;
    others.allocated_bytes += each->allocated_bytes;
    add_activity(others.activity, each->activity);
  }
  threads.resize(threads_max);
  threads.push_back(std::move(others));
  return threads;
}

std::uint64_t edge_after(std::uint64_t high) { return high == unknown ? high : high + 1; }

Sizes sizes_of(const Recording& recording) {
  std::vector<SizeCounts> sums(SizeClasses::count);
  std::size_t first_size = sums.size(), last_size = 0, first_age = LifetimeClasses::count, last_age = 0;
  for (const TraceFigures& trace : recording.traces()) {
    for (std::size_t size = 0; size < sums.size(); ++size) {
      const SizeCounts& more = trace.model->sizes()[size];
      if (more.allocated.blocks == 0) continue;
      sums[size].allocated += more.allocated;
      sums[size].leaked += more.leaked;
      first_size = std::min(first_size, size);
      last_size = std::max(last_size, size);
      for (std::size_t age = 0; age < LifetimeClasses::count; ++age) {
        if (more.lifetimes[age] == 0) continue;
        sums[size].lifetimes[age] += more.lifetimes[age];
        first_age = std::min(first_age, age);
        last_age = std::max(last_age, age);
      }
    }
  }
  Sizes sizes;
  for (std::size_t age = first_age; age <= last_age; ++age) sizes.lifetime_edges.push_back(LifetimeClasses::low(age));
  if (first_age <= last_age) sizes.lifetime_edges.push_back(edge_after(LifetimeClasses::high(last_age)));
  for (std::size_t size = first_size; size <= last_size; ++size) {
    sizes.size_edges.push_back(SizeClasses::low(size));
    sizes.allocated_blocks.push_back(sums[size].allocated.blocks);
    sizes.allocated_bytes.push_back(sums[size].allocated.bytes);
    sizes.alive_at_end.push_back(sums[size].leaked.blocks);
    sizes.alive_at_end_bytes.push_back(sums[size].leaked.bytes);
    for (std::size_t age = first_age; age <= last_age && age < LifetimeClasses::count; ++age) {
      if (sums[size].lifetimes[age] != 0)
        sizes.cells.push_back({size - first_size, age - first_age, sums[size].lifetimes[age]});
    }
  }
  if (first_size <= last_size) sizes.size_edges.push_back(edge_after(SizeClasses::high(last_size)));
  assert(sizes.size_edges.empty() || sizes.size_edges.size() == sizes.allocated_blocks.size() + 1);
  return sizes;
}

/// The process that began first: the command that was started. Starts may be in seconds; among equals the lowest
/// process id counts.
const Process& first_process(const Recording& recording) {
  const std::vector<TraceFigures>& traces = recording.traces();
  const auto is_before = [](const TraceFigures& a, const TraceFigures& b) {
    if (a.start != b.start) return a.start < b.start;
    if (a.process.start.empty() != b.process.start.empty()) return b.process.start.empty();
    if (a.process.start != b.process.start) return a.process.start < b.process.start;
    return a.process.pid.value_or(unknown) < b.process.pid.value_or(unknown);
  };
  return std::min_element(traces.begin(), traces.end(), is_before)->process;
}

/// The sum of all processes. A field that cannot be added up is that of the process that began first, or is left
/// unknown.
Process total_of(const Recording& recording) {
  const Process& first = first_process(recording);
  Process total = first;
  for (const TraceFigures& trace : recording.traces()) {
    const Process& more = trace.process;
    if (&more == &first) continue;
    total.pid.reset();
    if (!more.start.empty() && (total.start.empty() || more.start < total.start)) total.start = more.start;
    total.events += more.events;
    total.allocated_blocks += more.allocated_blocks;
    total.allocated_bytes += more.allocated_bytes;
    total.end_live_bytes += more.end_live_bytes;
    total.end_live_blocks += more.end_live_blocks;
    total.has_stacks |= more.has_stacks;
    total.truncated |= more.truncated;
    total.lost.is_known &= more.lost.is_known;
    total.lost.repairs += more.lost.repairs;
    total.lost.defects += more.lost.defects;
    total.lost.unknown_ends += more.lost.unknown_ends;
    total.lost.unknown_stack_blocks += more.lost.unknown_stack_blocks;
    total.lost.cut_stack_bytes += more.lost.cut_stack_bytes;
    total.lost.unknown_touch_bytes += more.lost.unknown_touch_bytes;
    total.lost.marks += more.lost.marks;
    total.lost.pauses += more.lost.pauses;
  }
  return total;
}

/// The figures of each node's own allocations in the whole recording.
TotalsByNode totals_of(const ChangesByNode& changes, std::size_t nodes) {
  TotalsByNode totals(nodes);
  for (std::size_t i = 0; i < changes.size(); ++i) {
    NodeTotals own;
    changes.for_each(i, [&](std::size_t moment, const SparseMeasures& measures) { own.add(moment, measures); });
    own.peak_bytes = changes.at_peak(i).bytes;
    own.peak_blocks = changes.at_peak(i).blocks;
    totals.append(changes.node(i), own);
  }
  return totals;
}

}  // namespace

PeakPlace peak_of(const Recording& recording, const Moments& moments) {
  assert(moments.live_bytes.size() == recording.last_moment() + 1);
  const auto highest = std::max_element(moments.live_bytes.begin(), moments.live_bytes.end());
  PeakPlace peak{static_cast<std::size_t>(highest - moments.live_bytes.begin()), std::nullopt, *highest};
  const std::vector<TraceFigures>& traces = recording.traces();
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const std::uint64_t bytes = traces[i].process.peak_live_bytes;
    if (bytes < peak.live_bytes || (bytes == peak.live_bytes && (traces.size() != 1 || bytes == 0))) continue;
    peak = {recording.moment_of(traces[i], peak_interval_of(traces[i])), static_cast<std::uint32_t>(i), bytes};
  }
  return peak;
}

Report build_report(Recording& recording, const HeldPages& pages) {
  Report report;
  report.total = total_of(recording);
  report.name =
      recording.traces().size() == 1 ? report.total.name : output::counted(recording.traces().size(), "process");
  report.title = !report.total.command.empty()   ? report.total.command
                 : !report.total.program.empty() ? report.total.program
                                                 : report.total.name;
  report.axis = recording.unit() == AxisUnit::time ? "time" : recording.unit() == AxisUnit::events ? "events" : "share";
  if (recording.unit() == AxisUnit::time) report.duration_ns = recording.end_position();
  report.short_lived_max = TraceModel::short_lived_max;
  for (const TraceFigures& trace : recording.traces()) report.processes.push_back(trace.process);
  report.threads = threads_of(recording);
  report.moments = moments_of(recording);
  report.marks = marks_of(recording);
  report.sizes = sizes_of(recording);
  const PeakPlace peak = peak_of(recording, report.moments);
  const ChangesByNode changes(recording, peak);
  give_back_freed_memory();
  const TotalsByNode totals = totals_of(changes, recording.tree().nodes().size());
  auto [folded, deltas] = fold_until_small(recording.tree(), totals, changes, recording.last_moment());
  report.deltas = std::move(deltas);
  report.peak = peak_nodes(peak, folded, totals);
  report.findings = find_findings(recording, report, totals, changes, folded.node_of, pages);
  report.nodes = std::move(folded.nodes);
  report.frames = std::move(folded.frames);
  report.folded = folded.folded;
  return report;
}

}  // namespace cmt::report
