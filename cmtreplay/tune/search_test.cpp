// A made-up allocator, whose settings change time and peak by known factors, takes the place of replays.
#include "cmtreplay/tune/search.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>

#include "cmtreplay/tune/tune_report.h"

using namespace cmt::replay;

namespace {

using Factors = std::pair<double, double>;  // of time and peak

Ratio exact(double ratio) { return {.ratio = ratio, .low = ratio, .high = ratio, .interval = interval_of_95}; }

struct MadeUp : Meter {
  std::map<std::string, Factors> factors = {};   ///< by the title of a candidate with one setting
  std::map<std::string, Factors> together = {};  ///< by the title of one with several, whose factors do not multiply
  std::map<std::string, Factors> plain = {{"libc", {1, 1}}};
  std::size_t pays_for = 1000;
  std::size_t runs_done = 0;
  double deviation = 0;  ///< of one round's ratio of times
  mutable std::mt19937 random{1};

  Measured measured(const Candidate& candidate, unsigned runs) const {
    auto [time, peak] = plain.at(candidate.allocator);
    for (const Choice& choice : candidate.choices) {
      const auto found = factors.find(Candidate{candidate.allocator, {choice}}.title());
      if (found == factors.end()) continue;
      time *= found->second.first;
      peak *= found->second.second;
    }
    if (const auto found = together.find(candidate.title()); found != together.end())
      std::tie(time, peak) = found->second;
    if (deviation != 0) time *= std::exp(std::normal_distribution(0.0, deviation / std::sqrt(runs))(random));
    return {.candidate = candidate,
            .runs = runs,
            .time = exact(time),
            .peak = exact(peak),
            .mean = exact(peak),
            .time_deviation = deviation};
  }

  std::vector<Measured> measure(const std::string&, const std::vector<Candidate>& candidates, unsigned runs,
                                double share) override {
    std::vector<Measured> all;
    for (const Candidate& candidate : candidates) {
      if (share < 1 && all.size() == pays_for) break;
      all.push_back(measured(candidate, runs));
      runs_done += runs;
    }
    return all;
  }
  std::size_t affordable(unsigned, double) override { return pays_for; }
  std::vector<Candidate> singles_of(const Candidate& allocator) override {
    return single_choices(allocator.allocator, allocator.allocator);
  }
};

std::vector<Measured> finalists(const SearchResult& result) {
  return {result.all.end() - static_cast<std::ptrdiff_t>(result.finalists), result.all.end()};
}

const std::vector<Aim> all_aims{Aim::memory, Aim::time, Aim::both};

}  // namespace

TEST_CASE("search: it finds the pair of settings that is best together, with a tenth of the runs of a grid") {
  MadeUp meter;
  meter.factors = {{"libc arena_max=1", {1.01, 0.9}},
                   {"libc tcache_count=0", {1.3, 0.95}},
                   {"libc top_pad=0", {1.005, 0.92}},
                   {"libc mxfast=160", {0.9, 1.0}}};
  const SearchResult result = search({{.allocator = "libc"}}, all_aims, meter);
  CHECK(recommend(Aim::memory, finalists(result)).peak.ratio == doctest::Approx(0.9 * 0.92));
  CHECK(recommend(Aim::time, finalists(result)).title == "libc mxfast=160");
  const Recommendation both = recommend(Aim::both, finalists(result));
  CHECK(both.title == "libc arena_max=1 top_pad=0 mxfast=160");
  CHECK(both.is_certain);
  CHECK(meter.runs_done < 4 * 5 * 5 * 5 * 4 * 3 * 3 * 12 / 10);
}

TEST_CASE("search: a setting that the aim does not allow keeps none out of the last stage that it allows") {
  MadeUp meter;
  for (const char* const size : {"1", "2"}) meter.factors["libc hugetlb=" + std::string(size)] = {0.1, 1.3};
  meter.factors["libc top_pad=16777216"] = {0.3, 1.2};
  meter.factors["libc mxfast=160"] = {0.9, 1};
  const SearchResult result = search({{.allocator = "libc"}}, all_aims, meter);
  CHECK(recommend(Aim::time, finalists(result)).title == "libc mxfast=160");
  CHECK(recommend(Aim::both, finalists(result)).title == "libc mxfast=160");
}

