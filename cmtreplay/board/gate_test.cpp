// Tests how often the gate raises a false alarm, what it finds, and what it does not judge.
#include "cmtreplay/board/gate.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "cmtreplay/board/rank_tests.h"

using namespace cmt::replay;

namespace {

/// Runs with noise of some percent, of which the new build's are slower by a factor.
Cell noisy(std::mt19937& random, double factor, std::size_t rounds) {
  Cell cell{.outcome = "measured"};
  cell.trace = {.name = "t", .sha256 = "t"};
  cell.allocator.name = "new";
  cell.reference = {.name = "libc", .sha256 = "l"};
  std::normal_distribution<double> noise(1, 0.02);
  for (std::size_t i = 0; i < rounds; ++i) {
    cell.reference_runs.wall_ns.push_back(static_cast<std::uint64_t>(1e7 * noise(random)));
    cell.runs.wall_ns.push_back(static_cast<std::uint64_t>(1e7 * factor * noise(random)));
  }
  for (std::uint64_t i = 0; i < 10; ++i) {
    cell.reference_runs.memory.push_back({.peak = 1'000'000 + i});
    cell.runs.memory.push_back({.peak = static_cast<std::uint64_t>(1e6 * factor) + i});
  }
  return cell;
}

std::size_t alarms(double factor, int repetitions) {
  std::mt19937 random(7);
  std::size_t count = 0;
  for (int i = 0; i < repetitions; ++i) {
    const std::vector<Cell> cells{noisy(random, factor, 40), noisy(random, factor, 40)};
    for (const Judgement& judgement : judge_against(cells, {{"time", 0.03}})) {
      if (!judgement.is_worse) continue;
      ++count;
      break;
    }
  }
  return count;
}

}  // namespace

TEST_CASE("signed ranks: exact probabilities") {
  CHECK(signed_rank({1, 2, 3}).p == doctest::Approx(1.0 / 8));
  CHECK(signed_rank({-1, -2, -3}).p == doctest::Approx(1));
  CHECK(signed_rank({-1, 2, 3}).p == doctest::Approx(2.0 / 8));
  CHECK(signed_rank({}).p == 1);
  CHECK(signed_rank({0.01, 0.02, 0.03, 0.04}).middle == doctest::Approx(0.025));
}

TEST_CASE("rank sums: exact where all lie above all") {
  CHECK(rank_sum_p({4, 5, 6}, {1, 2, 3}) == doctest::Approx(1.0 / 20));
  CHECK(rank_sum_p({1, 2, 3}, {4, 5, 6}) > 0.9);
}

TEST_CASE("Holm's correction rejects the least first, and stops at the first that is too large") {
  CHECK(rejected({0.01, 0.04, 0.03}, 0.05) == std::vector<bool>{true, false, false});
  CHECK(rejected({0.01, 0.02, 0.03}, 0.05) == std::vector<bool>{true, true, true});
}

TEST_CASE("the gate finds what is slower by the share that is allowed, and hardly ever what is not") {
  CHECK(alarms(1.03, 40) >= 38);
  CHECK(alarms(1, 200) <= 2);
  CHECK(alarms(0.9, 20) == 0);
}

TEST_CASE("the gate: of one thread the processor's time is judged, whatever the wall's") {
  std::mt19937 random(5);
  Cell cell = noisy(random, 1.03, 40);
  cell.runs.cpu_ns = cell.runs.wall_ns;
  cell.reference_runs.cpu_ns = cell.reference_runs.wall_ns;
  for (std::size_t i = 0; i < 40; ++i) (i % 2 == 0 ? cell.runs : cell.reference_runs).wall_ns[i] *= 50;
  const auto is_worse = [&] { return judge_against({cell}, {{"time", 0.03}}).front().is_worse; };
  CHECK_FALSE(is_worse());
  cell.trace.threads = 1;
  CHECK(is_worse());
}

TEST_CASE("the gate: memory is worse where all runs lie above all, by the share at least") {
  std::mt19937 random(1);
  const auto worse = [&](double factor) {
    return judge_against({noisy(random, factor, 20)}, {{"peak", 0.02}}).front().is_worse;
  };
  CHECK(worse(1.03));
  CHECK_FALSE(worse(1.01));
  CHECK_FALSE(worse(1));
}

