// Checks how each unit of the clock advances.

#include "libcmt/heap/clock.h"

#include <doctest/doctest.h>

using cmt::heap::Clock;

TEST_CASE("clock: events are counted one by one") {
  Clock clock(Clock::Unit::events);
  clock.advance_to({});
  clock.count_allocated(100);
  clock.advance_to({});
  CHECK(clock.now() == 2);
}

TEST_CASE("clock: bytes advance by what is allocated") {
  Clock clock(Clock::Unit::bytes);
  clock.advance_to({});
  clock.count_allocated(100);
  CHECK(clock.now() == 100);
}

TEST_CASE("clock: time is the last that was recorded, and never goes back") {
  Clock clock(Clock::Unit::time);
  cmt::Event event;
  event.time_ns = 70;
  clock.advance_to(event);
  clock.advance_to({});
  event.time_ns = 60;
  clock.advance_to(event);
  CHECK(clock.now() == 70);
}

TEST_CASE("clock: units are named as they are parsed") {
  for (const auto unit : {Clock::Unit::events, Clock::Unit::time, Clock::Unit::bytes}) {
    CHECK(Clock::parse(Clock::name(unit)) == unit);
  }
  CHECK_FALSE(Clock::parse("lines"));
}
