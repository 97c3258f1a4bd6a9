// Checks weights and intervals against their definitions, and by simulated samples.

#include "analysis/sampling/estimate.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

#include "cmt/event.h"
#include "toolkit/output/fields.h"

namespace cmt::analysis {
namespace {

constexpr std::uint64_t estimate_interval = 512 << 10;

constexpr Estimate nothing_seen{.interval = estimate_interval};

Estimate of_samples(std::uint64_t count, std::uint64_t size, std::uint64_t interval = estimate_interval) {
  Estimate sum{.interval = interval};
  for (std::uint64_t i = 0; i < count; ++i) sum.add(weight_of(size, interval));
  return sum;
}

TEST_CASE("a weight is exact far below and far above the interval") {
  const Weight small = weight_of(1, std::uint64_t{1} << 60);
  CHECK(small.blocks == doctest::Approx(0x1p60));
  CHECK(small.bytes == doctest::Approx(0x1p60));
  CHECK(small.bytes_variance == doctest::Approx(0x1p120));
  const Weight middle = weight_of(estimate_interval, estimate_interval);
  const double chance = 1 - std::exp(-1.0), bytes = estimate_interval / chance;
  CHECK(middle.blocks == doctest::Approx(1 / chance));
  CHECK(middle.bytes == doctest::Approx(bytes));
  CHECK(middle.bytes_variance == doctest::Approx(bytes * (bytes - estimate_interval)));
  CHECK(middle.blocks_variance == doctest::Approx((1 / chance) * (1 / chance - 1)));
  const Weight large = weight_of(100 * estimate_interval, estimate_interval);
  CHECK(large.bytes == 100 * estimate_interval);
  CHECK(large.blocks == 1);
  CHECK(large.bytes_variance > 0);
  CHECK(large.bytes_variance < 1e-20);
  CHECK(weight_of(unknown, 1).bytes_variance == 0);
  CHECK(weight_of(0, 1).blocks == 0);
}

TEST_CASE("without samples an estimate is exactly 0") {
  Estimate sum = of_samples(2, 3);
  sum.add(weight_of(1 << 30, estimate_interval));
  for (const std::uint64_t size : {3, 1 << 30, 3}) sum.remove(weight_of(size, estimate_interval));
  CHECK(sum == Estimate{.interval = estimate_interval});
}

TEST_CASE("the interval of small blocks is that of Garwood") {
  // Garwood (1936), for 1, 2, 10 and 100 samples
  const std::vector<std::pair<std::uint64_t, Range>> exact{
      {1, {0.0253, 5.572}}, {2, {0.242, 7.225}}, {10, {4.795, 18.39}}, {100, {81.36, 121.6}}};
  for (const auto& [count, range] : exact) {
    const Range found = interval95(of_samples(count, 1));
    CHECK(found.low / estimate_interval == doctest::Approx(range.low).epsilon(count == 1 ? 0.6 : 0.02));
    CHECK(found.high / estimate_interval == doctest::Approx(range.high).epsilon(0.01));
  }
  CHECK(interval95(nothing_seen).high == doctest::Approx(3.0 * estimate_interval).epsilon(0.01));
  CHECK(unseen_below(1'000'000) == doctest::Approx(2'995'732));
}

TEST_CASE("at a peak, the interval's lower end leaves out one sample, but none that is surely one") {
  const auto at_peak = [](Estimate sum) {
    sum.is_at_peak = true;
    return interval95(sum);
  };
  CHECK(at_peak(of_samples(1, 1)).low < 2);
  for (const unsigned count : {2, 5, 100}) {
    const Range one_fewer = interval95(of_samples(count - 1, 1)), found = at_peak(of_samples(count, 1));
    CHECK(found.low == doctest::Approx(one_fewer.low).epsilon(0.001));
    CHECK(found.high == interval95(of_samples(count, 1)).high);
  }
  const Estimate large = of_samples(3, 100 * estimate_interval);
  CHECK(at_peak(large).low == doctest::Approx(large.bytes).epsilon(0.001));
  Estimate mixed = large;
  mixed += of_samples(1, 1);
  CHECK(at_peak(mixed).low < large.bytes + 2);
}

TEST_CASE("beside blocks that are surely samples there may be small ones without a sample") {
  const Range range = interval95(of_samples(3, 100 * estimate_interval));
  CHECK(range.low == doctest::Approx(300 * estimate_interval));
  CHECK(range.high > 302 * estimate_interval);
  CHECK(range.high < 304 * estimate_interval);
}

TEST_CASE("an interval holds in at least 94 of 100 samples") {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> chance;
  for (const std::vector<std::uint64_t>& sizes :
       std::vector<std::vector<std::uint64_t>>{std::vector<std::uint64_t>(2000, 100),
                                               std::vector<std::uint64_t>(300, 4000),
                                               {100'000, 200'000, 700'000},
                                               {9'000'000, 1000, 1000, 1000, 30'000, 30'000}}) {
    double truth = 0, mean = 0;
    for (const std::uint64_t size : sizes) truth += static_cast<double>(size);
    constexpr int runs = 1000;
    int held = 0, blocks_held = 0;
    for (int run = 0; run < runs; ++run) {
      Estimate sum{.interval = 65536};
      for (const std::uint64_t size : sizes) {
        if (chance(random) < 1 / weight_of(size, 65536).blocks) sum.add(weight_of(size, 65536));
      }
      mean += sum.bytes / runs;
      held += interval95(sum).has(truth);
      blocks_held += blocks_interval95(sum).has(static_cast<double>(sizes.size()));
    }
    CHECK(held >= 940);
    if (sizes.size() == 300) CHECK(blocks_held >= 940);
    CHECK(mean == doctest::Approx(truth).epsilon(0.05));
  }
}

TEST_CASE("an estimate as text") {
  CHECK(estimate_text(of_samples(25, 1)) == "12.5 MiB (8.09 to 18.5)");
  CHECK(estimate_text(of_samples(2, 1)) == "1.00 MiB (115 KiB to 3.61 MiB)");
  CHECK(estimate_text(nothing_seen) == "0 B (below 1.50 MiB)");
  CHECK(blocks_text(of_samples(25, 64)) == "205,000 (133,000 to 302,000)");
  CHECK(blocks_text({}) == "0");
  CHECK(blocks_text(of_samples(3, 100 * estimate_interval)) == "3 (3 to 3)");
}

TEST_CASE("an estimate in JSON") {
  CHECK(output::json_text(Estimate{.interval = 1000}).find("\"blocks_high\": null") != std::string::npos);
  const std::string some = output::json_text(of_samples(1, 16 << 20));
  CHECK(some.find("\"bytes\": 16777216") != std::string::npos);
  CHECK(some.find("\"blocks_high\": 1") != std::string::npos);
}

TEST_CASE("a change of estimates") {
  const Range more = change95(of_samples(100, 1), of_samples(200, 1));
  CHECK(more.low > 60.0 * estimate_interval);
  CHECK(more.high < 140.0 * estimate_interval);
  CHECK(change95(of_samples(4, 1), of_samples(7, 1)).has(0));
  CHECK(change95(of_samples(4, 1), of_samples(40, 1)).low > 0);
  CHECK(change95(of_samples(100, 1), of_samples(120, 1), true).has(0));
  CHECK(change95({}, {}).high == 0);
}

}  // namespace
}  // namespace cmt::analysis
