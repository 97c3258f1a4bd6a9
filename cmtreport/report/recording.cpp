#include "cmtreport/report/recording.h"

#include <algorithm>
#include <utility>

namespace cmt::report {
namespace {

constexpr std::size_t shares = 256;  // moments of an axis of shares

/// The figures of one trace's keys, interval by interval, with its leaked blocks.
class TraceCursor {
 public:
  explicit TraceCursor(const TraceFigures& trace)
      : trace_(trace), joined_(trace.model->intervals().width() / trace.model->leaked_width()) {}

  std::size_t interval() const { return interval_; }
  std::size_t interval_count() const { return intervals().size(); }

  void visit_next(std::size_t moment, const Recording::Visit& visit) {
    const auto visit_key = [&](KeyId key, const Measures& measures) {
      const NodeNumber node = trace_.node_of_key[key];
      if (node == CallTree::left_out) return;
      visit(node, moment, measures);
      if (key >= live_.size()) live_.resize(key + 1);
      live_[key].bytes += measures[Measure::live_bytes];
      live_[key].blocks += measures[Measure::live_blocks];
    };
    intervals()[interval_].changes.for_each(visit_key);
    const std::vector<LeakedBlocks>& leaked = trace_.model->leaked();
    for (; next_leaked_ < leaked.size() && leaked[next_leaked_].interval / joined_ == interval_; ++next_leaked_) {
      Measures measures;
      measures[Measure::leaked_bytes] = leaked[next_leaked_].amount.bytes;
      measures[Measure::leaked_blocks] = leaked[next_leaked_].amount.blocks;
      visit_key(leaked[next_leaked_].key, measures);
    }
    ++interval_;
  }

  /// The process has ended, and its memory is gone.
  void visit_end(std::size_t moment, const Recording::Visit& visit) const {
    for (KeyId key = 0; key < live_.size(); ++key) {
      if (live_[key] == heap::LiveTotals{}) continue;
      Measures measures;
      measures[Measure::live_bytes] = 0 - live_[key].bytes;
      measures[Measure::live_blocks] = 0 - live_[key].blocks;
      visit(trace_.node_of_key[key], moment, measures);
    }
  }

 private:
  const std::vector<Interval>& intervals() const { return trace_.model->intervals().intervals(); }

  const TraceFigures& trace_;
  std::uint64_t joined_;  // intervals that have become one since the blocks were found that are live at the end
  std::size_t interval_ = 0;
  std::size_t next_leaked_ = 0;
  std::vector<heap::LiveTotals> live_;  // by key
};

}  // namespace

Recording::Recording(AxisUnit unit, CallTree tree, std::vector<TraceFigures> traces)
    : unit_(unit), tree_(std::move(tree)), traces_(std::move(traces)) {
  for (const TraceFigures& trace : traces_) width_ = std::max(width_, trace.model->intervals().width());
  for (TraceFigures& trace : traces_) {
    IntervalCollector& intervals = trace.model->intervals();
    if (unit_ != AxisUnit::share) intervals.widen_to(width_);
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
  const std::uint64_t end = std::min((interval + 1) * intervals.width(), intervals.end_position());
  return (end * shares + intervals.end_position() - 1) / intervals.end_position();
}

std::optional<std::size_t> Recording::moment_after(const TraceFigures& trace) const {
  const std::size_t count = trace.model->intervals().intervals().size();
  return unit_ != AxisUnit::share && count < last_moment_ ? std::optional(count + 1) : std::nullopt;
}

double Recording::place_of(const TraceFigures& trace, std::uint64_t position) const {
  if (unit_ != AxisUnit::share) {
    const double place = static_cast<double>(position) / static_cast<double>(width_);
    return std::min(place, static_cast<double>(last_moment_));
  }
  const std::uint64_t end = trace.model->intervals().end_position();
  return end == 0 ? 0 : static_cast<double>(position) * shares / static_cast<double>(end);
}

void Recording::for_each_change(const Visit& visit) const {
  std::vector<TraceCursor> cursors;
  cursors.reserve(traces_.size());
  for (const TraceFigures& trace : traces_) cursors.emplace_back(trace);
  for (std::size_t moment = 1; moment <= last_moment_; ++moment) {
    for (std::size_t i = 0; i < traces_.size(); ++i) {
      TraceCursor& cursor = cursors[i];
      while (cursor.interval() < cursor.interval_count() && moment_of(traces_[i], cursor.interval()) <= moment)
        cursor.visit_next(moment, visit);
      if (moment_after(traces_[i]) == moment) cursor.visit_end(moment, visit);
    }
  }
}

}  // namespace cmt::report
