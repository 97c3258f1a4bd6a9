/// The figures of each node of a call tree in few bytes, for folding and findings. A tree can have millions of nodes,
/// and most figures of most nodes are 0.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>

#include "cmtreport/model/changes.h"
#include "cmtreport/report/call_tree.h"

namespace cmt::report {

/// The figures that a node is judged by: none of them is ever below 0.
inline constexpr std::array<Measure, 8> judged_measures{
    Measure::allocated_bytes,     Measure::allocated_blocks,   Measure::temporary_blocks, Measure::short_lived_blocks,
    Measure::other_thread_blocks, Measure::reallocated_blocks, Measure::untouched_bytes,  Measure::leaked_bytes};
using FoldFigures = std::array<std::uint64_t, judged_measures.size() + 1>;  ///< the last: bytes at the peak

/// The figures of a node's own allocations: in the whole trace, and live at the peak.
struct NodeTotals {
  Measures sum;  ///< TotalsByNode keeps the judged ones
  std::uint64_t peak_bytes = 0;
  std::uint64_t peak_blocks = 0;
  std::uint64_t changes = 0;  ///< counts each measure that differs between a moment and the next

  std::uint64_t figure(std::size_t i) const {
    return i == judged_measures.size() ? peak_bytes : sum[judged_measures.at(i)];
  }
  /// Adds the changes up to a moment. Moments never fall.
  void add(std::size_t moment, const SparseMeasures& more);

 private:
  std::size_t moment_ = 0;     // the last one
  std::uint32_t changed_ = 0;  // the measures that changed in it, a bit for each
};

/// NodeTotals of the nodes of a tree that have allocations of their own, in few bytes: some 20 for each of these nodes.
class TotalsByNode {
 public:
  /// `nodes` is the number of nodes of the tree.
  explicit TotalsByNode(std::size_t nodes) : size_(nodes) {}

  std::size_t size() const { return size_; }
  /// Adds a node. Numbers of nodes rise.
  void append(CallId node, const NodeTotals& totals);

  /// Calls `visit(node, totals)` for each with allocations of its own, by rising number.
  template <class Visit>
  void for_each(Visit visit) const {
    for_each_if([](CallId) { return true; }, visit);
  }
  /// The same for the nodes for which `is_wanted(node)` is true.
  template <class IsWanted, class Visit>
  void for_each_if(IsWanted is_wanted, Visit visit) const {
    for_each_packed([&](CallId node, const char* at) {
      if (is_wanted(node)) visit(node, unpacked(at));
    });
  }
  /// Calls `visit(node, number)` with one of the figures, where it is not 0.
  template <class Visit>
  void for_each_figure(std::size_t figure, Visit visit) const {
    for_each_packed([&](CallId node, const char* at) {
      const std::uint64_t present = format::take_own_varint(at);
      if ((present >> figure & 1) == 0) return;
      for (std::uint64_t before = present & ((std::uint64_t{1} << figure) - 1); before != 0; before &= before - 1)
        format::skip_own_varint(at);
      visit(node, format::take_own_varint(at));
    });
  }

 private:
  template <class Visit>
  void for_each_packed(Visit visit) const {
    std::uint32_t node = 0;
    const char* at = bytes_.data();
    for (const char* const end = at + bytes_.size(); at != end;) {
      node += static_cast<std::uint32_t>(format::take_own_varint(at));
      const auto size = static_cast<unsigned char>(*at++);
      visit(static_cast<CallId>(node), at);
      at += size;
    }
  }
  static NodeTotals unpacked(const char* at);

  std::size_t size_;
  CallId last_{};
  // For each node, its number less the number of the node before, as a varint, and how many bytes follow, in one byte.
  // Then come the bits: one for each figure, for the blocks at the peak and for each change, set if it is not 0. The
  // numbers that are not 0 follow as varints.
  std::string bytes_;
};

}  // namespace cmt::report