TEST_CASE("the gate: a crash of the new build is worse") {
  Cell cell{.outcome = "died", .reason = "at event 3 of 9: signal 11"};
  cell.trace.name = "t";
  cell.allocator.name = "new";
  cell.reference_runs.wall_ns = {5};
  const auto judgements = judge_against({cell}, {{"time", 0.03}});
  REQUIRE(judgements.size() == 1);
  CHECK(judgements[0].is_worse);
  CHECK(gate_text(judgements) == "worse: t: new: died at event 3 of 9: signal 11\n1 figure judged: 1 worse\n");
}

TEST_CASE("a baseline judges memory, and time on the same processor alone") {
  std::mt19937 random(3);
  Cell old = noisy(random, 1, 40), now = noisy(random, 1.2, 40);
  old.machine.cpu = now.machine.cpu = "one";
  std::vector<std::string> remarks;
  auto judgements = judge_baseline({now}, {old}, {{"time", 0.03}, {"peak", 0.02}}, remarks);
  REQUIRE(judgements.size() == 2);
  CHECK(judgements[0].is_worse);
  CHECK(judgements[1].is_worse);
  now.machine.cpu = "other";
  remarks.clear();
  judgements = judge_baseline({now}, {old}, {{"time", 0.03}, {"peak", 0.02}}, remarks);
  REQUIRE(judgements.size() == 2);
  CHECK_FALSE(judgements[0].is_judged);
  CHECK(judgements[0].text == "t: new: time: the baseline was measured on one, and now on other");
  CHECK(judgements[1].is_judged);
  CHECK(remarks.empty());
  const auto reason = [&](const std::vector<Cell>& baseline) {
    return gate_text(judge_baseline({now}, baseline, {{"time", 0.03}}, remarks));
  };
  const std::string end = "\n0 figures judged: none is worse with certainty; 1 could not be judged\n";
  CHECK(reason({}) == "not judged: t: new: the baseline does not have it" + end);
  old.reference.name = "./other.so";
  CHECK(reason({old}) == "not judged: t: new: the baseline's reference is ./other.so, and not libc" + end);
  old.mode.touch = "none";
  CHECK(reason({old}) ==
        "not judged: t: new: the baseline was replayed with other options (as --touch, --clock or --order)" + end);
  old.outcome = "died";
  old.reason = "early";
  CHECK(reason({old}) == "not judged: t: new: the baseline's died early" + end);
}

TEST_CASE("a baseline of one memory run is not certain") {
  std::mt19937 random(3);
  Cell old = noisy(random, 1, 2), now = noisy(random, 1.2, 2);
  old.runs.memory.resize(1);
  now.runs.memory.resize(1);
  std::vector<std::string> remarks;
  const auto judgements = judge_baseline({now}, {old}, {{"peak", 0.02}}, remarks);
  REQUIRE(judgements.size() == 1);
  CHECK(judgements[0].is_worse);
  CHECK_FALSE(judgements[0].is_certain);
  CHECK(judgements[0].text.ends_with(", not certain of 1 run and 1 of the baseline"));
}

TEST_CASE("the gate: a time of too few rounds is not judged") {
  std::mt19937 random(3);
  const auto judge = [&](std::size_t rounds) { return judge_against({noisy(random, 1.2, rounds)}, {{"time", 0.03}}); };
  CHECK(rounds_needed(1) == 8);
  CHECK(rounds_needed(figure_count(8, 1, {{"time", 0.03}, {"peak", 0.02}, {"fragmentation", 0.01}})) == 13);
  CHECK(gate_text(judge(7)) ==
        "not judged: t: new: time: 7 rounds, needs 8\n"
        "0 figures judged: none is worse with certainty; 1 could not be judged\n");
  CHECK(judge(8).front().is_worse);
}

TEST_CASE("the gate: what the old build has not done is not judged") {
  Cell cell{.outcome = "measured"};
  cell.trace.name = "a\tb";
  cell.allocator.name = "new";
  cell.runs.wall_ns = {5};
  cell.reference_fault = "died early";
  const auto judgements = judge_against({cell}, {{"time", 0.03}});
  CHECK(gate_lines(judgements) == std::vector<std::string>{"not judged: a b: new: the old build died early"});
  CHECK(gate_csv(judgements).find(",not judged,") != std::string::npos);
}
