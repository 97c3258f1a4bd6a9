#include "cmtwatch/sample/sample_clock.h"

#include <doctest/doctest.h>
#include <poll.h>

using cmt::watch::Grid;

namespace {

constexpr std::int64_t millisecond_ns = 1'000'000;

bool due_in_time(Grid& grid) {
  pollfd ready{grid.fd(), POLLIN, 0};
  poll(&ready, 1, 10'000);
  return grid.due();
}

void let_moments_pass(int milliseconds) { poll(nullptr, 0, milliseconds); }

}  // namespace

TEST_CASE("grid: a moment comes once") {
  Grid grid(3'600'000 * millisecond_ns, 1);
  CHECK_FALSE(grid.due());
  Grid quick(millisecond_ns, 1);
  CHECK(due_in_time(quick));
}

TEST_CASE("grid: moments that pass unused are missed, and counted") {
  Grid grid(millisecond_ns, 1);
  let_moments_pass(20);
  CHECK(due_in_time(grid));
  CHECK(grid.missed() >= 18);
  CHECK(grid.skipped() == 0);
}

TEST_CASE("grid: after a dear sample so many moments are skipped that it keeps its share") {
  Grid grid(millisecond_ns, 0.1);
  CHECK(due_in_time(grid));
  grid.took(millisecond_ns);  // ten moments' worth at a tenth of the time
  while (!due_in_time(grid)) continue;
  CHECK(grid.skipped() == 9);
}

TEST_CASE("grid: a cheap sample skips nothing") {
  Grid grid(millisecond_ns, 0.1);
  CHECK(due_in_time(grid));
  grid.took(millisecond_ns / 20);
  CHECK(due_in_time(grid));
  CHECK(grid.skipped() == 0);
}
