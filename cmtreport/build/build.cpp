#include "cmtreport/build/build.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <tuple>
#include <utility>

#include "cmtreport/findings/findings.h"
#include "toolkit/output/numbers.h"
#include "toolkit/threads/share_out.h"

namespace cmt::report {
namespace {

struct Change {
  NodeNumber node;
  std::uint32_t moment;
  std::uint64_t value;
};
using Changes = std::array<std::vector<Change>, measure_count>;

/// The changes of the folded nodes in one moment after the other.
class ChangeCollector {
 public:
  explicit ChangeCollector(const FoldedTree& folded)
      : folded_(folded), sums_(folded.nodes.parent.size()), is_touched_(sums_.size()) {}

  /// Appends those of some moments, and returns how many they are. Not more than `most` of them are kept.
  std::size_t collect(const Recording& recording, const MomentRange& range, std::size_t most, Changes& changes) {
    std::size_t now = range.first, count = 0;
    recording.for_each_change(range, [&](NodeNumber whole, std::size_t moment, const SparseMeasures& measures) {
      if (count > most) return;
      if (moment != now) count += end_moment(now, changes);
      now = moment;
      const NodeNumber node = folded_.node_of[whole];
      if (!is_touched_[node]) {
        is_touched_[node] = true;
        touched_.push_back(node);
      }
      measures.add_to(sums_[node]);
    });
    return count + end_moment(now, changes);
  }

 private:
  std::size_t end_moment(std::size_t moment, Changes& changes) {
    std::size_t count = 0;
    for (const NodeNumber node : touched_) {
      for (std::size_t i = 0; i < measure_count; ++i) {
        if (sums_[node].at(i) == 0) continue;
        ++count;
        changes[i].push_back({node, static_cast<std::uint32_t>(moment), sums_[node].at(i)});
      }
      sums_[node] = {};
      is_touched_[node] = false;
    }
    touched_.clear();
    return count;
  }

