// Joins the intervals of a thread when there are too many.
#include "cmtreport/model/thread_activity.h"

#include <cassert>
#include <utility>

namespace cmt::report {

void ThreadActivity::open(std::uint64_t end, std::uint64_t width) {
  if (entries_.size() == 2 * intervals_max) {  // of intervals that have become one since
    std::vector<Entry> joined;
    for (const Entry& entry : entries_) {
      if (joined.empty() || joined.back().interval(width) != entry.interval(width))
        joined.push_back(entry);
      else
        joined.back().bytes += entry.bytes;
    }
    entries_ = std::move(joined);
  }
  assert(entries_.empty() || entries_.back().end < end);
  entries_.push_back({.end = end, .bytes = 0});
}

}  // namespace cmt::report
