// Live bytes over time of long traces.
#include "cmtreport/sampled/live_series.h"

#include <doctest/doctest.h>

namespace cmt::report {
namespace {

TEST_CASE("live series: a long trace has few points, and each peak is in one of them") {
  LiveSeries series;
  for (std::uint64_t i = 1; i <= 100'000; ++i)
    series.add(i * 10, {.interval = 1, .samples = 1, .bytes = i % 40'000 == 7 ? 1e6 : 100.0});
  const auto& points = series.points();
  CHECK(points.size() <= LiveSeries::points_max);
  CHECK(points.size() > LiveSeries::points_max / 4);
  std::vector<std::uint64_t> peaks;
  for (std::size_t i = 0; i < points.size(); ++i) {
    CHECK(points[i].time_ns == points[i].event * 10);
    CHECK((i == 0 || points[i - 1].event < points[i].event));
    if (points[i].live.bytes == 1e6) peaks.push_back(points[i].event);
  }
  CHECK(peaks == std::vector<std::uint64_t>{7, 40'007, 80'007});
}

}  // namespace
}  // namespace cmt::report
