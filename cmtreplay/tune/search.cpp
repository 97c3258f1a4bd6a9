// Picks the candidates of each stage.
#include "cmtreplay/tune/search.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace cmt::replay {
namespace {

constexpr unsigned middle_runs = 4, last_runs = 12;
// The standard errors that stages aim at, and the most runs for them.
constexpr double first_precision = 0.03, middle_precision = 0.015, last_precision = 0.01;
constexpr unsigned first_most = 16, middle_most = 48, last_most = 96;
constexpr std::size_t middle_count = 12, last_count = 6, last_least = 3;
constexpr std::size_t helpers_max = 4;        // of each allocator and aim
constexpr std::size_t combinations_max = 40;  // of all allocators
constexpr double forbidden = 10;              // more than any gain
constexpr double peak_room = 0.01;

/// The addition to the score for a figure beyond what the aim allows. Within `room` it may be so by chance: of few
/// runs it counts as allowed, else it comes after those that are allowed and before the others.
double excess(const Measured& measured, double ratio, double allowed, double room) {
  const double by = std::log(ratio) - std::log(allowed);
  if (by <= 0 || (by <= room && measured.runs < middle_runs)) return 0;
  return (by <= room ? forbidden / 2 : forbidden) + by;
}

/// The gain of a choice over its allocator without settings, by an aim: above 0 if it helped by more than chance,
/// mostly.
double gain(Aim aim, const Measured& single, const Measured& plain) {
  const double peak = std::log(plain.peak.ratio / single.peak.ratio);
  const double time = std::log(plain.time.ratio / single.time.ratio);
  if (aim == Aim::memory) return peak - 0.003;
  if (aim == Aim::time) return time - 0.01;
  return peak + time - 0.01;
}

struct Helper {
  const Measured* single;
  double gain;
};

/// The choices of an allocator that helped most by an aim.
std::vector<Helper> helpers(Aim aim, const Measured& plain, const std::vector<Measured>& singles) {
  std::vector<Helper> found;
  for (const Measured& single : singles) {
    if (!single.is_measured() || single.candidate.allocator != plain.candidate.allocator) continue;
    if (const double by = gain(aim, single, plain); by > 0) found.push_back({&single, by});
  }
  std::stable_sort(found.begin(), found.end(), [](const Helper& a, const Helper& b) { return a.gain > b.gain; });
  found.resize(std::min(found.size(), helpers_max));
  return found;
}

/// A combination, and its score if the gains of its parts add up.
struct Promise {
  Candidate candidate;
  double score;
};

/// Pairs of a choice that saves time and one that saves memory, where one exceeds the limit of its aim, and the other
/// makes up for that. Prices need not add up: `top_pad` alone fixes glibc's threshold for mmap, which costs time. With
/// a large `mmap_threshold` it costs none. So the score is the gain of the one that exceeds its limit, as if the repair
/// were free.
std::vector<Promise> repairs(const std::vector<Aim>& aims, const Measured& plain,
                             const std::vector<Measured>& singles) {
  constexpr double time_room = 1.2;
  const auto has = [&aims](Aim aim) { return std::find(aims.begin(), aims.end(), aim) != aims.end(); };
  std::vector<Promise> pairs;
  for (const Helper& fast : helpers(Aim::time, plain, singles)) {
    for (const Helper& small : helpers(Aim::memory, plain, singles)) {
      const Measured &one = *fast.single, &other = *small.single;
      if (!can_join(one.candidate, other.candidate)) continue;
      const double peak = one.peak.ratio * other.peak.ratio / plain.peak.ratio,
                   time = one.time.ratio * other.time.ratio / plain.time.ratio;
      double promised = 0;
      if (has(Aim::time) && one.peak.ratio > peak_allowed && peak <= peak_allowed)
        promised = std::min(promised, std::log(one.time.ratio));
      if (has(Aim::memory) && other.time.ratio > time_allowed && time <= time_allowed * time_room)
        promised = std::min(promised, std::log(other.peak.ratio));
      if (promised < 0) pairs.push_back({joined(one.candidate, other.candidate), promised});
    }
  }
  return pairs;
}

bool contains(const std::vector<Candidate>& list, const Candidate& candidate) {
  return std::find(list.begin(), list.end(), candidate) != list.end();
}

/// The first of each list, then the second of each: a budget that ends early has tried some of every allocator.
std::vector<Candidate> in_turn(const std::vector<std::vector<Candidate>>& lists) {
  std::vector<Candidate> all;
  for (std::size_t i = 0, before = SIZE_MAX; before != all.size(); ++i) {
    before = all.size();
    for (const std::vector<Candidate>& list : lists) {
      if (i < list.size()) all.push_back(list[i]);
    }
  }
  return all;
}

void replace(std::vector<Measured>& all, std::vector<Measured> better) {
  for (Measured& each : better) {
    std::erase_if(all, [&each](const Measured& other) { return other.candidate == each.candidate; });
    all.push_back(std::move(each));
  }
}

/// The runs after which a ratio is known to `precision`, as far as the budget pays for them for `count` candidates.
unsigned runs_for(double deviation, double precision, unsigned least, unsigned most, Meter& meter, std::size_t count,
                  double share) {
  const double wanted = std::pow(deviation / precision, 2);
  unsigned runs = wanted >= most ? most : std::max(least, static_cast<unsigned>(std::ceil(wanted)));
  while (runs > least && meter.affordable(runs, share) < count) runs = std::max(least, runs * 3 / 4);
  return runs;
}

/// Measures with more runs those that could be measured.
void repeat(std::vector<Measured>& all, const std::string& stage, unsigned runs, double share, Meter& meter) {
  std::vector<Candidate> again;
  for (const Measured& each : all) {
    if (each.is_measured()) again.push_back(each.candidate);
  }
  replace(all, meter.measure(stage + " again", again, runs, share));
}

}  // namespace

