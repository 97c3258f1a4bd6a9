// Decisions of a search that are kept beside its cells.
#include "cmtreplay/tune/decisions.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <utility>

using namespace cmt::replay;

namespace {

SearchDecisions made(std::uint64_t budget_ms, SearchEnd end) {
  SearchDecisions decisions{.budget_ms = budget_ms, .units = 100.5, .run_seconds = 1.0 / 3, .end = end};
  decisions.note({.question = "allocators: 2 runs of 1", .answer = 1});
  decisions.note({.question = "one setting: 2 runs of 60", .answer = 40, .is_cut = true});
  decisions.note({.question = "4 runs by 0.55", .answer = SIZE_MAX});
  return decisions;
}

/// Cells of a made-up allocator, whose times vary. The budget pays for so many runs in each stage.
struct StoredMeter : Meter {
  explicit StoredMeter(std::size_t count) : pays_for(count) {}

  std::size_t pays_for;
  std::size_t new_cells = 0;
  std::set<std::pair<std::string, unsigned>> cells = {};

  std::vector<Measured> measure(const std::string&, const std::vector<Candidate>& candidates, unsigned runs,
                                double share) override {
    std::vector<Measured> all;
    for (const Candidate& candidate : candidates) {
      const bool is_missing = cells.count({candidate.name(), runs}) == 0;
      if (is_missing && share < 1 && all.size() >= affordable(runs, share)) break;
      cells.insert({candidate.name(), runs});
      new_cells += is_missing;
      const double time = candidate.choices.empty() ? 1 : 0.9 + 0.01 * static_cast<double>(all.size() % 9);
      const Ratio ratio{.ratio = time, .low = time, .high = time, .interval = interval_of_95};
      all.push_back({.candidate = candidate, .runs = runs, .time = ratio, .peak = ratio, .time_deviation = 0.2});
    }
    return all;
  }
  std::size_t affordable(unsigned runs, double) override { return pays_for / runs; }
  std::vector<Candidate> singles_of(const Candidate& plain) override {
    return single_choices(plain.allocator, plain.allocator);
  }
};

std::vector<std::string> titles(const SearchResult& result) {
  std::vector<std::string> all;
  for (const Measured& each : result.all) all.push_back(each.candidate.title() + " " + std::to_string(each.runs));
  return all;
}

}  // namespace

TEST_CASE("tune decisions: they are read as they were written") {
  const SearchDecisions decisions = made(20'000, SearchEnd::early);
  CHECK(parse_decisions(decisions_text(decisions)) == decisions);
  CHECK_FALSE(parse_decisions(""));
  CHECK_FALSE(parse_decisions("cmt.tune_decisions/2\n.\n"));
  const std::string text = decisions_text(decisions);
  for (std::size_t length = 0; length < text.size(); ++length) {
    if (length + 1 == text.size()) continue;  // only the last end of line is missing
    CHECK_FALSE(parse_decisions(text.substr(0, length)));
  }
}

TEST_CASE("tune decisions: an answer stays, whatever the clock would say later") {
  SearchDecisions decisions;
  decisions.note({.question = "4 runs by 0.55", .answer = 9});
  decisions.note({.question = "4 runs by 0.55", .answer = 8});
  REQUIRE(decisions.find("4 runs by 0.55"));
  CHECK(decisions.find("4 runs by 0.55")->answer == 9);
  CHECK_FALSE(decisions.find("4 runs by 0.75"));
}

TEST_CASE("tune decisions: a search that ended whole is followed to its end, also where a stage was cut") {
  const SearchDecisions whole = made(20'000, SearchEnd::whole);
  CHECK(decisions_for({made(10'000, SearchEnd::whole), whole}, 20'000) == whole);
}

TEST_CASE("tune decisions: a search that was interrupted goes on after all of its decisions") {
  CHECK(decisions_for({made(20'000, SearchEnd::open)}, 20'000).all.size() == 3);
}

TEST_CASE("tune decisions: a search that the budget ended goes on with the first stage that was cut") {
  const SearchDecisions begin = decisions_for({made(20'000, SearchEnd::early)}, 20'000);
  CHECK(begin.end == SearchEnd::open);
  REQUIRE(begin.all.size() == 1);
  CHECK(begin.all[0].question == "allocators: 2 runs of 1");
}

TEST_CASE("tune decisions: a smaller budget shows what the least larger one has paid for, if that search ended") {
  const std::vector<SearchDecisions> kept{made(60'000, SearchEnd::whole), made(30'000, SearchEnd::open),
                                          made(40'000, SearchEnd::whole)};
  const SearchDecisions begin = decisions_for(kept, 20'000);
  CHECK(begin.budget_ms == 20'000);
  CHECK(begin.end == SearchEnd::whole);
  CHECK(begin.all == kept[2].all);
}

TEST_CASE("tune decisions: a larger budget decides anew, and knows the price of work") {
  const SearchDecisions begin = decisions_for({made(20'000, SearchEnd::whole)}, 60'000);
  CHECK(begin.end == SearchEnd::open);
  CHECK(begin.all.empty());
  CHECK(begin.units == 100.5);
  CHECK(decisions_for({}, 60'000) == SearchDecisions{.budget_ms = 60'000});
}

TEST_CASE("tune decisions: a repeat of a search whose runs the budget has limited finds all of its cells") {
  StoredMeter meter(300);
  SearchDecisions decisions;
  DecidedMeter decided(meter, decisions, [] {});
  const std::vector<Aim> aims{Aim::time};
  const SearchResult first = search({{.allocator = "libc"}}, aims, decided);
  CHECK(first.all.size() == first.asked);
  meter.new_cells = 0;
  meter.pays_for = SIZE_MAX;  // nothing has to be run
  CHECK(titles(search({{.allocator = "libc"}}, aims, decided)) == titles(first));
  CHECK(meter.new_cells == 0);
  search({{.allocator = "libc"}}, aims, meter);
  CHECK(meter.new_cells > 0);  // without the decisions
}

TEST_CASE("tune decisions: a search that was ended early goes on with each repeat, until it is whole") {
  StoredMeter meter(30);
  SearchDecisions kept{.end = SearchEnd::open};
  SearchResult result;
  int searches = 0;
  for (; kept.end != SearchEnd::whole && searches < 20; ++searches) {
    SearchDecisions decisions = decisions_for({kept}, 0);
    DecidedMeter decided(meter, decisions, [] {});
    result = search({{.allocator = "libc"}}, {Aim::time}, decided);
    decisions.end = result.all.size() >= result.asked ? SearchEnd::whole : SearchEnd::early;
    kept = decisions;
    meter.pays_for += 30;  // its cells are there
  }
  CHECK(searches > 1);
  CHECK(kept.end == SearchEnd::whole);
  CHECK(result.all.size() == result.asked);
}
