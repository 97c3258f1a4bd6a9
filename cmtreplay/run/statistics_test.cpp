// Tests medians, their intervals, outliers, the percentiles of latencies, and how many runs are left.
#include "cmtreplay/run/statistics.h"

#include <doctest/doctest.h>

#include "cmtreplay/run/runs.h"

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

TEST_CASE("bootstrap: the interval of a median holds it, and narrows with more samples") {
  std::vector<std::uint64_t> few, many;
  for (int i = 0; i < 11; ++i) few.push_back(static_cast<std::uint64_t>(100 + i % 11));
  for (int i = 0; i < 1100; ++i) many.push_back(static_cast<std::uint64_t>(100 + i % 11));
  const Interval wide = bootstrap_median(few), narrow = bootstrap_median(many);
  CHECK(wide.low < 105);
  CHECK(wide.high > 105);
  CHECK(narrow.low >= 104);
  CHECK(narrow.high <= 106);
  const Interval same = bootstrap_median({7, 7, 7});
  CHECK(same.low == 7);
  CHECK(same.high == 7);
}

TEST_CASE("sign test: the interval of a median by the ranks of tables") {
  std::vector<double> samples;
  for (int i = 1; i <= 10; ++i) samples.push_back(i);
  const auto interval = median_interval(samples, 0.95);  // 2nd and 9th: 97.9 %
  REQUIRE(interval);
  CHECK(interval->low == 2);
  CHECK(interval->high == 9);
  CHECK(median_interval(samples, 0.99)->low == 1);
  CHECK_FALSE(median_interval({1, 2, 3, 4, 5}, 0.95));  // 93.75 % at most
  CHECK_FALSE(median_interval({}, 0.95));
}

TEST_CASE("outliers: far from the median, by the median distance") {
  CHECK(count_outliers({}) == 0);
  CHECK(count_outliers({100, 101, 99, 102, 98, 100, 101, 99}) == 0);
  CHECK(count_outliers({100, 101, 99, 102, 98, 100, 101, 99, 150}) == 1);
}

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
  const auto tail = counts.tail(latency_malloc);
  REQUIRE(tail.size() == 3);
  CHECK(tail[0].one_in == 1);
  CHECK(tail[0].ns == malloc.p50);
  CHECK(tail[1].one_in == 50);
  CHECK(tail[1].ns == malloc.p99);
  CHECK(tail[2].one_in == 100);
  CHECK(tail[2].ns == malloc.max);
  CHECK(counts.tail(latency_free).empty());
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

TEST_CASE("runs left: medians decide how many runs there are, and their times how long they take") {
  AllocatorResult libc{.allocator = {.name = "libc"}}, null{.allocator = {.name = "null", .null = true}};
  ReplayOptions options;
  RunsLeft left = runs_left(options, {libc, null});
  CHECK(left.done == 0);
  CHECK(left.total == 2 * (11 + 1 + 3));
  CHECK(left.seconds == 0);
  libc.warm_up.emplace();
  libc.timed.resize(19);
  libc.spent_ns = 2'000'000'000;
  libc.expected_runs = 59.4;
  null.is_settled = true;
  null.timed.resize(10);
  left = runs_left(options, {libc, null});
  CHECK(left.done == 30);
  CHECK(left.total == 30 + 40 + 2 * (1 + 3));
  CHECK(left.seconds == doctest::Approx(0.1 * 40.4 + 0.1 + 0.2 * 3));
  options.budget_ns = 3'000'000'000;  // 30 runs
  CHECK(runs_left(options, {libc, null}).total == 30 + 11 + 2 * (1 + 3));
  options.stops_when_known = false;  // as a gate
  libc.expected_runs = 0;
  CHECK(runs_left(options, {libc, null}).total == 30 + 11 + 2 * (1 + 3));
  options.runs = 20;
  CHECK(runs_left(options, {libc, null}).total == 30 + 1 + 2 * (1 + 3));
  libc.memory_runs.resize(3);
  libc.memory_seconds = 6;
  libc.is_settled = true;
  CHECK(runs_left(options, {libc, null}).seconds == doctest::Approx(2 * 3));
  libc.death = Death{};
  CHECK(runs_left(options, {libc}).seconds == 0);
}
