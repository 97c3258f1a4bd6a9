/// The estimated live bytes of a sampled trace over its time, in a bounded number of points.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analysis/sampling/estimate.h"
#include "cmt/event.h"
#include "toolkit/output/fields.h"

namespace cmt::report {

/// Each point is the estimate with the most live bytes in a part of the trace, so that no peak is missed. All parts
/// have the same number of events, which doubles when there are too many points.
class LiveSeries {
 public:
  static constexpr std::size_t points_max = 1024;

  struct Point {
    std::uint64_t event = 0;    ///< counted from 1
    std::uint64_t time_ns = 0;  ///< of the event; unknown: the trace has no times
    analysis::Estimate live;
  };

  /// To be called after each event.
  void add(std::uint64_t time_ns, const analysis::Estimate& live);

  const std::vector<Point>& points() const { return points_; }

 private:
  std::vector<Point> points_;
  std::uint64_t events_ = 0, events_a_point_ = 1;
};

template <class Visitor>
void describe(Visitor& field, const LiveSeries& series) {
  std::vector<std::uint64_t> events, bytes, low, high, samples;
  std::vector<std::uint64_t> times;
  for (const LiveSeries::Point& point : series.points()) {
    const analysis::Range range = interval95(point.live);
    events.push_back(point.event);
    if (point.time_ns != unknown) times.push_back(point.time_ns);
    bytes.push_back(analysis::whole(point.live.bytes));
    low.push_back(analysis::whole(range.low));
    high.push_back(analysis::whole(range.high));
    samples.push_back(point.live.samples);
  }
  field("event", events, "rising: a moment with the most live bytes of a part of the trace");
  field("time_ns", times, "of these events; empty: not recorded");
  field("bytes", bytes, "estimated live bytes");
  field("bytes_low", low, "the lower end of their 95 % interval");
  field("bytes_high", high, "the upper end");
  field("samples", samples, "on which the estimate rests");
}

}  // namespace cmt::report
