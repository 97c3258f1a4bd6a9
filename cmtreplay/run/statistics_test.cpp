#include "cmtreplay/run/statistics.h"

#include <doctest/doctest.h>

using namespace cmt::replay;

namespace {

/// A run of one lane in which a tick is half a nanosecond and an empty pair takes 40.
struct Run {
  Run() : region({.lanes = 2, .latencies = true}) {
    region.get().clock_ticks = 2000;
    region.get().wall_ns = 1000;
    region.get().empty_ticks = 40;
  }

  void add(std::size_t lane, latency_kind kind, std::uint64_t ticks) {
    latency_add(const_cast<latencies*>(&region.all_latencies()[lane]), kind, ticks);
  }

  ControlRegion region;
};

}  // namespace

TEST_CASE("latency: buckets are contiguous, and a bucket's middle lies in it to 3 %") {
  std::uint32_t before = 0;
  for (std::uint64_t ticks = 1; ticks < 1 << 20; ticks += 1 + ticks / 100) {
    const std::uint32_t bucket = latency_bucket(ticks);
    CHECK(bucket >= before);
    CHECK(bucket <= before + 2);
    CHECK(latency_bucket(static_cast<std::uint64_t>(latency_ticks(bucket))) == bucket);
    CHECK(latency_ticks(bucket) == doctest::Approx(static_cast<double>(ticks)).epsilon(0.03));
    before = bucket;
  }
  CHECK(latency_bucket(UINT64_MAX) == latency_buckets - 1);
}

TEST_CASE("latency: one call in 64 is chosen, not at equal distances") {
  latencies its{};
  its.countdown = 1;
  std::uint64_t chosen = 0, last = 0;
  bool differ = false;
  for (std::uint64_t call = 0; call < 640000; ++call) {
    if (!latency_chooses(&its)) continue;
    differ = differ || (chosen > 1 && call - last != 64);
    last = call;
    ++chosen;
  }
  CHECK(chosen > 9500);
  CHECK(chosen < 10500);
  CHECK(differ);
}

TEST_CASE("latency: quantiles are of all lanes, less the empty pair, in nanoseconds") {
  Run run;
  for (int i = 0; i < 98; ++i) run.add(i % 2, latency_malloc, 60);
  run.add(0, latency_malloc, 1064);
  run.add(1, latency_malloc, 100040);
  LatencyCounts counts;
  counts.add(run.region);
  const LatencySummary malloc = counts.summary(latency_malloc);
  CHECK(malloc.samples == 100);
  CHECK(malloc.p50 == doctest::Approx(10).epsilon(0.1));
  CHECK(malloc.p90 == malloc.p50);
  CHECK(malloc.p99 == doctest::Approx(512).epsilon(0.03));
  CHECK(malloc.p999 == doctest::Approx(50000).epsilon(0.03));
  CHECK(malloc.max == 50000);
  CHECK(counts.summary(latency_free).samples == 0);
}

TEST_CASE("latency: less than the empty pair is nothing, and runs add up") {
  Run run;
  run.add(0, latency_free, 30);
  LatencyCounts counts;
  counts.add(run.region);
  counts.add(run.region);
  CHECK(counts.summary(latency_free).samples == 2);
  CHECK(counts.summary(latency_free).max == 0);
  CHECK(counts.samples() == 2);
}

TEST_CASE("spread: the median of an odd number is the middle one") {
  CHECK(spread_of({9, 1, 5}).median == 5);
  CHECK(spread_of({9, 1, 5}).min == 1);
  CHECK(spread_of({9, 1, 5}).max == 9);
}

TEST_CASE("spread: the median of an even number lies between the middle two") {
  CHECK(spread_of({1, 2, 4, 9}).median == 3);
}

TEST_CASE("spread: of nothing there are zeros") { CHECK(spread_of({}).max == 0); }
