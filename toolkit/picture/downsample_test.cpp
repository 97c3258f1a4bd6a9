// Checks that no peak is lost when series, bands and maps are reduced.

#include "toolkit/picture/svg_parts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

using namespace cmt::picture;

namespace {

Series many(std::size_t points) {
  Series series{"many", {}, {}, Series::Form::line};
  for (std::size_t i = 0; i < points; ++i) {
    series.x.push_back(static_cast<double>(i));
    series.y.push_back(static_cast<double>(i * 7919 % 1000));
  }
  return series;
}

}  // namespace

TEST_CASE("downsample: a peak of one point in a million is kept, at four points a column") {
  Series series = many(1'000'000);
  series.y[654'321] = 5000;
  series.y[123'456] = -1;
  const Series seen = downsample(series, 0, 999'999, 100);
  CHECK(seen.x.size() <= 404);
  CHECK(std::is_sorted(seen.x.begin(), seen.x.end()));
  const auto highest = std::max_element(seen.y.begin(), seen.y.end()) - seen.y.begin();
  CHECK(seen.x[static_cast<std::size_t>(highest)] == 654'321);
  CHECK(*std::min_element(seen.y.begin(), seen.y.end()) == -1);
  CHECK(seen.x.front() == 0);
  CHECK(seen.x.back() == 999'999);
}

TEST_CASE("downsample: few points stay as they are") {
  const Series series = many(50);
  CHECK(downsample(series, 0, 49, 800).y == series.y);
  CHECK(downsample({"none", {}, {}, Series::Form::line}, 0, 1, 800).x.empty());
  CHECK(downsample({"one", {3}, {4}, Series::Form::line}, 3, 3, 800).y == std::vector<double>{4});
}

TEST_CASE("downsample: points that are not finite are left out") {
  const double infinite = std::numeric_limits<double>::infinity();
  const Series seen = downsample({"bad", {0, 1, 2, infinite}, {1, infinite, 3, 4}, Series::Form::line}, 0, 2, 10);
  CHECK(seen.y == std::vector<double>{1, 3});
}

TEST_CASE("downsample: bands keep the same moments, and the greatest sum") {
  std::vector<Series> bands{many(10'000), many(10'000)};
  bands[0].y[5'000] = 10'000;
  const auto seen = downsample_bands(bands, 0, 9'999, 50);
  REQUIRE(seen.size() == 2);
  CHECK(seen[0].x == seen[1].x);
  CHECK(seen[0].x.size() <= 204);
  CHECK(*std::max_element(seen[0].y.begin(), seen[0].y.end()) == 10'000);
}

TEST_CASE("downsample: a map's single hot cell is kept") {
  HeatMap heat;
  for (int i = 0; i <= 3000; ++i) heat.x_edges.push_back(i);
  heat.y_edges = {0, 1, 2};
  heat.cells.assign(6000, 0);
  heat.cells[3000 + 2999] = 7;
  const HeatMap seen = downsample(heat, 1000);
  CHECK(seen.columns() <= 1000);
  CHECK(seen.rows() == 2);
  CHECK(seen.x_edges.back() == 3000);
  CHECK(seen.at(seen.columns() - 1, 1) == 7);
}
