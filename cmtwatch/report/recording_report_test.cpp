// The picture falls to the remaining memory when a process ends, and has no 0 at the end.
#include "cmtwatch/report/recording_report.h"

#include <doctest/doctest.h>

using namespace cmt::watch;

TEST_CASE("recording report: areas end where processes end, at once, and do not fall to 0 until the next moment") {
  KindSeries series;
  series.time_ns = {0, 10, 20};
  for (auto* const sums : {&series.sums.at, &series.sums.after}) sums->resize(3);
  for (auto* const kinds : {&series.by_kind.at, &series.by_kind.after}) kinds->resize(3);
  const auto set = [](MemorySum& sum, BytesByKind& kinds, std::uint64_t bytes) {
    sum.add(bytes, bytes);
    kinds[static_cast<std::size_t>(MemoryKind::heap)] = bytes;
  };
  set(series.sums.at[0], series.by_kind.at[0], 100);
  set(series.sums.after[0], series.by_kind.after[0], 30);  // a process ends
  set(series.sums.at[1], series.by_kind.at[1], 30);        // and another one: the last
  series.mappings = {{7, "[heap]", {{100, 30, 0}, {30, 0, 0}}}};
  const cmt::picture::Picture picture = recording_picture(series, "a recording");
  REQUIRE(picture.panels.size() == 2);
  for (const cmt::picture::Panel& panel : picture.panels) {
    for (const cmt::picture::Series& one : panel.series) {
      CHECK(one.x == std::vector<double>{0, 1, 10});
      CHECK(one.y == std::vector<double>{100, 30, 30});
    }
  }
}
