// Joins samples to spans, and finds the spans in which memory was retained.
#include "cmtreport/model/resident_samples.h"

#include <algorithm>
#include <cassert>

namespace cmt::report {
namespace {

constexpr std::uint64_t samples_least = 3, least_share_of_samples = 20;

/// Adds the span after another one.
void append_span(SampleSpan& sum, const SampleSpan& next) {
  if (sum.samples == 0) {
    sum = next;
    return;
  }
  sum.last = next.last;
  sum.samples += next.samples;
  sum.resident_bytes_min = std::min(sum.resident_bytes_min, next.resident_bytes_min);
  sum.live_bytes_max = std::max({sum.live_bytes_max, next.live_bytes_max_before, next.live_bytes_max});
}

/// Whether two times are one: they overlap, or most of the memory was retained in between, too.
bool are_one(const std::vector<SampleSpan>& spans, const Retention& a, const Retention& b) {
  if (a.span.first.event <= b.span.last.event && b.span.first.event <= a.span.last.event) return true;
  const std::uint64_t begin = std::min(a.span.first.event, b.span.first.event);
  const std::uint64_t end = std::max(a.span.last.event, b.span.last.event);
  Retention both;
  for (const SampleSpan& span : spans) {
    if (span.first.event >= begin && span.last.event <= end) append_span(both.span, span);
  }
  return both.bytes() >= std::min(a.bytes(), b.bytes()) / 2;
}

/// A time of retention and its rank: bytes times samples.
struct RankedRetention {
  Retention retention;
  double rank = 0;
};

/// Finds the best time that begins with spans[begin].
RankedRetention best_from(const std::vector<SampleSpan>& spans, std::size_t begin, std::uint64_t bytes_min,
                          std::uint64_t samples_min) {
  RankedRetention best;
  Retention now;
  for (std::size_t end = begin; end < spans.size(); ++end) {
    append_span(now.span, spans[end]);
    if (now.bytes() < bytes_min) break;  // a longer time has no more
    if (now.bytes() < now.span.resident_bytes_min / 4 || now.span.samples < samples_min) continue;
    const double rank = static_cast<double>(now.bytes()) * static_cast<double>(now.span.samples);
    if (rank > best.rank) best = {now, rank};
  }
  return best;
}

}  // namespace

void ResidentSamples::add(const ResidentSample& sample) {
  assert(sample.is_known());
  note_live(sample.live_bytes);
  const auto lack = [](const ResidentSample& each) {
    return each.live_bytes > each.resident_bytes ? each.live_bytes - each.resident_bytes : 0;
  };
  if (!largest_.is_known() || sample.resident_bytes > largest_.resident_bytes) largest_ = sample;
  if (lack(sample) > lack(least_backed_)) least_backed_ = sample;
  append_span(open_, {.first = sample,
                      .last = sample,
                      .samples = 1,
                      .resident_bytes_min = sample.resident_bytes,
                      .live_bytes_max = sample.live_bytes,
                      .live_bytes_max_before = live_bytes_max_});
  live_bytes_max_ = sample.live_bytes;
  if (open_.samples < samples_a_span_) return;
  spans_.push_back(open_);
  open_ = {};
  if (spans_.size() == spans_max) join_pairs();
}

void ResidentSamples::join_pairs() {
  static_assert(spans_max % 2 == 0);
  for (std::size_t i = 0; i < spans_max / 2; ++i) {
    SampleSpan both = spans_[2 * i];
    append_span(both, spans_[2 * i + 1]);
    spans_[i] = both;
  }
  spans_.resize(spans_max / 2);
  samples_a_span_ *= 2;
}

void ResidentSamples::finish() {
  if (open_.samples != 0) spans_.push_back(open_);
  open_ = {};
}

std::vector<Retention> find_retentions(const std::vector<SampleSpan>& spans, std::uint64_t bytes_min,
                                       std::size_t count_max) {
  std::uint64_t samples = 0, live_bytes_before = 0;
  for (const SampleSpan& span : spans) samples += span.samples;
  const std::uint64_t samples_min = std::max(samples_least, samples / least_share_of_samples);
  std::vector<RankedRetention> candidates;
  for (std::size_t begin = 0; begin < spans.size(); ++begin) {
    candidates.push_back(best_from(spans, begin, bytes_min, samples_min));
    live_bytes_before = std::max(live_bytes_before, spans[begin].live_bytes_max_before);
    candidates.back().retention.live_bytes_before = live_bytes_before;
    live_bytes_before = std::max(live_bytes_before, spans[begin].live_bytes_max);
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const RankedRetention& a, const RankedRetention& b) { return a.rank > b.rank; });
  std::vector<Retention> found;
  for (const RankedRetention& each : candidates) {
    if (each.rank == 0 || each.rank < candidates[0].rank / 10 || found.size() == count_max) break;
    const auto is_same = [&](const Retention& other) { return are_one(spans, each.retention, other); };
    if (std::none_of(found.begin(), found.end(), is_same)) found.push_back(each.retention);
  }
  return found;
}

}  // namespace cmt::report
