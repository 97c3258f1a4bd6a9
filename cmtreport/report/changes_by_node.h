/// The changes of a recording sorted by node, for findings and folding, which look at one node after another. The
/// recording has them sorted by moment.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cmtreport/report/recording.h"

namespace cmt::report {

/// When live bytes were at their peak: at the peak of one process, or, of several processes, at a moment of the axis.
/// Their common memory between two moments is not known. If one process alone had more than all had at any moment, its
/// peak counts.
struct PeakPlace {
  std::size_t moment = 0;                ///< the first moment at or after the peak
  std::optional<std::uint32_t> process;  ///< the process that had it alone; nullopt: all had it together, at the moment
  std::uint64_t live_bytes = 0;
};

/// The largest block of a node that is live at the end, and the moment up to which it was made.
struct LargestLeaked {
  std::uint64_t bytes = 0;
  std::size_t moment = 0;
};

/// The changes of each node's own allocations, by moment. Figures of one node after another, such as sums, so need no
/// table of all nodes. Memory: some 10 bytes for each moment at which a node changed, and 52 a node.
class ChangesByNode {
 public:
  /// Takes the changes out of the recording.
  ChangesByNode(Recording& recording, const PeakPlace& peak);

  /// How many nodes have own allocations, and the i-th of these, by rising number.
  std::size_t size() const { return nodes_.size(); }
  CallId node(std::size_t i) const { return nodes_[i]; }
  /// Returns the memory of the i-th node that was live at the peak.
  const heap::LiveTotals& at_peak(std::size_t i) const { return at_peak_[i]; }

  /// Returns the largest block of the i-th node that is live at the end; 0 bytes: none is.
  const LargestLeaked& largest_leaked(std::size_t i) const { return largest_leaked_[i]; }

  /// Returns how many blocks of the i-th node a realloc made of a block that a realloc had made.
  std::uint64_t resized_again(std::size_t i) const { return resized_again_[i]; }

  /// Calls `visit(moment, measures)` with the changes of the i-th node between the moment before and this one, as
  /// SparseMeasures. Moments rise; a moment may come several times.
  template <class Visit>
  void for_each(std::size_t i, Visit visit) const {
    assert(i < nodes_.size());
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

  std::vector<CallId> nodes_;
  std::vector<std::size_t> begins_{0};  // by place in nodes_, in bytes_; and the end
  std::vector<heap::LiveTotals> at_peak_;
  std::vector<LargestLeaked> largest_leaked_;
  std::vector<std::uint64_t> resized_again_;
  std::unique_ptr<char[]> bytes_;  // for each change the moment, and the packed measures
};

/// Returns the first interval of a process that has its peak. The process must have events.
std::size_t peak_interval_of(const TraceFigures& trace);

}  // namespace cmt::report