double time_deviation(const std::vector<Measured>& all) {
  std::vector<double> known;
  for (const Measured& each : all) {
    if (!each.is_measured() || each.runs < 2 || std::isnan(each.time_deviation)) continue;
    const double freedom = each.runs - 1;  // the median of a chi-squared distribution is below its mean
    known.push_back(each.time_deviation / std::pow(1 - 2 / (9 * freedom), 1.5));
  }
  if (known.empty()) return 0;
  const auto middle = known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2);
  std::nth_element(known.begin(), middle, known.end());
  return *middle;
}

double score(Aim aim, const Measured& measured) {
  if (!measured.is_measured()) return std::numeric_limits<double>::infinity();
  const double room = 0.3 / std::sqrt(static_cast<double>(measured.runs));
  const double time = measured.time.ratio, peak = measured.peak.ratio;
  if (aim == Aim::memory) return std::log(peak) + excess(measured, time, time_allowed, room);
  if (aim == Aim::time) return std::log(time) + excess(measured, peak, peak_allowed, peak_room);
  return std::log(time) + std::log(peak) + excess(measured, time, time_allowed * peak_allowed, room) +
         excess(measured, peak, peak_allowed, peak_room);
}

std::vector<Candidate> best_of(const std::vector<Measured>& all, const std::vector<Aim>& aims, std::size_t count) {
  std::vector<Candidate> best;
  for (bool is_more = true; is_more && best.size() < count;) {
    is_more = false;
    for (const Aim aim : aims) {
      const Measured* next = nullptr;
      for (const Measured& each : all) {
        if (each.is_measured() && !contains(best, each.candidate) && (!next || score(aim, each) < score(aim, *next)))
          next = &each;
      }
      if (!next || best.size() == count) continue;
      best.push_back(next->candidate);
      is_more = true;
    }
  }
  return best;
}

