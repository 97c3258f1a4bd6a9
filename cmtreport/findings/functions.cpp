// Adds up nodes by function, as functions.h describes. A function counts as one of the C++ library if its name begins
// with std:: or __gnu_cxx::.

#include "cmtreport/findings/functions.h"

#include <algorithm>
#include <cassert>

#include "analysis/stacks/short_name.h"

namespace cmt::report {

std::vector<FunctionTotals> totals_by_function(const CallTree& tree, const TotalsByNode& totals) {
  std::vector<FunctionTotals> found(tree.functions().size());
  for (FrameNumber function = 0; function < found.size(); ++function) found[function].function = function;
  totals.for_each([&](NodeNumber node, const NodeTotals& own) {
    NodeTotals& sum = found[tree.nodes()[node].function].totals;
    sum.sum += own.sum;
    sum.peak_bytes += own.peak_bytes;
    sum.peak_blocks += own.peak_blocks;
  });
  return found;
}

Callers::Callers(const CallTree& tree) : tree_(tree) {
  for (const Function& function : tree.functions()) {
    const std::string name = analysis::short_name(function.name);
    is_of_library_.push_back(name.starts_with("std::") || name.starts_with("__gnu_cxx::"));
  }
}

FrameNumber Callers::caller_of(NodeNumber node) const {
  const auto& nodes = tree_.nodes();
  const std::string& own = tree_.functions()[nodes[node].function].name;
  for (NodeNumber at = nodes[node].parent; at != 0; at = nodes[at].parent) {
    const FrameNumber function = nodes[at].function;
    if (!is_of_library_[function] && tree_.functions()[function].name != own) return function;
  }
  return nodes[nodes[node].parent].function;
}

std::vector<FrameNumber> Callers::path_of(NodeNumber node, std::size_t most) const {
  std::vector<FrameNumber> path;
  for (; node != 0 && path.size() < most; node = tree_.nodes()[node].parent) {
    const FrameNumber function = tree_.nodes()[node].function;
    if (!is_of_library_[function]) path.push_back(function);
  }
  return path;
}

std::vector<FunctionSeries> series_of(const Recording& recording, const ChangesByNode& changes,
                                      const std::vector<FrameNumber>& functions) {
  const std::size_t count = recording.last_moment() + 1;
  std::vector<std::size_t> place_of(recording.tree().functions().size(), functions.size());
  std::vector<FunctionSeries> series;
  for (const FrameNumber function : functions) {
    assert(place_of[function] == functions.size());  // each function comes once
    place_of[function] = series.size();
    const std::vector<std::uint64_t> zeros(count);
    series.push_back({function, zeros, zeros, zeros});
  }
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const std::size_t place = place_of[recording.tree().nodes()[changes.node(i)].function];
    if (place == series.size()) continue;
    changes.for_each(i, [&](std::size_t moment, const SparseMeasures& measures) {
      series[place].live_bytes[moment] += measures[Measure::live_bytes];
      series[place].leaked_bytes[moment] += measures[Measure::leaked_bytes];
      series[place].leaked_blocks[moment] += measures[Measure::leaked_blocks];
    });
  }
  for (FunctionSeries& each : series) {
    for (std::size_t moment = 1; moment < count; ++moment) {
      each.live_bytes[moment] += each.live_bytes[moment - 1];
      each.leaked_bytes[moment] += each.leaked_bytes[moment - 1];
      each.leaked_blocks[moment] += each.leaked_blocks[moment - 1];
    }
  }
  return series;
}

std::size_t end_of_allocation(const Moments& moments) {
  const std::uint64_t all = moments.allocated_bytes.back(), enough = all - all / 100;
  const auto found = std::lower_bound(moments.allocated_bytes.begin(), moments.allocated_bytes.end(), enough);
  assert(found != moments.allocated_bytes.end());
  return static_cast<std::size_t>(found - moments.allocated_bytes.begin());
}

}  // namespace cmt::report
