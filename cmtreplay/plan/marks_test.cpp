#include "cmtreplay/plan/marks.h"

#include <doctest/doctest.h>

using namespace cmt::replay;

namespace {

std::vector<Mark> marks_of(std::uint64_t events, std::size_t count) {
  MarkCandidates candidates;
  for (std::uint64_t event = 1; event <= events; ++event) {
    if (candidates.wants(event)) candidates.add({.event = event, .live = {}, .positions = {2 * event}});
  }
  return candidates.choose(count, {.event = events, .live = {}, .positions = {2 * events}});
}

}  // namespace

TEST_CASE("marks: a short trace is divided exactly") {
  const auto marks = marks_of(1000, 100);
  REQUIRE(marks.size() == 100);
  for (std::size_t i = 0; i < 100; ++i) CHECK(marks[i].event == 10 * (i + 1));
  CHECK(marks[3].positions[0] == 80);
}

TEST_CASE("marks: fewer events than marks give a mark each") {
  const auto marks = marks_of(3, 100);
  REQUIRE(marks.size() == 3);
  CHECK(marks[0].event == 1);
  CHECK(marks[2].event == 3);
}

TEST_CASE("marks: no events, no marks") { CHECK(marks_of(0, 100).empty()); }

TEST_CASE("marks: a long trace is divided to within a four-thousandth, and ends at its end") {
  const std::uint64_t events = 1234567;
  const auto marks = marks_of(events, 100);
  REQUIRE(marks.size() == 100);
  for (std::size_t i = 0; i + 1 < 100; ++i) {
    const double wanted = static_cast<double>(events) * static_cast<double>(i + 1) / 100;
    CHECK(static_cast<double>(marks[i].event) <= wanted);
    CHECK(static_cast<double>(marks[i].event) >= wanted - static_cast<double>(events) / 4096);
    CHECK(marks[i].positions[0] == 2 * marks[i].event);
  }
  CHECK(marks.back().event == events);
}

TEST_CASE("marks: with many lanes fewer moments are remembered") {
  MarkCandidates candidates;
  std::size_t kept = 0;
  for (std::uint64_t event = 1; event <= 20000; ++event) {
    if (!candidates.wants(event)) continue;
    candidates.add({.event = event, .live = {}, .positions = std::vector<std::uint64_t>(2000)});
    ++kept;
  }
  CHECK(kept < 2000);
  CHECK(candidates.choose(100, {.event = 20000, .live = {}}).size() == 100);
}

TEST_CASE("marks: a moment takes the place of the nearest one, and never of the end") {
  const auto moment_at = [](std::uint64_t event) {
    Mark mark;
    mark.event = event;
    return mark;
  };
  const auto with = [&moment_at](std::vector<std::uint64_t> events, std::uint64_t moment) {
    std::vector<Mark> marks;
    for (const std::uint64_t event : events) marks.push_back(moment_at(event));
    include_mark(marks, moment_at(moment));
    std::vector<std::uint64_t> result;
    for (const Mark& mark : marks) result.push_back(mark.event);
    return result;
  };
  using Events = std::vector<std::uint64_t>;
  CHECK(with({10, 20, 30}, 12) == Events{12, 20, 30});
  CHECK(with({10, 20, 30}, 19) == Events{10, 19, 30});
  CHECK(with({10, 20, 30}, 29) == Events{10, 29, 30});
  CHECK(with({10, 20, 30}, 5) == Events{5, 20, 30});
  CHECK(with({10, 20, 30}, 20) == Events{10, 20, 30});
  CHECK(with({30}, 5) == Events{5, 30});
  CHECK(with({}, 5).empty());
}
