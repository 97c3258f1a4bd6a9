// Checks that each item is done once, in order, and that exceptions of threads arrive.

#include "toolkit/threads/share_out.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <vector>

using cmt::threads::share_out;

TEST_CASE("work is shared out, each item once, and by one thread in order") {
  for (const unsigned jobs : {1U, 2U, 7U}) {
    std::vector<std::atomic<int>> done(100);
    std::atomic<bool> is_below = true;
    share_out(done.size(), jobs, [&](std::size_t item, std::size_t worker) {
      ++done[item];
      if (worker >= jobs) is_below = false;
    });
    CHECK(std::all_of(done.begin(), done.end(), [](const std::atomic<int>& times) { return times == 1; }));
    CHECK(is_below);
  }
  std::vector<std::size_t> order;
  share_out(3, 1, [&](std::size_t item, std::size_t) { order.push_back(item); });
  CHECK(order == std::vector<std::size_t>{0, 1, 2});
  share_out(0, 2, [](std::size_t, std::size_t) { throw std::logic_error("there is nothing to do"); });
}

TEST_CASE("work: an exception of a part is thrown when all threads have stopped") {
  for (const unsigned jobs : {1U, 3U}) {
    std::atomic<int> running = 0;
    CHECK_THROWS_WITH(share_out(50, jobs,
                                [&](std::size_t item, std::size_t) {
                                  ++running;
                                  if (item == 20) {
                                    --running;
                                    throw std::runtime_error("item 20");
                                  }
                                  --running;
                                }),
                      "item 20");
    CHECK(running == 0);
  }
}