TEST_CASE("search: settings that are hardly beyond the limit keep none out of the last stage either") {
  MadeUp meter;
  for (const char* const title :
       {"arena_max=1", "arena_max=2", "arena_max=4", "tcache_max=64", "tcache_count=2", "mxfast=0"})
    meter.factors["libc " + std::string(title)] = {0.5, 1.058};
  meter.factors["libc mxfast=160"] = {0.9, 1};
  CHECK(recommend(Aim::time, finalists(search({{.allocator = "libc"}}, {Aim::time}, meter))).title ==
        "libc mxfast=160");
  CHECK(recommend(Aim::time, finalists(search({{.allocator = "libc"}}, all_aims, meter))).title == "libc mxfast=160");
  for (auto& [title, factors] : meter.factors) factors = {1.08, 0.85};
  meter.factors["libc mxfast=160"] = {1, 0.95};
  const SearchResult result = search({{.allocator = "libc"}}, {Aim::memory}, meter);
  CHECK(recommend(Aim::memory, finalists(result)).title == "libc mxfast=160");
}

TEST_CASE("search: a pair that makes up for a price is tried only if it may be allowed, and for the aims asked for") {
  const auto measured = [](const Candidate& candidate, double time, double peak) {
    return Measured{.candidate = candidate, .runs = 2, .time = exact(time), .peak = exact(peak), .mean = exact(peak)};
  };
  const auto setting = [](const std::string& title) {
    const std::vector<Candidate> all = single_choices("libc", "libc");
    return *std::find_if(all.begin(), all.end(), [&](const Candidate& each) { return each.title() == title; });
  };
  const Candidate plain{.allocator = "libc"}, fast = setting("libc top_pad=16777216"),
                                              small = setting("libc arena_max=1");
  const auto pairs = [&](double peak_of_plain, Aim aim) {
    return combinations({measured(plain, 1, peak_of_plain)},
                        {measured(fast, 0.5, 1.06 * peak_of_plain), measured(small, 2.5, 0.9 * peak_of_plain)}, {aim})
        .size();
  };
  CHECK(pairs(1, Aim::time) == 1);
  CHECK(pairs(1, Aim::memory) == 0);  // too slow also together
  CHECK(pairs(1.5, Aim::time) == 0);
}

TEST_CASE("search: two settings that are allowed only together are tried together") {
  MadeUp meter;
  const std::string large = "libc mmap_threshold=33554432 trim_threshold=67108864";
  meter.factors = {{large, {0.5, 1.06}}, {"libc top_pad=0", {2, 0.9}}};
  meter.together = {{large + " top_pad=0", {0.5, 1.02}}};
  const SearchResult result = search({{.allocator = "libc"}}, all_aims, meter);
  CHECK(recommend(Aim::time, finalists(result)).title == large + " top_pad=0");
  CHECK(recommend(Aim::both, finalists(result)).title == large + " top_pad=0");
}

TEST_CASE("search: where times vary, settings have more runs, as far as the budget pays for them") {
  MadeUp quiet;
  quiet.factors = {{"libc tcache_count=32", {0.88, 1}}, {"libc mxfast=0", {0.94, 1}}};
  CHECK(finalists(search({{.allocator = "libc"}}, all_aims, quiet)).front().runs == 12);
  const auto noisy = [&](unsigned seed) {
    MadeUp meter = quiet;
    meter.deviation = 0.24;
    meter.random.seed(seed);
    return meter;
  };
  int found = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    MadeUp meter = noisy(seed);
    const std::vector<Measured> last = finalists(search({{.allocator = "libc"}}, {Aim::time}, meter));
    const std::string title = recommend(Aim::time, last).title.value_or("");
    found += title.find("tcache_count=32") != std::string::npos;
    CHECK(last.front().runs == 96);
  }
  CHECK(found >= 95);
  MadeUp poor = noisy(1);
  poor.pays_for = 2;
  CHECK(finalists(search({{.allocator = "libc"}}, {Aim::time}, poor)).front().runs == 12);
}

TEST_CASE("search: the deviation of times is that of most candidates") {
  const auto measured = [](unsigned runs, double deviation) {
    return Measured{.runs = runs, .time = exact(1), .peak = exact(1), .time_deviation = deviation};
  };
  CHECK(time_deviation({}) == 0);
  CHECK(time_deviation({measured(1, Ratio::none)}) == 0);
  CHECK(time_deviation({measured(12, 0.1), measured(12, 0.1), measured(12, 7)}) == doctest::Approx(0.1).epsilon(0.05));
  std::mt19937 random(1);
  std::normal_distribution<double> normal(0, 0.2);
  std::vector<Measured> pairs;
  for (int i = 0; i < 2000; ++i)
    pairs.push_back(measured(2, log_deviation({{.pairs = {std::exp(normal(random)), std::exp(normal(random))}}})));
  CHECK(time_deviation(pairs) == doctest::Approx(0.2).epsilon(0.05));
}

