// Computes the figures at each moment: those of all processes, added up.

#include <algorithm>
#include <cassert>

#include "cmtreport/build/build.h"

namespace cmt::report {
namespace {

/// Adds one process to the figures at all moments.
void add_process(Moments& moments, const Recording& recording, const TraceFigures& trace, bool is_single) {
  const std::vector<Interval>& intervals = trace.model->intervals().intervals();
  const auto end = recording.moment_after(trace);
  const bool has_samples = trace.process.largest_resident != unknown;
  std::size_t next = 0;
  Interval now;  // at the moment
  for (std::size_t moment = 0; moment <= recording.last_moment(); ++moment) {
    std::uint64_t peak_bytes = now.live.bytes, peak_event = now.last_event;
    for (; moment != 0 && next < intervals.size() && recording.moment_of(trace, next) <= moment; ++next) {
      const Interval& each = intervals[next];
      now = {.last_event = each.last_event, .live = each.live, .allocated = each.allocated, .sample = each.sample};
      if (each.peak.bytes <= peak_bytes) continue;
      peak_bytes = each.peak.bytes;
      peak_event = each.peak_event;
    }
    if (moment == end) {
      now.live = {};
      if (now.sample.is_known()) now.sample = {.resident_bytes = 0};
    }
    moments.event[moment] += now.last_event;
    moments.live_bytes[moment] += now.live.bytes;
    moments.live_blocks[moment] += now.live.blocks;
    moments.peak_bytes[moment] += peak_bytes;
    if (is_single) moments.peak_event[moment] = peak_event;
    moments.allocated_bytes[moment] += now.allocated.bytes;
    moments.allocated_blocks[moment] += now.allocated.blocks;
    if (!has_samples || !now.sample.is_known()) continue;
    const auto add_to = [moment](auto& sums, std::uint64_t more) {
      (*sums)[moment] = (*sums)[moment].value_or(0) + more;
    };
    add_to(moments.resident_bytes, now.sample.resident_bytes);
    add_to(moments.resident_live_bytes, now.sample.live_bytes);
    if (is_single) add_to(moments.resident_position, now.sample.position);
  }
  assert(next == intervals.size());  // each interval counts up to one of the moments
}

}  // namespace

Moments moments_of(const Recording& recording) {
  const std::size_t count = recording.last_moment() + 1;
  const std::vector<std::uint64_t> zeros(count);
  Moments moments{.position = zeros,
                  .event = zeros,
                  .time_ns = {},
                  .live_bytes = zeros,
                  .live_blocks = zeros,
                  .peak_bytes = zeros,
                  .peak_event = zeros,
                  .allocated_bytes = zeros,
                  .allocated_blocks = zeros,
                  .resident_bytes = {},
                  .resident_live_bytes = {},
                  .resident_position = {}};
  for (std::size_t moment = 0; moment < count; ++moment)
    moments.position[moment] = std::min(moment * recording.width(), recording.end_position());
  if (recording.unit() == AxisUnit::time) moments.time_ns = moments.position;
  const auto has_samples = [](const TraceFigures& trace) { return trace.process.largest_resident != unknown; };
  const bool is_single = recording.traces().size() == 1;
  if (std::any_of(recording.traces().begin(), recording.traces().end(), has_samples)) {
    moments.resident_bytes.emplace(count);
    moments.resident_live_bytes.emplace(count);
    if (is_single) moments.resident_position.emplace(count);
  }
  for (const TraceFigures& trace : recording.traces()) add_process(moments, recording, trace, is_single);
  return moments;
}

}  // namespace cmt::report
