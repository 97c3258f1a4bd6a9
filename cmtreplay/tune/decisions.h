/// The answers of the clock in a search: how many candidates the budget pays for, and how many were measured.
///
/// A repeat of a finished search takes no time, so its clock would decide otherwise: it would ask for more runs, and
/// find no cells of so many. So the decisions are kept beside the cells, a file for each budget. All else of a search
/// follows from its cells.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cmtreplay/tune/search.h"

namespace cmt::replay {

inline constexpr std::string_view decisions_form = "cmt.tune_decisions/1";

struct Decision {
  std::string question = {};  ///< "4 runs by 0.55"
  std::size_t answer = 0;
  bool is_cut = false;  ///< the budget ended this stage early

  bool operator==(const Decision&) const = default;
};

/// How a search ended. After `early` the same command continues it; after `whole` it is shown again.
enum class SearchEnd { open, early, whole };

struct SearchDecisions {
  std::uint64_t budget_ms = 0;  ///< of the search, without the runs of --command
  double units = 0;             ///< the work that was paid for
  double run_seconds = 0;       ///< of that work
  SearchEnd end = SearchEnd::open;
  std::vector<Decision> all = {};

  const Decision* find(const std::string& question) const;
  void note(Decision decision);

  bool operator==(const SearchDecisions&) const = default;
};

std::string decisions_text(const SearchDecisions& decisions);
/// Returns nothing if the text is of another form or damaged.
std::optional<SearchDecisions> parse_decisions(const std::string& text);

/// Returns the decisions with which a search of this budget begins. They are those of the same budget, else those of
/// the least larger one whose search has ended. If that search was ended early, only the decisions before the first
/// stage that was cut remain. If there are none, only the price of work remains, as any search found it.
SearchDecisions decisions_for(const std::vector<SearchDecisions>& kept, std::uint64_t budget_ms);

/// Answers by the decisions that are there, and else by another meter, whose answers it adds to them.
class DecidedMeter : public Meter {
 public:
  /// `keep` is called before and after each stage.
  DecidedMeter(Meter& meter, SearchDecisions& decisions, std::function<void()> keep)
      : meter_(meter), decisions_(decisions), keep_(std::move(keep)) {}

  /// Measures as many candidates as the decisions say, whatever the time.
  std::vector<Measured> measure(const std::string& stage, const std::vector<Candidate>& candidates, unsigned runs,
                                double share) override;
  std::size_t affordable(unsigned runs, double share) override;
  std::vector<Candidate> singles_of(const Candidate& plain) override { return meter_.singles_of(plain); }

 private:
  Meter& meter_;
  SearchDecisions& decisions_;
  std::function<void()> keep_;
};

}  // namespace cmt::replay
