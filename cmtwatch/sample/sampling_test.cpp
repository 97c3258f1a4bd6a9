// Samples that cost more than their share are skipped, and moments that pass meanwhile are counted.
#include "cmtwatch/sample/sampling.h"

#include <doctest/doctest.h>
#include <poll.h>

#include "toolkit/process/system.h"

using namespace cmt::watch;

namespace {

constexpr std::int64_t millisecond_ns = 1'000'000;

bool due_in_time(SampleClock& clock) {
  pollfd ready{clock.fd(), POLLIN, 0};
  poll(&ready, 1, 10'000);
  return clock.due();
}

void let_moments_pass(int milliseconds) { poll(nullptr, 0, milliseconds); }

/// The cost of so many samples, for a share of a processor.
SamplingCost cost_of(std::uint64_t count, std::int64_t interval_ns, double share, void (*take)()) {
  const Pace pace{.interval_ns = interval_ns, .cost_share_max = share, .count = count};
  SamplingLoop loop(pace);
  loop.run(SamplingLoop::First::at_once, {}, [take] {
    take();
    return SamplingLoop::Taken::sample;
  });
  return loop.cost();
}

}  // namespace

TEST_CASE("sampling: the price of a sample is processor time, and not the time that it waits") {
  // Each moment pays for 10 ms, which no wait takes, however busy the machine is.
  const SamplingCost waits = cost_of(4, 20 * millisecond_ns, 0.5, [] { let_moments_pass(70); });
  CHECK(waits.skipped == 0);
  CHECK(waits.missed >= 6);
  const SamplingCost works = cost_of(2, 5 * millisecond_ns, 0.1, [] {
    const auto cpu = [] { return cmt::process::clock_ns(CLOCK_PROCESS_CPUTIME_ID); };
    for (const std::int64_t end = cpu() + 10 * millisecond_ns; cpu() < end;) continue;
  });
  CHECK(works.skipped >= 18);  // it costs 20 moments
}

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
  clock.took(millisecond_ns);  // ten moments' worth at a tenth of the time; the one that passed paid for itself
  while (!due_in_time(clock)) continue;
  CHECK(clock.skipped() == 8);
}

TEST_CASE("sample clock: no more is left out than the share asks for") {
  SampleClock clock(millisecond_ns, 0.1);
  for (int sample = 0; sample < 20; ++sample) {
    while (!due_in_time(clock)) continue;
    clock.took(millisecond_ns / 10 + millisecond_ns / 20);  // one and a half moments' worth
  }
  CHECK(clock.skipped() <= 10);
}

TEST_CASE("sample clock: a cheap sample skips nothing") {
  SampleClock clock(millisecond_ns, 0.1);
  CHECK(due_in_time(clock));
  clock.took(millisecond_ns / 20);
  CHECK(due_in_time(clock));
  CHECK(clock.skipped() == 0);
}
