// Checks which lists of --fail-if are read, and that all others are refused.

#include "toolkit/command/limits.h"

#include <doctest/doctest.h>

using cmt::command::parse_limits;

TEST_CASE("limits: figures with the share by which they may be worse") {
  const auto limits = parse_limits("time+3%,peak+0.5%", {"time", "peak", "leaks"});
  REQUIRE(limits);
  REQUIRE(limits->size() == 2);
  CHECK(limits->at(0).figure == "time");
  CHECK(limits->at(0).share == doctest::Approx(0.03));
  CHECK(limits->at(1).share == doctest::Approx(0.005));
}

TEST_CASE("limits: anything else is refused") {
  for (const char* const text : {"", "time", "time+", "time+3", "time+%", "time-3%", "speed+3%", "time+3%,",
                                 "time+nan%", "time+3%,time+4%", "time+3%;peak+2%", "+3%"})
    CHECK_FALSE(parse_limits(text, {"time", "peak"}));
}
