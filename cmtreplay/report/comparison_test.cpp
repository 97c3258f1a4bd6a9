// Tests the verdicts: certain, not certain, or too few runs.
#include "cmtreplay/report/comparison.h"

#include <doctest/doctest.h>

using namespace cmt::replay;

namespace {

AllocatorResult result_of(const std::string& name, const std::vector<std::uint64_t>& walls,
                          const std::vector<std::uint64_t>& peaks) {
  AllocatorResult result{.allocator = {.name = name}};
  for (const std::uint64_t wall : walls) result.timed.push_back({.wall_ns = wall});
  for (const std::uint64_t peak : peaks) result.memory_runs.push_back({.peak = peak});
  if (!peaks.empty()) result.memory = MemoryRun{.peak_at_marks_bytes = peaks[peaks.size() / 2]};
  return result;
}

/// Makes `count` times around `middle`. Some rounds are slower, and they are the same rounds in each call.
std::vector<std::uint64_t> times(std::uint64_t middle, std::size_t count = 12) {
  std::vector<std::uint64_t> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(middle * (100 + i * 7 % 30) / 100);
  return all;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("comparison: rounds are compared, so noise that all share hides nothing") {
  const auto pairs = compare_times({result_of("a", times(1000), {}), result_of("b", times(1100), {})});
  REQUIRE(pairs.size() == 1);
  CHECK(pairs[0].less == "a");
  CHECK(pairs[0].is_certain);
  CHECK(verdict_lines(pairs, "time: ", "faster") == Lines{"time: a is 9.1 % (9.1 to 9.1) faster than b"});
}

TEST_CASE("comparison: every pair, and those that differ by chance cannot be told apart") {
  auto mixed = times(1000);
  for (std::size_t i = 0; i < mixed.size(); ++i) mixed[i] = mixed[i] * (i % 2 == 0 ? 102 : 99) / 100;
  const auto pairs =
      compare_times({result_of("slow", times(2000), {}), result_of("a", times(1000), {}), result_of("b", mixed, {})});
  REQUIRE(pairs.size() == 3);
  const Lines lines = verdict_lines(pairs, "time: ", "faster");
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == "time: a is 50 % (50 to 50) faster than slow");
  CHECK(lines[1].starts_with("time: b is "));
  CHECK(lines[2].starts_with("time: a and b cannot be told apart ("));
}

TEST_CASE("comparison: few runs give no verdict, and those that refused calls or died none either") {
  auto refusing = result_of("refuses", times(10), {});
  refusing.timed[0].refused_calls = 1;
  auto dead = result_of("dead", times(10), {});
  dead.death = Death{};
  const auto pairs =
      compare_times({result_of("a", times(10, 5), {}), result_of("b", times(99, 5), {}), refusing, dead});
  REQUIRE(pairs.size() == 1);
  CHECK(verdict_lines(pairs, "time: ", "faster") == Lines{"time: a and b: too few runs for a verdict"});
  CHECK(compare_times({}).empty());
}

TEST_CASE("comparison: peaks differ where their ranges do not meet") {
  const std::uint64_t mib = 1 << 20;
  const auto pairs = compare_peaks({result_of("a", {1}, {100 * mib, 102 * mib, 101 * mib}),
                                    result_of("b", {1}, {200 * mib, 202 * mib, 204 * mib}),
                                    result_of("c", {1}, {201 * mib, 203 * mib, 202 * mib})});
  CHECK(verdict_lines(pairs, "peak: ", "lower") ==
        Lines{"peak: a is 50 % (47 to 52) lower than b, 50 % (48 to 52) than c",
              "peak: b and c cannot be told apart (-4.6 to 4.4 %)"});
}

TEST_CASE("comparison: peaks that differ by no more than a replay from its program cannot be told apart") {
  const std::uint64_t kib = 1024;
  const auto is_certain = [](std::uint64_t less, std::uint64_t more) {
    return compare_peaks({result_of("a", {1}, {less, less}), result_of("b", {1}, {more, more})})[0].is_certain;
  };
  CHECK_FALSE(is_certain(97'900 * kib, 100'000 * kib));
  CHECK(is_certain(96'000 * kib, 100'000 * kib));
  CHECK_FALSE(is_certain(440 * kib, 510 * kib));
  CHECK(is_certain(440 * kib, 710 * kib));
  CHECK_FALSE(is_certain(10 * kib, 60 * kib));
}
