#include "trace2cmt/filters/filter.h"

#include <doctest/doctest.h>

namespace trace2cmt {

TEST_CASE("slice: a range is of events, or of time with a unit") {
  const auto events = SliceRange::parse("10:20");
  REQUIRE(events);
  CHECK(!events->in_time);
  CHECK(events->from == 10);
  CHECK(events->to == 20);
  const auto time = SliceRange::parse("1.5s:2min");
  REQUIRE(time);
  CHECK(time->in_time);
  CHECK(time->from == 1'500'000'000);
  CHECK(time->to == 120'000'000'000);
}

TEST_CASE("slice: either side may be left out, not both") {
  CHECK(SliceRange::parse(":7")->from == 0);
  CHECK(SliceRange::parse("7:")->to == cmt::unknown);
  CHECK(SliceRange::parse("3us:")->from == 3000);
  CHECK(!SliceRange::parse(":"));
}

TEST_CASE("slice: what is no range is refused") {
  for (const char* text : {"", "7", "a:b", "3:2", "1s:7", "1.5:2", "-1:2", "-1s:2s", "1e3s:", "nans:", "infs:", "1x:2x",
                           "1:2:3", " 1:2", "99999999999h:", "18446744073709551616:"}) {
    CHECK_MESSAGE(!SliceRange::parse(text), text);
  }
}

}  // namespace trace2cmt
