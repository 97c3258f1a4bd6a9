// Computes the moments of a recording. On an axis of time or events all intervals get the width of the widest trace. On
// an axis of shares each trace keeps its intervals, and the axis is 256 equal parts of the trace's events.

#include "cmtreport/report/recording.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace cmt::report {
namespace {

constexpr std::size_t shares = 256;  // the number of moments of an axis of shares

}  // namespace

Recording::Recording(AxisUnit unit, CallTree tree, std::vector<TraceFigures> traces)
    : unit_(unit), tree_(std::move(tree)), traces_(std::move(traces)) {
  for (const TraceFigures& trace : traces_) width_ = std::max(width_, trace.model->intervals().width());
  for (TraceFigures& trace : traces_) {
    IntervalCollector& intervals = trace.model->intervals();
    if (unit_ != AxisUnit::share) intervals.widen_to(width_);
    assert(unit_ == AxisUnit::share || intervals.width() == width_);
    last_moment_ = std::max(last_moment_, intervals.intervals().size());
    end_position_ = std::max(end_position_, intervals.end_position());
  }
  if (unit_ != AxisUnit::share) return;
  width_ = 1;
  last_moment_ = end_position_ = shares;
}

std::size_t Recording::moment_of(const TraceFigures& trace, std::size_t interval) const {
  if (unit_ != AxisUnit::share) return interval + 1;
  const IntervalCollector& intervals = trace.model->intervals();
  assert(intervals.end_position() != 0);  // there is an interval, so there is an event
  const std::uint64_t end = std::min((interval + 1) * intervals.width(), intervals.end_position());
  return (end * shares + intervals.end_position() - 1) / intervals.end_position();
}

std::optional<std::size_t> Recording::moment_after(const TraceFigures& trace) const {
  const IntervalCollector& intervals = trace.model->intervals();
  const std::size_t last = intervals.intervals().size();
  if (unit_ == AxisUnit::share || last == 0) return std::nullopt;
  // At the moment after its end it has no live memory, whatever another process has by then. So a process within one
  // interval is in no moment: only moments.peak_bytes has it.
  if (intervals.end_position() < std::min(last * width_, end_position_)) return last;
  return last < last_moment_ ? std::optional(last + 1) : std::nullopt;
}

double Recording::place_of(const TraceFigures& trace, std::uint64_t position) const {
  if (unit_ != AxisUnit::share) {
    const double place = static_cast<double>(position) / static_cast<double>(width_);
    return std::min(place, static_cast<double>(last_moment_));
  }
  const std::uint64_t end = trace.model->intervals().end_position();
  return end == 0 ? 0 : static_cast<double>(position) * shares / static_cast<double>(end);
}

}  // namespace cmt::report
