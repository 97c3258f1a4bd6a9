#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cmtreport/model/trace_model.h"
#include "cmtreport/report/call_tree.h"
#include "cmtreport/report/report.h"

namespace cmt::report {

/// How the moments of a report lie.
enum class AxisUnit { time, events, share };

/// One trace that has been read: its figures by key, and the node of the call tree that each key is.
struct TraceFigures {
  Process process;
  std::unique_ptr<TraceModel> model;
  std::vector<NodeNumber> node_of_key;
  std::uint64_t start = 0;  ///< where it begins on the axis
};

/// Moments from one to another, both included.
struct MomentRange {
  std::size_t first = 1;
  std::size_t last = 0;
};

/// All traces of a report, on one axis, by the nodes of one tree.
class Recording {
 public:
  /// `jobs`: how many threads may go through it at once.
  Recording(AxisUnit unit, CallTree tree, std::vector<TraceFigures> traces, unsigned jobs = 1);

  unsigned jobs() const { return jobs_; }
  AxisUnit unit() const { return unit_; }
  const CallTree& tree() const { return tree_; }
  const std::vector<TraceFigures>& traces() const { return traces_; }
  /// How many there are, moment 0 not counted.
  std::size_t last_moment() const { return last_moment_; }
  /// The width of an interval and the end of the last one, on the axis.
  std::uint64_t width() const { return width_; }
  std::uint64_t end_position() const { return end_position_; }

  /// Calls `visit(node, moment, measures)` with all that a node's own allocations did up to a moment since the moment
  /// before, as SparseMeasures, by rising moments; a node may be visited several times for the same moment.
  template <class Visit>
  void for_each_change(const MomentRange& range, Visit visit) const;
  template <class Visit>
  void for_each_change(Visit visit) const {
    for_each_change(all_moments(), visit);
  }
  MomentRange all_moments() const { return {1, last_moment_}; }
  /// All moments, divided into at most so many ranges with about as many changes each: what several threads go through.
  std::vector<MomentRange> split_moments(std::size_t parts) const;

  /// The moment up to which an interval of a trace counts.
  std::size_t moment_of(const TraceFigures& trace, std::size_t interval) const;
  /// The moment at which the blocks of a process are gone that has ended before the others; nothing: it has not.
  std::optional<std::size_t> moment_after(const TraceFigures& trace) const;
  /// Where a mark of a trace lies between the moments.
  double place_of(const TraceFigures& trace, std::uint64_t position) const;

 private:
  template <class Visit>
  void visit_interval(const TraceFigures& trace, std::size_t interval, std::size_t moment, Visit& visit) const;
  template <class Visit>
  void visit_end(const TraceFigures& trace, std::size_t moment, Visit& visit) const;
  std::size_t first_interval(const TraceFigures& trace, std::size_t moment) const;

  AxisUnit unit_;
  unsigned jobs_;
  CallTree tree_;
  std::vector<TraceFigures> traces_;
  std::size_t last_moment_ = 0;
  std::uint64_t width_ = 1;
  std::uint64_t end_position_ = 0;
};

template <class Visit>
void Recording::for_each_change(const MomentRange& range, Visit visit) const {
  std::vector<std::size_t> next;  // interval, by trace
  next.reserve(traces_.size());
  for (const TraceFigures& trace : traces_) next.push_back(first_interval(trace, range.first));
  for (std::size_t moment = range.first; moment <= range.last; ++moment) {
    for (std::size_t i = 0; i < traces_.size(); ++i) {
      const std::size_t count = traces_[i].model->intervals().intervals().size();
      for (; next[i] < count && moment_of(traces_[i], next[i]) <= moment; ++next[i])
        visit_interval(traces_[i], next[i], moment, visit);
      if (moment_after(traces_[i]) == moment) visit_end(traces_[i], moment, visit);
    }
  }
}

/// What the keys of a trace did in an interval, and what of it is live at the end.
template <class Visit>
void Recording::visit_interval(const TraceFigures& trace, std::size_t interval, std::size_t moment,
                               Visit& visit) const {
  const auto visit_key = [&](KeyId key, const SparseMeasures& measures) {
    const NodeNumber node = trace.node_of_key[key];
    if (node != CallTree::left_out) visit(node, moment, measures);
  };
  trace.model->intervals().intervals()[interval].changes.for_each(visit_key);
  for (const LeakedBlocks& leaked : trace.model->leaked_of(interval)) {
    SparseMeasures measures;
    measures.set(Measure::leaked_bytes, leaked.amount.bytes);
    measures.set(Measure::leaked_blocks, leaked.amount.blocks);
    visit_key(leaked.key, measures);
  }
}

/// The process has ended, and the memory is gone that was live at its end.
template <class Visit>
void Recording::visit_end(const TraceFigures& trace, std::size_t moment, Visit& visit) const {
  for (const LeakedBlocks& leaked : trace.model->leaked()) {
    const NodeNumber node = trace.node_of_key[leaked.key];
    if (node == CallTree::left_out) continue;
    SparseMeasures measures;
    measures.set(Measure::live_bytes, 0 - leaked.amount.bytes);
    measures.set(Measure::live_blocks, 0 - leaked.amount.blocks);
    visit(node, moment, measures);
  }
}

}  // namespace cmt::report
