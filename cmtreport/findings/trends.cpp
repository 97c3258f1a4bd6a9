// Judges series of live bytes by the limits that trends.h states.

#include "cmtreport/findings/trends.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <numeric>

namespace cmt::report {
namespace {

constexpr std::size_t moments_least = 24;   // fewer moments show no trend
constexpr std::uint64_t blocks_least = 20;  // fewer blocks are no leak

std::uint64_t mean_of(const std::vector<std::uint64_t>& figures, std::size_t begin, std::size_t end) {
  assert(begin < end && end <= figures.size());
  const auto first = figures.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto last = figures.begin() + static_cast<std::ptrdiff_t>(end);
  return std::accumulate(first, last, std::uint64_t{0}) / (end - begin);
}

/// Moments that divide a recording up to a moment into ten parts.
using Tenths = std::array<std::size_t, 11>;

Tenths even_tenths(std::size_t end) {
  Tenths tenths{};
  for (std::size_t k = 0; k <= 10; ++k) tenths[k] = end * k / 10;
  return tenths;
}

/// Each of the tenths ends at the last moment that is not after its place. So it is empty if one moment has all of it.
Tenths tenths_of(const std::vector<std::uint64_t>& places, std::size_t end) {
  const auto first = places.begin(), past = first + static_cast<std::ptrdiff_t>(end) + 1;
  Tenths tenths{};
  for (std::size_t k = 1; k <= 10; ++k)
    tenths[k] = static_cast<std::size_t>(
        std::upper_bound(first, past, places[end] / 10 * k + places[end] % 10 * k / 10) - first - 1);
  tenths[10] = end;
  return tenths;
}

/// Returns how many of the first tenths have added less than a quarter of their even part.
std::size_t low_tenths(const FunctionSeries& series, const Tenths& tenths, std::size_t count) {
  const std::uint64_t all = series.leaked_bytes[tenths[count]];
  std::size_t low = 0;
  for (std::size_t k = 0; k < count; ++k)
    low += series.leaked_bytes[tenths[k + 1]] - series.leaked_bytes[tenths[k]] < all / (4 * count) ? 1 : 0;
  return low;
}

StillLive live_up_to(const FunctionSeries& series, std::size_t moment) {
  StillLive found;
  found.moment = moment;
  found.bytes = series.leaked_bytes[moment];
  found.blocks = series.leaked_blocks[moment];
  const auto same = std::find(series.leaked_blocks.begin(), series.leaked_blocks.end(), found.blocks);
  found.last = static_cast<std::size_t>(same - series.leaked_blocks.begin());
  if (series.largest.moment <= moment) found.largest_block = series.largest.bytes;
  return found;
}

bool is_steady(const FunctionSeries& series, const Tenths& tenths) {
  return series.leaked_blocks[tenths[9]] >= blocks_least && low_tenths(series, tenths, 9) <= 1;
}

/// Whether the time does not contradict a leak that is steady by events. trends.h states the limits.
bool lasts(const FunctionSeries& series, std::size_t end, const MomentPlaces& places) {
  const std::vector<std::uint64_t>& times = places.times_ns;
  if (times.empty()) return true;
  const Tenths tenths = tenths_of(times, end);
  const std::uint64_t all = series.leaked_bytes[end], last = all - series.leaked_bytes[tenths[7]];
  return times[end] / 2 >= times.back() / 3 && last >= all / 40 * 3 &&
         (!places.are_even_by_time || low_tenths(series, tenths, 10) <= 5);
}

/// The part of the time that passes until a twentieth of what is never freed is there.
double begin_of(const FunctionSeries& series, std::size_t end, const MomentPlaces& places) {
  if (places.times_ns.empty() || places.times_ns[end] == 0) return 0;
  std::size_t moment = 0;
  while (moment < end && series.leaked_bytes[moment] < series.leaked_bytes[end] / 20) ++moment;
  return static_cast<double>(places.times_ns[moment]) / static_cast<double>(places.times_ns[end]);
}

}  // namespace

MomentPlaces places_of(const Recording& recording, const Moments& moments) {
  MomentPlaces places{.events = moments.event, .are_even_by_time = recording.unit() == AxisUnit::time};
  if (recording.traces().size() != 1) return places;
  if (places.are_even_by_time) {
    places.times_ns = moments.position;
    return places;
  }
  const std::vector<Interval>& intervals = recording.traces().front().model->intervals().intervals();
  const std::uint64_t last = intervals.empty() ? unknown : intervals.back().last_time_ns;
  if (last == unknown || last <= short_recording_ns) return places;
  places.times_ns = {0};
  for (const Interval& each : intervals)
    places.times_ns.push_back(each.last_time_ns == unknown ? 0 : std::max(places.times_ns.back(), each.last_time_ns));
  return places;
}

StillLive still_live_of(const FunctionSeries& series, std::size_t end, const MomentPlaces& places) {
  assert(end < series.leaked_bytes.size() && series.leaked_bytes.size() == places.events.size());
  assert(places.times_ns.empty() || places.times_ns.size() == places.events.size());
  const Tenths even = even_tenths(end);
  StillLive found = live_up_to(series, even[9]);
  const double begin = begin_of(series, end, places);
  if (end < moments_least) return found;
  found.is_steady = is_steady(series, even) && (places.are_even_by_time || lasts(series, end, places));
  if (found.is_steady) found.begin = begin;
  if (found.is_steady || !places.are_even_by_time || places.times_ns.empty()) return found;
  const Tenths of_events = tenths_of(places.events, end);
  if (!is_steady(series, of_events) || !lasts(series, end, places)) return found;
  found = live_up_to(series, of_events[9]);
  found.is_steady = found.is_by_events = true;
  found.begin = begin;
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
