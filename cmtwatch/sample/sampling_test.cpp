#include "cmtwatch/sample/sampling.h"

#include <doctest/doctest.h>
#include <poll.h>

using cmt::watch::SampleClock;

namespace {

constexpr std::int64_t millisecond_ns = 1'000'000;

bool due_in_time(SampleClock& clock) {
  pollfd ready{clock.fd(), POLLIN, 0};
  poll(&ready, 1, 10'000);
  return clock.due();
}

void let_moments_pass(int milliseconds) { poll(nullptr, 0, milliseconds); }

}  // namespace

TEST_CASE("sample clock: a moment comes once") {
  SampleClock clock(3'600'000 * millisecond_ns, 1);
  CHECK_FALSE(clock.due());
  SampleClock quick(millisecond_ns, 1);
  CHECK(due_in_time(quick));
}

TEST_CASE("sample clock: moments that pass unused are missed, and counted") {
  SampleClock clock(millisecond_ns, 1);
  let_moments_pass(20);
  CHECK(due_in_time(clock));
  CHECK(clock.missed() >= 18);
  CHECK(clock.skipped() == 0);
}

TEST_CASE("sample clock: after a dear sample so many moments are skipped that it keeps its share") {
  SampleClock clock(millisecond_ns, 0.1);
  CHECK(due_in_time(clock));
  clock.took(millisecond_ns);  // ten moments' worth at a tenth of the time
  while (!due_in_time(clock)) continue;
  CHECK(clock.skipped() == 9);
}

TEST_CASE("sample clock: a cheap sample skips nothing") {
  SampleClock clock(millisecond_ns, 0.1);
  CHECK(due_in_time(clock));
  clock.took(millisecond_ns / 20);
  CHECK(due_in_time(clock));
  CHECK(clock.skipped() == 0);
}
