// Goes back from the end of a trace to the first moment that meets the conditions of teardown.h.
#include "cmtreplay/plan/teardown.h"

#include <algorithm>

namespace cmt::replay {
namespace {

using Moments = std::span<const LiveMoment>;

/// The first moment of the time before x in which live bytes have to rest (condition 3).
std::size_t rest_begin(Moments moments, std::size_t x) {
  const std::uint64_t length = moments.back().at - moments[x].at;
  const std::uint64_t rest = length / 4 + (length % 4 != 0 ? 1 : 0);  // at least one event
  std::size_t begin = x;
  while (begin > 0 && moments[begin - 1].at + rest >= moments[x].at) --begin;
  return begin;
}

/// Condition 4.
bool is_at_end(Moments moments, std::size_t x, std::uint64_t freed_bytes) {
  const std::uint64_t low_bytes = moments.back().live_bytes + freed_bytes / 8;
  const auto low = std::find_if(moments.begin() + static_cast<std::ptrdiff_t>(x), moments.end(),
                                [low_bytes](const LiveMoment& moment) { return moment.live_bytes <= low_bytes; });
  const std::uint64_t fall = low->at - moments[x].at, tail = moments.back().at - low->at;
  return tail / 4 <= fall || tail <= (moments.back().at - moments.front().at) / 100;
}

}  // namespace

std::optional<std::size_t> last_before_teardown(Moments moments) {
  const auto is_lower = [](const LiveMoment& a, const LiveMoment& b) { return a.live_bytes < b.live_bytes; };
  if (moments.empty()) return std::nullopt;
  const std::uint64_t peak_bytes = std::max_element(moments.begin(), moments.end(), is_lower)->live_bytes;
  const std::uint64_t end_bytes = moments.back().live_bytes;
  std::uint64_t later_bytes = end_bytes;  // the most that are live later
  for (std::size_t x = moments.size(); x-- > 0;) {
    const std::uint64_t live_bytes = moments[x].live_bytes;
    if (live_bytes < later_bytes) continue;
    later_bytes = live_bytes;
    const std::uint64_t freed_bytes = live_bytes - end_bytes;
    if (freed_bytes == 0 || freed_bytes < live_bytes / 2 || freed_bytes < peak_bytes / 50) continue;
    const std::size_t begin = rest_begin(moments, x);
    const Moments rest = moments.subspan(begin, x - begin + 1);
    const auto highest = std::max_element(rest.rbegin(), rest.rend(), is_lower);  // the last one of several
    if (highest->live_bytes - live_bytes > freed_bytes / 8) continue;
    if (!is_at_end(moments, x, freed_bytes)) return std::nullopt;
    return x - static_cast<std::size_t>(highest - rest.rbegin());
  }
  return std::nullopt;
}

}  // namespace cmt::replay
