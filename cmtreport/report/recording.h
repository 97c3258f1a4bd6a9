/// Puts the traces of several processes on one axis of moments and on one tree of calls. The hard part: their intervals
/// have different widths, and a process that ends early leaves memory that the others never see freed.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmtreport/model/trace_model.h"
#include "cmtreport/report/call_tree.h"
#include "cmtreport/report/report.h"

namespace cmt::report {

/// The unit of the axis on which the moments of a report are.
enum class AxisUnit { time, events, share };

/// A recording up to this long, 0.1 s, says little by its times. Recorded times rise once in a millisecond, and
/// starting the recorder and other programs on the machine stop the program for longer than that.
inline constexpr std::uint64_t short_recording_ns = 100'000'000;

/// One trace that has been read: its figures by key, and the node of the call tree for each key.
struct TraceFigures {
  Process process;
  std::unique_ptr<TraceModel> model;
  std::vector<CallId> node_of_key;
  std::uint64_t start = 0;  ///< its begin on the axis
};

/// The trace and the interval that a change of a recording is from.
struct ChangePlace {
  std::size_t trace = 0;
  std::size_t interval = 0;  ///< equal to the number of its intervals after the process has ended
  std::size_t moment = 0;    ///< the moment up to which the change counts
};

/// All traces of a report, on one axis, by the nodes of one tree.
class Recording {
 public:
  Recording(AxisUnit unit, CallTree tree, std::vector<TraceFigures> traces);

  AxisUnit unit() const { return unit_; }
  const CallTree& tree() const { return tree_; }
  const std::vector<TraceFigures>& traces() const { return traces_; }
  /// The number of moments, moment 0 not counted.
  std::size_t last_moment() const { return last_moment_; }
  /// The width of an interval and the end of the last one, on the axis.
  std::uint64_t width() const { return width_; }
  std::uint64_t end_position() const { return end_position_; }

  /// Calls `visit(place, node, packed)` with the changes of a node's own allocations between the moment before and this
  /// one, as packed measures. Moments rise. A node may be visited several times for the same moment.
  template <class Visit>
  void for_each_change(Visit visit) const {
    visit_changes(visit, [](const ChangePlace&) {});
  }
  /// The same, only once: it frees the changes of an interval after visiting them.
  template <class Visit>
  void take_changes(Visit visit) {
    visit_changes(visit,
                  [this](const ChangePlace& at) { traces_[at.trace].model->intervals().drop_changes(at.interval); });
    for (TraceFigures& trace : traces_) trace.node_of_key = {};
  }

  /// Calls `visit(moment, node, leaked)` with the blocks of a node that were made in an interval up to this moment and
  /// are live at the end. To be called before take_changes().
  template <class Visit>
  void for_each_leaked(Visit visit) const;

  /// Returns the moment up to which an interval of a trace counts.
  std::size_t moment_of(const TraceFigures& trace, std::size_t interval) const;
  /// Returns the moment at which the blocks of an ended process are gone, or nullopt if the process did not end before
  /// the others.
  std::optional<std::size_t> moment_after(const TraceFigures& trace) const;
  /// Returns the place of a mark between the moments: 1.5 is halfway from moment 1 to moment 2.
  double place_of(const TraceFigures& trace, std::uint64_t position) const;

 private:
  template <class Visit, class End>
  void visit_changes(Visit& visit, End end_interval) const;
  template <class Visit>
  void visit_interval(const ChangePlace& at, Visit& visit) const;
  template <class Visit>
  void visit_end(const ChangePlace& at, Visit& visit) const;

  AxisUnit unit_;
  CallTree tree_;
  std::vector<TraceFigures> traces_;
  std::size_t last_moment_ = 0;
  std::uint64_t width_ = 1;
  std::uint64_t end_position_ = 0;
};

template <class Visit, class End>
void Recording::visit_changes(Visit& visit, End end_interval) const {
  std::vector<std::size_t> next(traces_.size());  // interval, by trace
  for (std::size_t moment = 1; moment <= last_moment_; ++moment) {
    for (std::size_t i = 0; i < traces_.size(); ++i) {
      const std::size_t count = traces_[i].model->intervals().intervals().size();
      for (; next[i] < count && moment_of(traces_[i], next[i]) <= moment; ++next[i]) {
        const ChangePlace at{i, next[i], moment};
        visit_interval(at, visit);
        end_interval(at);
      }
      if (moment_after(traces_[i]) == moment) visit_end({i, count, moment}, visit);
    }
  }
}

template <class Visit>
void Recording::for_each_leaked(Visit visit) const {
  for (const TraceFigures& trace : traces_) {
    for (std::size_t i = 0; i < trace.model->intervals().intervals().size(); ++i) {
      for (const LeakedBlocks& leaked : trace.model->leaked_of(i)) {
        const CallId node = trace.node_of_key[leaked.key];
        if (node != CallTree::left_out) visit(moment_of(trace, i), node, leaked);
      }
    }
  }
}

/// Visits the changes of the keys of a trace in an interval, and the blocks from it that are live at the end.
template <class Visit>
void Recording::visit_interval(const ChangePlace& at, Visit& visit) const {
  const TraceFigures& trace = traces_[at.trace];
  const auto visit_key = [&](KeyId key, std::string_view measures) {
    assert(key < trace.node_of_key.size());
    const CallId node = trace.node_of_key[key];
    if (node != CallTree::left_out) visit(at, node, measures);
  };
  trace.model->intervals().intervals()[at.interval].changes.for_each_packed(visit_key);
  for (const LeakedBlocks& leaked : trace.model->leaked_of(at.interval)) {
    Measures measures;
    measures[Measure::leaked_bytes] = leaked.amount.bytes;
    measures[Measure::leaked_blocks] = leaked.amount.blocks;
    visit_key(leaked.key, packed(measures));
  }
}

/// Visits the end of a process: the memory that was live at its end is gone.
template <class Visit>
void Recording::visit_end(const ChangePlace& at, Visit& visit) const {
  const TraceFigures& trace = traces_[at.trace];
  for (const LeakedBlocks& leaked : trace.model->leaked()) {
    const CallId node = trace.node_of_key[leaked.key];
    if (node == CallTree::left_out) continue;
    Measures measures;
    measures[Measure::live_bytes] = 0 - leaked.amount.bytes;
    measures[Measure::live_blocks] = 0 - leaked.amount.blocks;
    visit(at, node, packed(measures));
  }
}

}  // namespace cmt::report
