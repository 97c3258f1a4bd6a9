#include "cmtreplay/marks.h"

#include <doctest/doctest.h>

using namespace cmt::replay;

namespace {

std::vector<Mark> marks_of(std::uint64_t events, std::size_t count) {
  MarkKeeper keeper;
  for (std::uint64_t event = 1; event <= events; ++event) keeper.pass({.event = event, .word = 2 * event, .live = {}});
  return keeper.choose(count);
}

}  // namespace

TEST_CASE("marks: a short trace is divided exactly") {
  const auto marks = marks_of(1000, 100);
  REQUIRE(marks.size() == 100);
  for (std::size_t i = 0; i < 100; ++i) CHECK(marks[i].event == 10 * (i + 1));
  CHECK(marks[3].word == 80);
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
    CHECK(marks[i].word == 2 * marks[i].event);
  }
  CHECK(marks.back().event == events);
}