TEST_CASE("search: where nothing helps, the default is best for every aim") {
  MadeUp meter;
  meter.plain = {{"libc", {1, 1}}, {"jemalloc", {1.2, 1.1}}};
  meter.factors = {{"libc arena_max=1", {1, 0.99}}};  // less than a replay's accuracy
  const SearchResult result = search({{.allocator = "libc"}, {.allocator = "jemalloc"}}, all_aims, meter);
  for (const Aim aim : all_aims) CHECK(recommend(aim, finalists(result)).is_default);
}

TEST_CASE("search: a budget for three candidates still ends with a last stage, and has tried some of each allocator") {
  MadeUp meter;
  meter.plain = {{"libc", {1, 1}}, {"jemalloc", {0.8, 1.2}}};
  meter.factors = {{"libc arena_max=1", {1, 0.5}}};
  meter.pays_for = 2;
  const SearchResult result = search({{.allocator = "libc"}, {.allocator = "jemalloc"}}, all_aims, meter);
  CHECK(result.finalists == 3);
  CHECK(result.all.size() == 4);
  CHECK(result.asked > 30);
  CHECK(recommend(Aim::memory, finalists(result)).title == "libc arena_max=1");
  CHECK(finalists(result).front().runs == 12);
}

TEST_CASE("search: a candidate that crashed is neither combined nor recommended") {
  Measured crashed{.candidate = single_choices("libc", "libc")[0], .runs = 12, .time = exact(0.1), .peak = exact(0.1)};
  crashed.state = "died";
  CHECK(best_of({crashed}, all_aims, 3).empty());
  CHECK(recommend(Aim::memory, {crashed}).is_default);
}

TEST_CASE("recommendation: it is not certain where an interval reaches beyond what the aim allows") {
  Measured each{.candidate = single_choices("libc", "libc")[0], .runs = 12, .time = exact(1.0), .peak = exact(0.9)};
  CHECK(recommend(Aim::memory, {each}).is_certain);
  each.time.high = 1.03;
  CHECK_FALSE(recommend(Aim::memory, {each}).is_certain);
  each.time.ratio = 1.021;
  CHECK(recommend(Aim::memory, {each}).is_default);
  CHECK(recommend(Aim::time, {each}).is_default);  // the interval of time contains 1
}

TEST_CASE("recommendation: of several with the least peak it is the fastest one") {
  const std::vector<Candidate> candidates = single_choices("libc", "libc");
  std::vector<Measured> all;
  for (const double time : {0.8, 0.7, 0.9})
    all.push_back(
        {.candidate = candidates[all.size()], .runs = 12, .time = exact(time), .peak = exact(0.9), .mean = exact(0.9)});
  CHECK(recommend(Aim::memory, all).title == candidates[1].title());
}

TEST_CASE("tune report: a row is best unless another one of as many runs is at least as good in all three figures") {
  const auto row = [](double time, double peak, std::uint64_t runs) {
    return TunedRow{.runs = runs, .time = exact(time), .peak = exact(peak), .mean = exact(peak)};
  };
  std::vector<TunedRow> rows{row(1, 0.9, 12), row(1.1, 0.8, 12), row(1.2, 0.85, 12), row(0.5, 0.5, 2)};
  mark_best(rows);
  CHECK(rows[0].is_best);
  CHECK(rows[1].is_best);
  CHECK_FALSE(rows[2].is_best);
  CHECK_FALSE(rows[3].is_best);
}

TEST_CASE("recommendation: one that the program's own runs do not confirm is taken back") {
  Measured each{.candidate = single_choices("libc", "libc")[0], .runs = 12, .time = exact(1.0), .peak = exact(0.9)};
  Recommendation advice = recommend(Aim::memory, {each});
  ProgramRow row{.wall = exact(1.0), .peak = exact(0.95)};
  confirm(Aim::memory, advice, row);
  CHECK_FALSE(advice.is_default);
  row.peak = exact(1.01);
  confirm(Aim::memory, advice, row);
  CHECK(advice.is_default);
  CHECK(advice.refuted == "libc arena_max=1");
}
