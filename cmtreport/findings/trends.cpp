// Judges series of live bytes by the limits that trends.h states.

#include "cmtreport/findings/trends.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

namespace cmt::report {
namespace {

constexpr std::size_t moments_least = 24;  // fewer moments show no trend

std::uint64_t mean_of(const std::vector<std::uint64_t>& figures, std::size_t begin, std::size_t end) {
  assert(begin < end && end <= figures.size());
  const auto first = figures.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto last = figures.begin() + static_cast<std::ptrdiff_t>(end);
  return std::accumulate(first, last, std::uint64_t{0}) / (end - begin);
}

}  // namespace

StillLive still_live_of(const FunctionSeries& series, std::size_t end) {
  assert(end < series.leaked_bytes.size());
  StillLive found;
  found.moment = end * 9 / 10;
  found.bytes = series.leaked_bytes[found.moment];
  found.blocks = series.leaked_blocks[found.moment];
  if (end < moments_least || found.blocks < 20) return found;
  std::size_t low_tenths = 0;
  for (std::size_t tenth = 0; tenth < 9; ++tenth) {
    const std::uint64_t added = series.leaked_bytes[end * (tenth + 1) / 10] - series.leaked_bytes[end * tenth / 10];
    low_tenths += added < found.bytes / 36 ? 1 : 0;  // less than a quarter of its even part
  }
  found.is_steady = low_tenths <= 1;
  return found;
}

std::optional<Growth> growth_of(const FunctionSeries& series, std::size_t end) {
  if (end < moments_least) return std::nullopt;
  const std::vector<std::uint64_t>& live = series.live_bytes;
  const auto at = [&](std::size_t twelfth) { return static_cast<std::int64_t>(live[end * twelfth / 12]); };
  const std::int64_t gained = at(12) - at(1);
  if (gained <= 0) return std::nullopt;
  std::size_t rises = 0;
  for (std::size_t twelfth = 2; twelfth <= 12; ++twelfth) {
    const std::int64_t step = at(twelfth) - at(twelfth - 1);
    rises += step > 0 ? 1 : 0;
    if (step < -gained / 20 || step > gained / 2) return std::nullopt;
  }
  if (rises < 9 || at(12) - at(8) < gained / 6) return std::nullopt;
  Growth growth;
  growth.first_third = end / 3;
  growth.last_third = end - end / 3;
  growth.first_mean = mean_of(live, 0, growth.first_third + 1);
  growth.last_mean = mean_of(live, growth.last_third, end + 1);
  growth.recording_end = live.back();
  growth.is_freed = live.back() < live[end] - live[end] / 10;
  return growth;
}

bool rise_alike(const FunctionSeries& a, const FunctionSeries& b, std::size_t end) {
  const auto share_at = [end](const FunctionSeries& series, std::size_t moment) {
    return static_cast<double>(series.live_bytes[moment]) / static_cast<double>(series.live_bytes[end]);
  };
  if (a.live_bytes[end] == 0 || b.live_bytes[end] == 0) return false;
  for (std::size_t moment = 0; moment <= end; ++moment) {
    if (std::abs(share_at(a, moment) - share_at(b, moment)) > 0.05) return false;
  }
  return true;
}

std::optional<Burst> burst_of(const std::vector<std::uint64_t>& peak_bytes) {
  assert(!peak_bytes.empty());  // moment 0 is the start
  const std::uint64_t peak = *std::max_element(peak_bytes.begin(), peak_bytes.end());
  const auto is_high = [&](std::uint64_t bytes) { return bytes > peak / 2; };
  const auto first = std::find_if(peak_bytes.begin(), peak_bytes.end(), is_high);
  const auto last = std::find_if(peak_bytes.rbegin(), peak_bytes.rend(), is_high).base();  // one after it
  const std::size_t moments = peak_bytes.size() - 1, length = static_cast<std::size_t>(last - first);
  if (moments < moments_least || length == 0 || length * 20 > moments || !std::all_of(first, last, is_high))
    return std::nullopt;
  const auto begin = static_cast<std::size_t>(first - peak_bytes.begin());
  return Burst{begin == 0 ? 0 : begin - 1, begin + length - 1};
}

}  // namespace cmt::report
