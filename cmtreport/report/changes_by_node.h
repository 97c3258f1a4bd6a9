#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cmtreport/report/recording.h"

namespace cmt::report {

/// When live bytes were at their peak: at the peak of one process, or, of several, at a moment of the axis. What
/// several had together between two moments is not known; where one had more alone than all at any moment, its peak
/// counts.
struct PeakPlace {
  std::size_t moment = 0;                ///< the first at or behind the peak
  std::optional<std::uint32_t> process;  ///< which had it alone; nothing: all together, at the moment
  std::uint64_t live_bytes = 0;
};

/// What each node's own allocations did up to which moment: the changes of a recording, sorted by node. So what is
/// asked of nodes one after the other, such as their sums, needs no table of all of them. Memory: some 10 bytes for
/// each moment that a node did something up to, and 28 a node.
class ChangesByNode {
 public:
  /// Takes the changes out of the recording.
  ChangesByNode(Recording& recording, const PeakPlace& peak);

  /// How many nodes have own allocations, and these, by rising number.
  std::size_t size() const { return nodes_.size(); }
  NodeNumber node(std::size_t i) const { return nodes_[i]; }
  /// What it had live at the peak.
  const heap::LiveTotals& at_peak(std::size_t i) const { return at_peak_[i]; }

  /// Calls `visit(moment, measures)` with what the i-th of these nodes did up to a moment since the moment before, as
  /// SparseMeasures, by rising moments; a moment may come several times.
  template <class Visit>
  void for_each(std::size_t i, Visit visit) const {
    SparseMeasures measures;
    const char* at = bytes_.get() + begins_[i];
    for (const char* const end = bytes_.get() + begins_[i + 1]; at != end;) {
      const auto moment = static_cast<std::size_t>(format::take_own_varint(at));
      take_measures(at, measures);
      visit(moment, measures);
    }
  }

 private:
  void count_bytes(const Recording& recording, std::vector<std::uint32_t>& places);

  std::vector<NodeNumber> nodes_;
  std::vector<std::size_t> begins_{0};  // by place in nodes_, in bytes_; and the end
  std::vector<heap::LiveTotals> at_peak_;
  std::unique_ptr<char[]> bytes_;  // for each change the moment, and the packed measures
};

/// The first interval of a process that has its peak. The process has events.
std::size_t peak_interval_of(const TraceFigures& trace);

}  // namespace cmt::report