std::vector<Candidate> combinations(const std::vector<Measured>& defaults, const std::vector<Measured>& singles,
                                    const std::vector<Aim>& aims) {
  std::vector<Promise> promises;
  const auto add = [&promises](const Candidate& candidate, double promised) {
    const auto same = std::find_if(promises.begin(), promises.end(),
                                   [&](const Promise& each) { return each.candidate == candidate; });
    if (same == promises.end())
      promises.push_back({candidate, promised});
    else
      same->score = std::min(same->score, promised);
  };
  for (const Measured& plain : defaults) {
    if (!plain.is_measured()) continue;
    for (const Aim aim : aims) {
      const std::vector<Helper> helping = helpers(aim, plain, singles);
      if (helping.empty()) continue;
      Candidate whole = helping.front().single->candidate;
      double whole_score = score(aim, plain) - helping.front().gain;
      for (std::size_t i = 0; i < helping.size(); ++i) {
        for (std::size_t k = i + 1; k < helping.size(); ++k) {
          const Candidate &one = helping[i].single->candidate, &other = helping[k].single->candidate;
          if (can_join(one, other)) add(joined(one, other), score(aim, plain) - helping[i].gain - helping[k].gain);
        }
        if (!can_join(whole, helping[i].single->candidate)) continue;
        whole = joined(whole, helping[i].single->candidate);
        whole_score -= helping[i].gain;
      }
      if (whole.choices.size() > 2) add(whole, whole_score);
    }
    for (const Promise& pair : repairs(aims, plain, singles)) add(pair.candidate, pair.score);
  }
  std::stable_sort(promises.begin(), promises.end(),
                   [](const Promise& a, const Promise& b) { return a.score < b.score; });
  promises.resize(std::min(promises.size(), combinations_max));
  std::vector<Candidate> candidates;
  for (const Promise& promise : promises) candidates.push_back(promise.candidate);
  return candidates;
}

SearchResult search(const std::vector<Candidate>& allocators, const std::vector<Aim>& aims, Meter& meter) {
  const bool is_memory_alone = aims == std::vector<Aim>{Aim::memory};
  const unsigned first_runs = is_memory_alone ? 1 : 2;  // one run says little about time
  SearchResult result;
  std::vector<Measured> plain = meter.measure("allocators", allocators, first_runs, 1);
  std::vector<std::vector<Candidate>> lists;
  for (const Measured& each : plain) {
    if (each.is_measured()) lists.push_back(meter.singles_of(each.candidate));
  }
  const std::vector<Candidate> wanted = in_turn(lists);
  std::vector<Measured> singles = meter.measure("one setting", wanted, first_runs, 0.4);
  result.time_deviation = time_deviation(singles);
  const unsigned runs = runs_for(result.time_deviation, first_precision, first_runs, first_most, meter,
                                 plain.size() + wanted.size(), 0.4);
  if (runs > first_runs) {
    repeat(plain, "allocators", runs, 1, meter);
    repeat(singles, "one setting", runs, 0.4, meter);
    result.time_deviation = time_deviation(singles);
  }
  const std::vector<Candidate> several = combinations(plain, singles, aims);
  result.asked = allocators.size() + wanted.size() + several.size();
  result.all = plain;
  result.all.insert(result.all.end(), singles.begin(), singles.end());
  replace(result.all, meter.measure("several settings", several, runs, 0.55));
  const auto count_of = [&result](std::size_t most) { return std::min(most, result.all.size()); };
  const unsigned more_runs = runs_for(result.time_deviation, middle_precision, std::max(middle_runs, runs), middle_most,
                                      meter, count_of(middle_count), 0.75);
  const std::size_t middle = std::min(meter.affordable(more_runs, 0.75), middle_count);
  std::vector<Measured> better;
  if (middle > last_count) {
    better = meter.measure("the best " + std::to_string(middle), best_of(result.all, aims, middle), more_runs, 0.75);
    replace(result.all, better);
  }
  if (result.time_deviation == 0) result.time_deviation = time_deviation(better);
  const unsigned least_runs = std::max(last_runs, better.empty() ? runs : more_runs);  // later stages have more
  const unsigned most_runs =
      runs_for(result.time_deviation, last_precision, least_runs, last_most, meter, count_of(last_count), 1);
  const std::size_t last = std::clamp(meter.affordable(most_runs, 1), last_least, last_count);
  std::vector<Measured> final = meter.measure("the best " + std::to_string(last),
                                              best_of(better.empty() ? result.all : better, aims, last), most_runs, 1);
  result.finalists = final.size();
  replace(result.all, std::move(final));
  return result;
}

}  // namespace cmt::replay
