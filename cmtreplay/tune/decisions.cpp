// Writes decisions as lines, such as "decided 9 4 runs by 0.55": 9 is the answer, and the question follows it.
#include "cmtreplay/tune/decisions.h"

#include <algorithm>
#include <array>
#include <sstream>

#include "toolkit/output/numbers.h"

namespace cmt::replay {
namespace {

constexpr std::array<std::string_view, 3> end_names{"open", "early", "whole"};

}  // namespace

const Decision* SearchDecisions::find(const std::string& question) const {
  const auto found =
      std::find_if(all.begin(), all.end(), [&question](const Decision& each) { return each.question == question; });
  return found == all.end() ? nullptr : &*found;
}

void SearchDecisions::note(Decision decision) {
  if (!find(decision.question)) all.push_back(std::move(decision));
}

std::string decisions_text(const SearchDecisions& decisions) {
  std::ostringstream text;
  text.precision(17);
  text << decisions_form << "\nbudget_ms " << decisions.budget_ms << "\nprice " << decisions.units << ' '
       << decisions.run_seconds << "\nend " << end_names[static_cast<std::size_t>(decisions.end)] << "\n";
  for (const Decision& each : decisions.all)
    text << (each.is_cut ? "cut " : "decided ") << each.answer << ' ' << each.question << "\n";
  return text.str() + ".\n";
}

std::optional<SearchDecisions> parse_decisions(const std::string& text) {
  SearchDecisions decisions;
  std::istringstream lines(text);
  std::string line, key, name;
  if (!std::getline(lines, line) || line != decisions_form) return std::nullopt;
  while (std::getline(lines, line)) {
    if (line == ".") return decisions;  // else the file breaks off
    std::istringstream words(line);
    words >> key;
    if (key == "budget_ms") {
      words >> decisions.budget_ms;
    } else if (key == "price") {
      words >> decisions.units >> decisions.run_seconds;
    } else if (key == "end") {
      words >> name;
      const auto end = std::find(end_names.begin(), end_names.end(), name);
      if (end == end_names.end()) return std::nullopt;
      decisions.end = static_cast<SearchEnd>(end - end_names.begin());
    } else if (key == "cut" || key == "decided") {
      Decision decision{.is_cut = key == "cut"};
      words >> decision.answer >> std::ws;
      std::getline(words, decision.question);
      decisions.all.push_back(std::move(decision));
    }
    if (words.fail()) return std::nullopt;
  }
  return std::nullopt;
}

SearchDecisions decisions_for(const std::vector<SearchDecisions>& kept, std::uint64_t budget_ms) {
  const SearchDecisions *followed = nullptr, *paid = nullptr;
  for (const SearchDecisions& each : kept) {
    if (each.units > 0 && (!paid || each.budget_ms > paid->budget_ms)) paid = &each;
    const bool is_own = each.budget_ms == budget_ms;
    if (!is_own && (each.budget_ms < budget_ms || each.end == SearchEnd::open)) continue;
    if (!followed || each.budget_ms < followed->budget_ms) followed = &each;
  }
  SearchDecisions begin{.budget_ms = budget_ms};
  if (paid) begin.units = paid->units, begin.run_seconds = paid->run_seconds;
  if (!followed) return begin;
  begin.units = followed->units, begin.run_seconds = followed->run_seconds;
  begin.end = followed->end;
  begin.all = followed->all;
  if (followed->end != SearchEnd::early) return begin;
  begin.end = SearchEnd::open;
  const auto is_cut = [](const Decision& each) { return each.is_cut; };
  begin.all.erase(std::find_if(begin.all.begin(), begin.all.end(), is_cut), begin.all.end());
  return begin;
}

std::vector<Measured> DecidedMeter::measure(const std::string& stage, const std::vector<Candidate>& candidates,
                                            unsigned runs, double share) {
  const std::string question = stage + ": " + output::counted(runs, "run") + " of " + std::to_string(candidates.size());
  const Decision* const decision = decisions_.find(question);
  const std::size_t count = decision ? std::min(decision->answer, candidates.size()) : candidates.size();
  const std::vector<Candidate> wanted(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(count));
  keep_();
  std::vector<Measured> all = meter_.measure(stage, wanted, runs, decision ? 1 : share);
  decisions_.note({.question = question, .answer = all.size(), .is_cut = all.size() < candidates.size()});
  keep_();
  return all;
}

std::size_t DecidedMeter::affordable(unsigned runs, double share) {
  const std::string question = output::counted(runs, "run") + " by " + output::fixed(share, 2);
  if (const Decision* const decision = decisions_.find(question)) return decision->answer;
  const std::size_t count = meter_.affordable(runs, share);
  decisions_.note({.question = question, .answer = count});
  return count;
}

}  // namespace cmt::replay
