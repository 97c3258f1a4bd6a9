#include "cmtwatch/sample/sample_clock.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <system_error>

namespace cmt::watch {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

timespec timespec_of(std::int64_t ns) { return {.tv_sec = ns / second_ns, .tv_nsec = ns % second_ns}; }

}  // namespace

Grid::Grid(std::int64_t interval_ns, double share_max)
    : interval_ns_(interval_ns),
      share_max_(share_max),
      fd_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), "timerfd");
  const itimerspec times{.it_interval = timespec_of(interval_ns), .it_value = timespec_of(interval_ns)};
  timerfd_settime(fd_, 0, &times, nullptr);
}

Grid::~Grid() { close(fd_); }

bool Grid::due() {
  std::uint64_t passed = 0;
  if (read(fd_, &passed, sizeof passed) != static_cast<ssize_t>(sizeof passed)) return false;
  const std::uint64_t skipped = std::min(to_skip_, passed);
  to_skip_ -= skipped;
  skipped_ += skipped;
  if (skipped == passed) return false;
  missed_ += passed - skipped - 1;
  return true;
}

void Grid::took(std::int64_t nanoseconds) {
  const double moments = static_cast<double>(nanoseconds) / (share_max_ * static_cast<double>(interval_ns_));
  to_skip_ = static_cast<std::uint64_t>(std::max(0.0, std::ceil(moments) - 1));
}

}  // namespace cmt::watch
