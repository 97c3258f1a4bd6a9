// The bounds are those of the definition, on random uses and on small examples.
#include "cmtwatch/working_set/reuse_distance.h"

#include <doctest/doctest.h>

#include <random>
#include <set>

using namespace cmt::watch;

namespace {

using Histogram = ReuseDistance::Histogram;
using Pages = std::set<std::uint64_t>;

std::vector<PageRun> runs_of(const Pages& pages) {
  std::vector<PageRun> runs;
  for (const std::uint64_t page : pages) {
    if (!runs.empty() && runs.back().first + runs.back().count == page)
      ++runs.back().count;
    else
      runs.push_back({page, 1});
  }
  return runs;
}

ReuseDistance of(const std::vector<Pages>& intervals) {
  ReuseDistance reuse;
  for (const Pages& pages : intervals) reuse.add(runs_of(pages));
  return reuse;
}

/// The bounds by their definition.
void add_by_definition(const std::vector<Pages>& intervals, Histogram& lower, Histogram& upper) {
  for (std::size_t now = 0; now < intervals.size(); ++now) {
    for (const std::uint64_t page : intervals[now]) {
      std::size_t last = now;
      while (last > 0 && !intervals[last - 1].contains(page)) --last;
      if (last == 0) continue;
      Pages between, all;
      for (std::size_t i = last; i < now; ++i) between.insert(intervals[i].begin(), intervals[i].end());
      for (std::size_t i = last - 1; i <= now; ++i) all.insert(intervals[i].begin(), intervals[i].end());
      ++lower[between.size() + 1];
      ++upper[all.size()];
    }
  }
}

}  // namespace

TEST_CASE("reuse distance: what was used between two uses counts surely, what was used beside them perhaps") {
  const ReuseDistance reuse = of({{1}, {2, 3}, {1, 4}});
  CHECK(reuse.lower() == Histogram{{3, 1}});
  CHECK(reuse.upper() == Histogram{{4, 1}});
  CHECK(reuse.uses() == 5);
  CHECK(reuse.first_uses() == 4);
}

TEST_CASE("reuse distance: a page that is used all the time is at least 1 away, and at most all that is used with it") {
  const ReuseDistance reuse = of({{1, 2}, {1, 2}, {1, 3}});
  CHECK(reuse.lower() == Histogram{{1, 3}});
  CHECK(reuse.upper() == Histogram{{2, 2}, {3, 1}});
}

TEST_CASE("reuse distance: the bounds are those of the definition") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Pages> intervals(1 + random() % 12);
    for (Pages& pages : intervals) {
      for (unsigned i = random() % 15; i > 0; --i) pages.insert(random() % 30);
    }
    Histogram lower, upper;
    add_by_definition(intervals, lower, upper);
    const ReuseDistance reuse = of(intervals);
    REQUIRE(reuse.lower() == lower);
    REQUIRE(reuse.upper() == upper);
  }
}

TEST_CASE("reuse distance: long ones are rounded outwards") {
  Pages many;
  for (std::uint64_t page = 1000; page < 1000 + 1001; ++page) many.insert(page);
  const ReuseDistance reuse = of({{1}, many, {1}});
  CHECK(reuse.lower() == Histogram{{1000, 1}});
  CHECK(reuse.upper() == Histogram{{1008, 1}});
}

TEST_CASE("reuse distance: a share of the uses has a distance unless too many are first ones") {
  const Histogram histogram{{1, 5}, {10, 3}};
  CHECK(distance_of_share(histogram, 10, 0.5) == 1);
  CHECK(distance_of_share(histogram, 10, 0.51) == 10);
  CHECK(distance_of_share(histogram, 10, 0.8) == 10);
  CHECK_FALSE(distance_of_share(histogram, 10, 0.9));
  CHECK_FALSE(distance_of_share({}, 0, 0.5));
}
