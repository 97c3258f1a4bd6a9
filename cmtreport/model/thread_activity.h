/// The bytes that a thread asks for over time, for the report's picture of threads.
#pragma once

#include <cstdint>
#include <vector>

#include "cmtreport/model/intervals.h"

namespace cmt::report {

/// The bytes that one thread asked for in each interval of an IntervalCollector. Memory: 16 bytes for each interval in
/// which it asked for some, for at most twice the number of intervals.
class ThreadActivity {
 public:
  struct Entry {
    std::uint64_t end = 0;  ///< of the interval, on the axis; intervals may have become longer since
    std::uint64_t bytes = 0;

    /// Returns the number of its interval, from 0, if all have this width.
    std::size_t interval(std::uint64_t width) const {
      return end == 0 ? 0 : static_cast<std::size_t>((end - 1) / width);
    }
  };

  /// `end` and `width`: those of the collector's open interval.
  void add(std::uint64_t end, std::uint64_t width, std::uint64_t bytes) {
    if (entries_.empty() || entries_.back().end != end) open(end, width);
    entries_.back().bytes += bytes;
  }

  /// The entries by rising end.
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  void open(std::uint64_t end, std::uint64_t width);

  std::vector<Entry> entries_;
};

}  // namespace cmt::report
