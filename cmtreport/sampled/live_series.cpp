// Keeps the largest estimate of each part of a trace.

#include "cmtreport/sampled/live_series.h"

#include <algorithm>

namespace cmt::report {

void LiveSeries::add(std::uint64_t time_ns, const analysis::Estimate& live) {
  const bool begins_part = events_++ % events_a_point_ == 0;
  if (begins_part && points_.size() == points_max) {
    for (std::size_t i = 0; i < points_max / 2; ++i) {
      const Point &first = points_[2 * i], &second = points_[2 * i + 1];
      points_[i] = second.live.bytes > first.live.bytes ? second : first;
    }
    points_.resize(points_max / 2);
    events_a_point_ *= 2;
  }
  if (begins_part) {
    points_.push_back({events_, time_ns, live});
  } else if (live.bytes > points_.back().live.bytes) {
    points_.back() = {events_, time_ns, live};
  }
}

}  // namespace cmt::report