  const FoldedTree& folded_;
  std::vector<Measures> sums_;
  std::vector<bool> is_touched_;
  std::vector<NodeNumber> touched_;
};

/// The changes of the folded nodes, or nothing where there are more than `most`.
std::optional<Changes> changes_of(const Recording& recording, const FoldedTree& folded, std::size_t most) {
  constexpr std::size_t parts = 16;
  const std::vector<MomentRange> ranges = recording.split_moments(parts);
  std::vector<Changes> by_range(ranges.size());
  std::vector<std::optional<ChangeCollector>> collectors(recording.jobs());
  std::atomic<std::size_t> count = 0;
  threads::share_out(ranges.size(), recording.jobs(), [&](std::size_t i, std::size_t worker) {
    if (count > most) return;
    if (!collectors[worker]) collectors[worker].emplace(folded);
    count += collectors[worker]->collect(recording, ranges[i], most, by_range[i]);
  });
  if (count > most) return std::nullopt;
  Changes changes;
  threads::share_out(measure_count, recording.jobs(), [&](std::size_t measure, std::size_t) {
    std::vector<Change>& all = changes[measure];
    for (const Changes& each : by_range) all.insert(all.end(), each[measure].begin(), each[measure].end());
    std::stable_sort(all.begin(), all.end(), [](const Change& a, const Change& b) { return a.node < b.node; });
  });
  return changes;
}

/// The largest tree that is small enough. What the functions in its folded nodes change is not known beforehand.
std::pair<FoldedTree, Changes> fold_until_small(const Recording& recording, const TotalsByNode& totals) {
  const Folding folding(recording.tree(), totals);
  constexpr double kept_part = 0.6, more = 1.25;  // of the budget, for the nodes that are kept; of a share, for a retry
  const auto part = [&](std::uint64_t number) {
    return static_cast<std::uint64_t>(static_cast<double>(number) * kept_part);
  };
  const bool fits = totals.size() <= report_max.nodes;
  double share = folding.least_share(fits ? FoldBudget{.nodes = report_max.nodes, .changes = report_max.changes}
                                          : FoldBudget{part(report_max.nodes), part(report_max.changes)});
  for (;; share *= more) {
    FoldedTree folded = folding.fold(share);
    const bool is_last = share > 0.5;
    if (folded.nodes.parent.size() > report_max.nodes && !is_last) continue;
    if (auto changes = changes_of(recording, folded, is_last ? ~std::size_t{0} : report_max.changes))
      return {std::move(folded), std::move(*changes)};
  }
}

AllDeltas deltas_of(const Changes& changes) {
  AllDeltas deltas;
  for (std::size_t i = 0; i < measure_count; ++i) {
    for (const Change& each : changes[i]) {
      deltas.by_measure[i].node.push_back(each.node);
      deltas.by_measure[i].moment.push_back(each.moment);
      deltas.by_measure[i].value.push_back(static_cast<std::int64_t>(each.value));
    }
  }
  return deltas;
}

PeakNodes peak_nodes(const PeakPlace& peak, const FoldedTree& folded, const TotalsByNode& totals) {
  std::vector<heap::LiveTotals> live(folded.nodes.parent.size());
  for (const NodeNumber node : totals.nodes()) {
    live[folded.node_of[node]].bytes += totals[node].peak_bytes;
    live[folded.node_of[node]].blocks += totals[node].peak_blocks;
  }
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

/// The threads that have allocated most, and the sum of the others.
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
  return sizes;
}

/// The sum of all processes. What is of one process only is that of the first, or not known.
Process total_of(const Recording& recording) {
  Process total = recording.traces().front().process;
  for (std::size_t i = 1; i < recording.traces().size(); ++i) {
    const Process& more = recording.traces()[i].process;
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
    total.lost.marks += more.lost.marks;
  }
  return total;
}

/// The first interval of a process that has its peak. The process has events.
std::size_t peak_interval_of(const TraceFigures& trace) {
  const std::vector<Interval>& intervals = trace.model->intervals().intervals();
  const auto has_peak = [&](const Interval& each) { return each.peak.bytes == trace.process.peak_live_bytes; };
  return static_cast<std::size_t>(std::find_if(intervals.begin(), intervals.end(), has_peak) - intervals.begin());
}

/// Adds what was live at the peak of one process.
void add_peak_of(const TraceFigures& trace, TotalsByNode& totals) {
  const std::vector<Interval>& intervals = trace.model->intervals().intervals();
  const std::size_t at_peak = peak_interval_of(trace);
  const auto add = [&](KeyId key, std::uint64_t bytes, std::uint64_t blocks) {
    const NodeNumber node = trace.node_of_key[key];
    if (node == CallTree::left_out) return;
    totals.of(node).peak_bytes += bytes;
    totals.of(node).peak_blocks += blocks;
  };
  for (std::size_t i = 0; i < at_peak; ++i) {
    intervals[i].changes.for_each([&](KeyId key, const SparseMeasures& measures) {
      add(key, measures[Measure::live_bytes], measures[Measure::live_blocks]);
    });
  }
  intervals[at_peak].changes.for_each([&](KeyId key, const SparseMeasures& measures) {
    add(key, measures[Measure::interval_peak_bytes], measures[Measure::interval_peak_blocks]);
  });
}

}  // namespace

PeakPlace peak_of(const Recording& recording, const Moments& moments) {
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

TotalsByNode totals_of(const Recording& recording, const PeakPlace& peak) {
  constexpr unsigned jobs_max = 2;  // each needs memory for all nodes
  const std::vector<MomentRange> ranges = recording.split_moments(std::min(recording.jobs(), jobs_max));
  std::vector<TotalsByNode> parts(std::max<std::size_t>(ranges.size(), 1),
                                  TotalsByNode(recording.tree().nodes().size()));
  threads::share_out(ranges.size(), recording.jobs(), [&](std::size_t i, std::size_t) {
    TotalsByNode& totals = parts[i];
    recording.for_each_change(ranges[i], [&](NodeNumber node, std::size_t moment, const SparseMeasures& measures) {
      NodeTotals& of_node = totals.of(node);
      of_node.add(moment, measures);
      if (peak.process || moment > peak.moment) return;
      of_node.peak_bytes += measures[Measure::live_bytes];
      of_node.peak_blocks += measures[Measure::live_blocks];
    });
  });
  TotalsByNode totals = std::move(parts.front());
  for (std::size_t i = 1; i < parts.size(); ++i) {
    for (const NodeNumber node : parts[i].nodes()) totals.of(node).merge(parts[i][node]);
  }
  if (peak.process) add_peak_of(recording.traces()[*peak.process], totals);
  totals.sort();
  return totals;
}

Report build_report(const Recording& recording, const HeldPages& pages) {
  Report report;
  report.total = total_of(recording);
  report.name =
      recording.traces().size() == 1 ? report.total.name : output::counted(recording.traces().size(), "process");
  report.axis = recording.unit() == AxisUnit::time ? "time" : recording.unit() == AxisUnit::events ? "events" : "share";
  if (recording.unit() == AxisUnit::time) report.duration_ns = recording.end_position();
  report.short_lived_max = TraceModel::short_lived_max;
  for (const TraceFigures& trace : recording.traces()) report.processes.push_back(trace.process);
  report.threads = threads_of(recording);
  report.moments = moments_of(recording);
  report.marks = marks_of(recording);
  report.sizes = sizes_of(recording);
  const PeakPlace peak = peak_of(recording, report.moments);
  const TotalsByNode totals = totals_of(recording, peak);
  auto [folded, changes] = fold_until_small(recording, totals);
  report.peak = peak_nodes(peak, folded, totals);
  report.deltas = deltas_of(changes);
  report.findings = find_findings(recording, report, totals, folded.node_of, pages);
  report.nodes = std::move(folded.nodes);
  report.frames = std::move(folded.frames);
  report.folded = folded.folded;
  return report;
}

}  // namespace cmt::report
