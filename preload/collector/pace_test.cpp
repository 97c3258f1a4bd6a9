#include "preload/collector/pace.h"

#include <doctest/doctest.h>

using namespace cmt::collector;

TEST_CASE("pace: a ring that fills in 400 us is read every 100 us, less what the pass took") {
  Pace pace;
  std::uint64_t now = 1'000'000'000;
  pace.begin_pass(now);
  for (int i = 0; i < 40; ++i) {
    pace.begin_pass(now += 100'000);
    pace.found(1, 100);
    pace.found(25, 100);
    pace.end_pass();
  }
  CHECK(*pace.nap(now) == 100'000);
  CHECK(*pace.nap(now + 30'000) == 70'000);
  CHECK(*pace.nap(now + 500'000) == 10'000);
}

TEST_CASE("pace: a pass that comes late, and finds a ring full, does not make the next one late") {
  Pace pace;
  std::uint64_t now = 1'000'000'000;
  pace.begin_pass(now);
  pace.begin_pass(now += 100'000);
  pace.found(25, 100);
  pace.end_pass();
  pace.begin_pass(now += 5'000'000);
  pace.found(100, 100);
  pace.end_pass();
  CHECK(*pace.nap(now) == 112'500);
}

TEST_CASE("pace: slow threads ring the bell") {
  Pace pace;
  std::uint64_t now = 1'000'000'000;
  CHECK_FALSE(pace.nap(now));
  pace.begin_pass(now);
  pace.end_pass();
  CHECK_FALSE(pace.nap(now));
  for (int i = 0; i < 10; ++i) {
    pace.begin_pass(now += 100'000'000);
    pace.found(50, 100);
    pace.end_pass();
  }
  CHECK_FALSE(pace.nap(now));
}
