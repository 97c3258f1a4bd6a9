#pragma once

#include <cstdint>
#include <vector>

#include "cmtreport/report/changes_by_node.h"
#include "cmtreport/report/fold.h"
#include "cmtreport/report/recording.h"

namespace cmt::report {

/// What a function's own allocations have, from all its callers.
struct FunctionTotals {
  FrameNumber function = 0;
  NodeTotals totals{};
};

/// By function of the tree.
std::vector<FunctionTotals> totals_by_function(const CallTree& tree, const TotalsByNode& totals);

/// The function that is to be told as the caller of a node's: the nearest one outwards of another name that is none of
/// the C++ library's; where there is none, the nearest; 0: it is called by none.
class Callers {
 public:
  /// Borrows `tree`.
  explicit Callers(const CallTree& tree);
  FrameNumber caller_of(NodeNumber node) const;
  /// The first `most` functions outwards from the node's own that are none of the C++ library's, from it on.
  std::vector<FrameNumber> path_of(NodeNumber node, std::size_t most) const;

 private:
  const CallTree& tree_;
  std::vector<bool> is_of_library_;  // by function
};

/// The caller of a function that most of a figure comes from, and the node with most of it.
struct LargestCaller {
  FrameNumber caller = 0;  ///< 0: the function is called by none
  std::uint64_t amount = 0;
  NodeNumber node = 0;
};

/// `figure(totals)` of a node.
template <class GetFigure>
LargestCaller largest_caller(const CallTree& tree, const Callers& callers, const TotalsByNode& totals,
                             FrameNumber function, GetFigure figure) {
  std::vector<std::uint64_t> by_caller(tree.functions().size());
  LargestCaller largest;
  std::uint64_t most_of_node = 0;
  const auto is_of_function = [&](NodeNumber node) { return tree.nodes()[node].function == function; };
  totals.for_each_if(is_of_function, [&](NodeNumber node, const NodeTotals& own) {
    const std::uint64_t amount = figure(own);
    const FrameNumber caller = callers.caller_of(node);
    by_caller[caller] += amount;
    if (by_caller[caller] > largest.amount) {
      largest.caller = caller;
      largest.amount = by_caller[caller];
    }
    if (amount <= most_of_node) return;
    most_of_node = amount;
    largest.node = node;
  });
  return largest;
}

/// What a function had live at each moment, and what it allocated up to there and never freed.
struct FunctionSeries {
  FrameNumber function = 0;
  std::vector<std::uint64_t> live_bytes;
  std::vector<std::uint64_t> leaked_bytes;  ///< allocated up to the moment, live at the end
  std::vector<std::uint64_t> leaked_blocks;
};

/// Of some functions. Memory: 24 bytes for each and moment.
std::vector<FunctionSeries> series_of(const Recording& recording, const ChangesByNode& changes,
                                      const std::vector<FrameNumber>& functions);

/// The first moment by which 99 % of all bytes were allocated: behind it a program that ends only frees.
std::size_t end_of_allocation(const Moments& moments);

}  // namespace cmt::report
