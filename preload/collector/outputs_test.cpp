// Checks that times which are made from stamps do not go back.

#include "preload/collector/outputs.h"

#include <doctest/doctest.h>

using namespace cmt::collector;

TEST_CASE("stamp times: they follow the clocks, and go back neither by a calibration nor behind a trace") {
  StampTimes times(1000, 50'000);
  times.calibrate(2000, 60'000);
  CHECK(times.time_of(1500) == 5000);
  CHECK(times.time_of(1400) == 5000);
  times.go_on_from(7000);
  CHECK(times.time_of(1600) == 7000);
  CHECK(times.time_of(1800) == 8000);
  times.go_on_from(6000);
  CHECK(times.time_of(1900) == 9000);
}
