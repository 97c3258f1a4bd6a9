// Checks on simulated pairs of runs that random calls are marked as chance, and that true changes are not.
#include "analysis/differences/chance.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "analysis/differences/difference.h"

namespace cmt::analysis {
namespace {

/// Two runs of functions that are called at random; sizes are those of the function, in groups of so many blocks.
class TwoRuns {
 public:
  explicit TwoRuns(std::uint64_t seed) : random_(seed) {}

  void add_function(const std::string& name, double calls, double size, int group = 1) {
    Uses::Entry before = run(calls, size, group), after = run(calls, size, group);
    before.name = after.name = name;
    before_.entries.push_back(before);
    after_.entries.push_back(after);
  }
  Uses::Entry& last_after() { return after_.entries.back(); }

  Difference difference(Metric metric) const {
    return find_difference({}, merge_sets(before_, after_), {.by = By::thread, .metric = metric});
  }

 private:
  Uses::Entry run(double calls, double size, int group) {
    Uses::Entry entry{};
    for (int call = std::poisson_distribution<int>(calls)(random_); call > 0; --call) {
      const auto bytes = static_cast<std::uint64_t>(size * std::exponential_distribution<double>(1)(random_));
      for (int i = 0; i < group; ++i) {
        entry.use.allocated.add_block(bytes);
        entry.squared_bytes += static_cast<double>(bytes) * static_cast<double>(bytes);
      }
    }
    return entry;
  }

  std::mt19937_64 random_;
  Uses before_, after_;
};

void add_block(Uses::Entry& entry, std::uint64_t bytes) {
  entry.use.allocated.add_block(bytes);
  entry.squared_bytes += static_cast<double>(bytes) * static_cast<double>(bytes);
}

TEST_CASE("chance: what is added to each call comes before larger changes by chance") {
  int larger = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    TwoRuns runs(seed);
    for (int i = 0; i < 40; ++i) runs.add_function("f" + std::to_string(i), 500, i < 8 ? 100'000 : 300);
    runs.add_function("planted", 1000, 100);
    for (int call = 0; call < 1000; ++call) add_block(runs.last_after(), 500);
    const Difference found = runs.difference(Metric::bytes);
    REQUIRE(found.contributors.size() > 20);
    CHECK(found.contributors[0].name == "planted");
    CHECK(found.dispersion.value() > 0.3);
    CHECK(found.dispersion.value() < 2.5);
    CHECK(found.maybe_chance >= found.contributors.size() - 2);
    for (const ChangedContributor& each : found.contributors)
      larger += std::abs(each.change) > found.contributors[0].change;
    CHECK_FALSE(found.contributors[0].is_maybe_chance);
    CHECK(found.contributors[1].is_maybe_chance);
  }
  CHECK(larger > 20);
}

TEST_CASE("chance: many small blocks beside few large ones are a cause, though their bytes may be chance") {
  TwoRuns runs(5);
  for (int i = 0; i < 40; ++i) runs.add_function("f" + std::to_string(i), 500, 300);
  runs.add_function("planted", 400, 1'000'000);
  for (int call = 0; call < 400; ++call) add_block(runs.last_after(), 500);
  const Difference found = runs.difference(Metric::bytes);
  CHECK(found.contributors[0].name == "planted");
  CHECK_FALSE(found.contributors[0].is_maybe_chance);
}

TEST_CASE("chance: calls that come in groups have more of it") {
  TwoRuns runs(7);
  for (int i = 0; i < 200; ++i) runs.add_function("f" + std::to_string(i), 300, 1000, 6);
  for (const Metric metric : {Metric::bytes, Metric::blocks}) {
    const Difference found = runs.difference(metric);
    CHECK(found.dispersion.value() > 3.5);
    CHECK(found.dispersion.value() < 9);
    for (const ChangedContributor& each : found.contributors) CHECK(each.is_maybe_chance == (each.change != 0));
  }
}

TEST_CASE("chance: a program that does the same twice has none, and one change is a cause") {
  Uses none, same;
  for (int i = 0; i < 30; ++i) {
    none.entries.push_back({});
    none.entries.back().name = std::to_string(i);
    same.entries.push_back(none.entries.back());
    for (int block = 0; block < 100; ++block) add_block(same.entries.back(), 64);
  }
  const GroupOptions<DiffUse> options{.by = By::thread, .metric = Metric::bytes};
  Difference found = find_difference({}, merge_sets(none, same), options);
  CHECK_FALSE(found.dispersion.has_value());  // other work
  CHECK(found.maybe_chance == 0);
  Uses changed = same;
  add_block(changed.entries[4], 64);
  found = find_difference({}, merge_sets(same, changed), options);
  REQUIRE(found.contributors.size() == 1);
  CHECK(found.dispersion == 0);
  CHECK_FALSE(found.contributors[0].is_maybe_chance);
}

TEST_CASE("chance: nothing is told of few blocks, few contributors and figures of a moment") {
  CHECK(chance_sample({}, 0, Metric::bytes).has_value());
  for (const Metric metric : {Metric::peak, Metric::live, Metric::growth, Metric::untouched})
    CHECK_FALSE(chance_sample({}, 0, metric).has_value());
  const ChanceSample few{.change = 5, .variance = 19, .blocks = 19}, enough{.change = 5, .variance = 20, .blocks = 20};
  CHECK_FALSE(is_within_chance(few, 1));
  CHECK(is_within_chance(enough, 1));
  CHECK_FALSE(is_within_chance({.change = 18, .variance = 20, .blocks = 20}, 1));
  CHECK_FALSE(dispersion_of(std::vector(9, enough)).has_value());
  CHECK(dispersion_of(std::vector(10, enough)).value() == doctest::Approx(25 / 20.0 / 0.455));
  CHECK_FALSE(dispersion_of(std::vector(100, few)).has_value());
}

}  // namespace
}  // namespace cmt::analysis
