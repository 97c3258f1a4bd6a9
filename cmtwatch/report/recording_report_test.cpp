#include "cmtwatch/report/recording_report.h"

#include <doctest/doctest.h>

using namespace cmt::watch;

TEST_CASE("recording report: where all processes have ended the areas end, and do not fall to 0") {
  KindSeries series;
  series.time_ns = {0, 10, 20};
  series.sums.resize(3);
  series.by_kind.resize(3);
  for (const std::size_t moment : {0, 1}) {
    series.sums[moment].add(100, 200);
    series.by_kind[moment][static_cast<std::size_t>(MemoryKind::heap)] = 100;
  }
  series.mappings = {{7, "[heap]", {100, 100, 0}}};
  const cmt::output::Picture picture = recording_picture(series, "a recording");
  REQUIRE(picture.panels.size() == 2);
  for (const cmt::output::Panel& panel : picture.panels) {
    CHECK(panel.series.back().x == std::vector<double>{0, 10});
    CHECK(panel.series.back().y == std::vector<double>{100, 100});
  }
}
