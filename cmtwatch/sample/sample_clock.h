#pragma once

#include <cstdint>

namespace cmt::watch {

/// The moments at which samples are due: every `interval` from the beginning on, whatever the work in between takes.
/// A moment that passes while the work goes on is missed, and counted; none is made up for.
///
/// Where a sample costs more than its share of the time, the grid skips moments, so that measuring takes no more than
/// that share; they are counted apart.
class Grid {
 public:
  /// `share_max`: of one processor's time, above 0; 1 lets everything pass. Throws std::system_error.
  Grid(std::int64_t interval_ns, double share_max);
  ~Grid();
  Grid(const Grid&) = delete;
  Grid& operator=(const Grid&) = delete;

  /// Readable, for poll(), when a moment has come.
  int fd() const { return fd_; }

  /// Whether a sample is due now. Call it when fd() is readable.
  bool due();

  /// What the last sample took, in wall time: decides how many moments are skipped.
  void took(std::int64_t nanoseconds);

  std::uint64_t missed() const { return missed_; }
  std::uint64_t skipped() const { return skipped_; }

 private:
  std::int64_t interval_ns_;
  double share_max_;
  int fd_;
  std::uint64_t to_skip_ = 0;
  std::uint64_t missed_ = 0;
  std::uint64_t skipped_ = 0;
};

}  // namespace cmt::watch
