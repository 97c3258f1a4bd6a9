// Tests how looks at threads become stretches: threads that end between two looks, and which stretches join.
#include "preload/collector/run_times.h"

#include <doctest/doctest.h>

using namespace cmt;
using namespace cmt::collector;

namespace {

constexpr std::uint64_t ms = 1'000'000;

RunStretch running(std::uint64_t ns) { return {.elapsed_ns = ns, .ran_ns = ns, .busy_ns = ns}; }
RunStretch starved(std::uint64_t ns) {
  return {.elapsed_ns = ns, .ran_ns = ns / 4, .waited_ns = ns - ns / 4, .busy_ns = ns};
}

}  // namespace

TEST_CASE("run times: the first look is where counting begins, and new threads count from their start") {
  ThreadSums sums;
  CHECK(sums.look(5, {{7, {100, 200}}}, 100, 0) == RunStretch{.elapsed_ns = 5});
  const RunStretch next = sums.look(20 * ms, {{7, {103, 204}}, {8, {10, 20}}}, 113, 0);
  CHECK(next == RunStretch{.elapsed_ns = 20 * ms, .ran_ns = 13, .waited_ns = 24, .busy_ns = 30});
}

TEST_CASE("run times: what a thread waited counts once, whether it was seen before its end, in between, or never") {
  ThreadSums sums;
  sums.look(ms, {{1, {}}}, 0, 0);
  std::uint64_t waited = 0;
  const auto look = [&](const ThreadSums::Threads& threads, std::uint64_t ran_ns, std::uint64_t ended_wait_ns) {
    const RunStretch stretch = sums.look(ms, threads, ran_ns, ended_wait_ns);
    waited += stretch.waited_ns;
    return stretch;
  };
  CHECK(look({{1, {}}, {2, {10, 100}}}, 10, 0).waited_ns == 100);
  CHECK(look({{1, {}}}, 15, 130) == RunStretch{.elapsed_ns = ms, .ran_ns = 5, .waited_ns = 30, .busy_ns = 35});
  look({{1, {}}, {3, {5, 50}}}, 20, 130);
  look({{1, {}}, {3, {5, 60}}}, 20, 190);  // has reported its end, and is still there
  look({{1, {}}}, 20, 190);
  look({{1, {}}}, 22, 197);  // a thread that no look has seen
  CHECK(waited == 130 + 60 + 60 + 7);
  CHECK(look({{1, {}}}, 22, 197).waited_ns == 0);
}

TEST_CASE("run times: stretches join if nothing waits, or if one is short") {
  StretchTable table;
  table.add({.elapsed_ns = 2 * ms});
  table.add(starved(20 * ms));
  REQUIRE(table.stretches().size() == 1);  // the first one was short
  for (int i = 0; i < 10; ++i) table.add(running(20 * ms));
  table.add({.elapsed_ns = 900 * ms});
  table.add(starved(20 * ms));
  table.add(starved(20 * ms));
  REQUIRE(table.stretches().size() == 4);
  CHECK(table.stretches()[1] == RunStretch{.elapsed_ns = 1100 * ms, .ran_ns = 200 * ms, .busy_ns = 200 * ms});
}

TEST_CASE("run times: a wait that is known at its end is a part of the stretches before") {
  StretchTable table;
  table.add(starved(20 * ms));
  for (int i = 0; i < 50; ++i) table.add({.elapsed_ns = 20 * ms});  // a sleep, and from its middle on a wait
  table.add({.elapsed_ns = 20 * ms, .ran_ns = 5 * ms, .waited_ns = 515 * ms, .busy_ns = 520 * ms});
  REQUIRE(table.stretches().size() == 3);
  CHECK(table.stretches()[1] == RunStretch{.elapsed_ns = 500 * ms});
  CHECK(table.stretches()[2] ==
        RunStretch{.elapsed_ns = 520 * ms, .ran_ns = 5 * ms, .waited_ns = 515 * ms, .busy_ns = 520 * ms});
  table.add({.elapsed_ns = 20 * ms, .held_ns = 100 * ms}, 100 * ms);  // another thread had run: joins
  REQUIRE(table.stretches().size() == 3);
  CHECK(table.stretches()[2].elapsed_ns == 540 * ms);
  CHECK(table.stretches()[2].held_ns == 100 * ms);
}

TEST_CASE("run times: a long recording has a bounded number of stretches, and loses no time") {
  StretchTable table;
  for (std::size_t i = 0; i < 5 * StretchTable::count_max; ++i) table.add(starved(20 * ms));
  CHECK(table.stretches().size() <= StretchTable::count_max);
  RunStretch sum;
  for (const RunStretch& stretch : table.stretches()) sum += stretch;
  CHECK(sum.elapsed_ns == 5 * StretchTable::count_max * 20 * ms);
  CHECK(sum.waited_ns == sum.elapsed_ns / 4 * 3);
}
