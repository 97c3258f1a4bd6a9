// Sorts the changes of a recording by node in two passes. The first one counts the bytes of each node. The second one
// copies them and adds up the memory that is live at the peak.

#include "cmtreport/report/changes_by_node.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace cmt::report {
namespace {

/// Which measures of a change are a part of the memory that is live at the peak.
enum class PeakPart { none, live, at_peak };

PeakPart part_of_peak(const PeakPlace& peak, std::size_t peak_interval, const ChangePlace& place) {
  if (!peak.process) return place.moment <= peak.moment ? PeakPart::live : PeakPart::none;
  if (place.trace != *peak.process || place.interval > peak_interval) return PeakPart::none;
  return place.interval < peak_interval ? PeakPart::live : PeakPart::at_peak;
}

void add_part(heap::LiveTotals& sum, std::string_view packed, PeakPart part) {
  SparseMeasures measures;
  const char* at = packed.data();
  take_measures(at, measures);
  const bool is_live = part == PeakPart::live;
  sum.bytes += measures[is_live ? Measure::live_bytes : Measure::interval_peak_bytes];
  sum.blocks += measures[is_live ? Measure::live_blocks : Measure::interval_peak_blocks];
}

}  // namespace

std::size_t peak_interval_of(const TraceFigures& trace) {
  const std::vector<Interval>& intervals = trace.model->intervals().intervals();
  const auto has_peak = [&](const Interval& each) { return each.peak.bytes == trace.process.peak_live_bytes; };
  assert(std::any_of(intervals.begin(), intervals.end(), has_peak));
  return static_cast<std::size_t>(std::find_if(intervals.begin(), intervals.end(), has_peak) - intervals.begin());
}

ChangesByNode::ChangesByNode(Recording& recording, const PeakPlace& peak) {
  std::vector<std::uint32_t> places;  // by node
  count_bytes(recording, places);
  at_peak_.resize(nodes_.size());
  largest_leaked_.resize(nodes_.size());
  recording.for_each_leaked([&](std::size_t moment, CallId node, const LeakedBlocks& leaked) {
    LargestLeaked& largest = largest_leaked_[places[index_of(node)]];
    if (leaked.largest_bytes > largest.bytes) largest = {leaked.largest_bytes, moment};
  });
  resized_again_.resize(nodes_.size());
  for (const TraceFigures& trace : recording.traces()) {
    for (const auto& [key, blocks] : trace.model->resized_again()) {
      const CallId node = trace.node_of_key[key];
      if (node != CallTree::left_out) resized_again_[places[index_of(node)]] += blocks;
    }
  }
  bytes_.reset(new char[begins_.back()]);  // not set to 0
  std::vector<std::size_t> next(begins_.begin(), begins_.end() - 1);
  const std::size_t peak_interval = peak.process ? peak_interval_of(recording.traces()[*peak.process]) : 0;
  recording.take_changes([&](const ChangePlace& at, CallId node, std::string_view packed) {
    const std::uint32_t place = places[index_of(node)];
    char* const end = format::put_varint(bytes_.get() + next[place], at.moment);
    next[place] = static_cast<std::size_t>(std::copy(packed.begin(), packed.end(), end) - bytes_.get());
    const PeakPart part = part_of_peak(peak, peak_interval, at);
    if (part != PeakPart::none) add_part(at_peak_[place], packed, part);
  });
  assert(std::equal(next.begin(), next.end(), begins_.begin() + 1));  // both passes have seen the same changes
}

/// Finds the nodes, their places in `nodes_`, and where the changes of each begin.
void ChangesByNode::count_bytes(const Recording& recording, std::vector<std::uint32_t>& places) {
  std::vector<std::size_t> sizes(recording.tree().nodes().size());
  recording.for_each_change([&](const ChangePlace& at, CallId node, std::string_view packed) {
    sizes[index_of(node)] += format::varint_size(static_cast<unsigned>(std::bit_width(at.moment))) + packed.size();
  });
  const auto count =
      static_cast<std::size_t>(std::count_if(sizes.begin(), sizes.end(), [](auto size) { return size != 0; }));
  nodes_.reserve(count);
  begins_.reserve(count + 1);
  places.resize(sizes.size());
  for (std::size_t node = 0; node < sizes.size(); ++node) {
    if (sizes[node] == 0) continue;
    places[node] = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back(static_cast<CallId>(node));
    begins_.push_back(begins_.back() + sizes[node]);
  }
}

}  // namespace cmt::report
