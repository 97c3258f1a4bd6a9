#include "cmtreplay/marks.h"

#include <algorithm>

namespace cmt::replay {

void MarkKeeper::pass(const Mark& moment) {
  last_ = moment;
  if (moment.event % distance_ != 0) return;
  kept_.push_back(moment);
  if (kept_.size() < kept_max) return;
  distance_ *= 2;
  std::erase_if(kept_, [this](const Mark& mark) { return mark.event % distance_ != 0; });
}

std::vector<Mark> MarkKeeper::choose(std::size_t count) const {
  std::vector<Mark> marks;
  for (std::size_t part = 1; part < count; ++part) {
    const auto event = static_cast<std::uint64_t>(static_cast<double>(last_.event) * static_cast<double>(part) /
                                                  static_cast<double>(count));
    const auto after =
        std::upper_bound(kept_.begin(), kept_.end(), event, [](auto at, const Mark& mark) { return at < mark.event; });
    if (after == kept_.begin()) continue;
    if (marks.empty() || marks.back().event < std::prev(after)->event) marks.push_back(*std::prev(after));
  }
  if (last_.event != 0 && (marks.empty() || marks.back().event < last_.event)) marks.push_back(last_);
  return marks;
}

}  // namespace cmt::replay
