#include "cmtreplay/plan/marks.h"

#include <algorithm>
#include <utility>

namespace cmt::replay {

void MarkCandidates::add(Mark moment) {
  const std::size_t lanes = std::max<std::size_t>(moment.positions.size(), 1);
  kept_.push_back(std::move(moment));
  if (kept_.size() < std::max<std::size_t>(std::min(kept_max, positions_max / lanes), 256)) return;
  distance_ *= 2;
  std::erase_if(kept_, [this](const Mark& mark) { return !wants(mark.event); });
}

std::vector<Mark> MarkCandidates::choose(std::size_t count, Mark end) const {
  std::vector<Mark> marks;
  for (std::size_t part = 1; part < count; ++part) {
    const auto event = static_cast<std::uint64_t>(static_cast<double>(end.event) * static_cast<double>(part) /
                                                  static_cast<double>(count));
    const auto after =
        std::upper_bound(kept_.begin(), kept_.end(), event, [](auto at, const Mark& mark) { return at < mark.event; });
    if (after == kept_.begin()) continue;
    if (marks.empty() || marks.back().event < std::prev(after)->event) marks.push_back(*std::prev(after));
  }
  if (end.event != 0 && (marks.empty() || marks.back().event < end.event)) marks.push_back(std::move(end));
  return marks;
}

void include_mark(std::vector<Mark>& marks, const Mark& moment) {
  const auto after =
      std::lower_bound(marks.begin(), marks.end(), moment.event, [](const Mark& m, auto at) { return m.event < at; });
  if (after == marks.end() || after->event == moment.event) return;
  const bool has_before = after != marks.begin();
  const bool before_is_nearer = has_before && moment.event - std::prev(after)->event <= after->event - moment.event;
  if (before_is_nearer || (has_before && std::next(after) == marks.end()))
    *std::prev(after) = moment;
  else if (std::next(after) == marks.end())
    marks.insert(after, moment);
  else
    *after = moment;
}

}  // namespace cmt::replay
