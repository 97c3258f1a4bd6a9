/// Compares allocators in pairs, and says in words which one is certainly faster or smaller.
#pragma once

#include <string>
#include <vector>

#include "cmtreplay/report/report.h"

namespace cmt::replay {

/// Two allocators, compared by one figure. By the median ratio, the figure of `less` is at most that of `more`.
struct Comparison {
  std::string less = {}, more = {};
  double ratio = 1;          ///< less / more
  double low = 0, high = 0;  ///< the interval of the ratio, if `is_known`
  bool is_known = false;     ///< there are enough runs to say so
  bool is_certain = false;   ///< the interval does not contain 1
};

template <class Visitor, output::DescribedAs<Comparison> C>
void describe(Visitor& field, C& pair) {
  field("less", pair.less, "the allocator with the lower figure");
  field("more", pair.more, "the other");
  field("ratio", pair.ratio, "the lower over the higher figure");
  field("low", pair.is_known ? std::optional(pair.low) : std::nullopt,
        "of times, of the interval that holds with 95 % for all pairs together; of peaks, the least run of the lower "
        "over the most of the other, both 1.5 % and 64 KiB apart, as a program's peak may be; null: too few runs");
  field("high", pair.is_known ? std::optional(pair.high) : std::nullopt, "its other end");
  field(
      "certain", pair.is_certain,
      "whether one of the two is lower: of times with 95 %, of peaks in every memory run, a rule without a confidence");
}

/// The time of an allocator over that of another one: the median of the ratios of all rounds. It is the one estimate
/// of tables and verdicts, and the ratio of the same two in the other order is its inverse. NaN without rounds.
double time_ratio(const AllocatorResult& result, const AllocatorResult& reference);

/// Compares every pair of allocators that refused no call by the time of their runs. It compares runs of the same
/// round, since a slow minute of the machine slows them alike. The interval is that of the median of the ratios of all
/// rounds, by the sign test. All intervals together hold with 95 % (Bonferroni).
std::vector<Comparison> compare_times(const std::vector<AllocatorResult>& results);

/// Compares the same pairs by peak resident memory. There are few runs, so their range is the interval. On both sides
/// it has 1.5 % and 64 KiB more, because the program's own peak may be so far from that of a replay.
std::vector<Comparison> compare_peaks(const std::vector<AllocatorResult>& results);

/// One line for each allocator that is certainly lower than another one, and one line for each pair without a certain
/// difference. `word` says what the lower one is: "faster".
std::vector<std::string> verdict_lines(const std::vector<Comparison>& pairs, const std::string& title,
                                       const std::string& word);
/// The lines on time, then the lines on peak memory. `of`: what they are about, "this recording".
std::vector<std::string> verdict_lines(const std::vector<Comparison>& times, const std::vector<Comparison>& peaks,
                                       const std::string& of);
/// The same of one recording.
std::vector<std::string> verdict_lines(const std::vector<AllocatorResult>& results);

}  // namespace cmt::replay
