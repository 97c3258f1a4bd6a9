#pragma once

#include <cstdint>
#include <functional>
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

/// All traces of a report, on one axis, by the nodes of one tree.
class Recording {
 public:
  Recording(AxisUnit unit, CallTree tree, std::vector<TraceFigures> traces);

  AxisUnit unit() const { return unit_; }
  const CallTree& tree() const { return tree_; }
  const std::vector<TraceFigures>& traces() const { return traces_; }
  /// How many there are, moment 0 not counted.
  std::size_t last_moment() const { return last_moment_; }
  /// The width of an interval and the end of the last one, on the axis.
  std::uint64_t width() const { return width_; }
  std::uint64_t end_position() const { return end_position_; }

  /// Calls `visit(node, moment, measures)` with all that a node's own allocations did up to a moment since the moment
  /// before, by rising moments; a node may be visited several times for the same moment.
  using Visit = std::function<void(NodeNumber, std::size_t, const Measures&)>;
  void for_each_change(const Visit& visit) const;

  /// The moment up to which an interval of a trace counts.
  std::size_t moment_of(const TraceFigures& trace, std::size_t interval) const;
  /// The moment at which the blocks of a process are gone that has ended before the others; nothing: it has not.
  std::optional<std::size_t> moment_after(const TraceFigures& trace) const;
  /// Where a mark of a trace lies between the moments.
  double place_of(const TraceFigures& trace, std::uint64_t position) const;

 private:
  AxisUnit unit_;
  CallTree tree_;
  std::vector<TraceFigures> traces_;
  std::size_t last_moment_ = 0;
  std::uint64_t width_ = 1;
  std::uint64_t end_position_ = 0;
};

}  // namespace cmt::report
