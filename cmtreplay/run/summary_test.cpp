#include "cmtreplay/run/summary.h"

#include <doctest/doctest.h>

using cmt::replay::summarise;

TEST_CASE("summary: the median of an odd number is the middle one") {
  CHECK(summarise({9, 1, 5}).median == 5);
  CHECK(summarise({9, 1, 5}).min == 1);
  CHECK(summarise({9, 1, 5}).max == 9);
}

TEST_CASE("summary: the median of an even number lies between the middle two") {
  CHECK(summarise({1, 2, 4, 9}).median == 3);
}

TEST_CASE("summary: of nothing there are zeros") { CHECK(summarise({}).max == 0); }
