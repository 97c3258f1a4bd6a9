#include "toolkit/command/duration.h"

#include <doctest/doctest.h>

using cmt::command::parse_duration;

TEST_CASE("duration: a number and a unit") {
  CHECK(parse_duration("250ms", "s") == 250'000'000);
  CHECK(parse_duration("1.5s", "ms") == 1'500'000'000);
  CHECK(parse_duration("10us", "s") == 10'000);
  CHECK(parse_duration("2min", "s") == 120'000'000'000);
}

TEST_CASE("duration: a number alone has the unit of the option") {
  CHECK(parse_duration("10", "ms") == 10'000'000);
  CHECK(parse_duration("0", "s") == 0);
}

TEST_CASE("duration: what is no span is refused") {
  for (const char* wrong : {"", "ms", "-1s", "1 s", "1e3s", "nan", "inf", "5parsecs", "99999999999999h"}) {
    CHECK_FALSE(parse_duration(wrong, "s").has_value());
  }
}
