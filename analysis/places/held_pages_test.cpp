// Checks the bound of held pages against a count page by page.
#include "analysis/places/held_pages.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>

using cmt::analysis::HeldPages;

TEST_CASE("held pages: are those that a block was on and none is on now, counted one by one") {
  std::mt19937_64 random(11);
  HeldPages held;
  std::set<std::uint64_t> ever;
  std::map<std::uint64_t, std::uint64_t> live;  // first and last page, which no two blocks share
  std::uint64_t live_pages = 0;
  int wrong = 0;
  for (int round = 0; round < 20000; ++round) {
    const std::uint64_t first = random() % 3000 * 4;
    const std::uint64_t last = first + random() % 4;
    if (const auto found = live.find(first); found != live.end()) {
      live_pages -= found->second - first + 1;
      held.lose(found->second - first + 1);
      live.erase(found);
    } else {
      live.emplace(first, last);
      live_pages += last - first + 1;
      for (std::uint64_t page = first; page <= last; ++page) ever.insert(page);
      held.gain(first, last, last - first + 1);
    }
    wrong += held.live() != live_pages || held.most() != ever.size() - live_pages;
  }
  CHECK(wrong == 0);
}

TEST_CASE("held pages: a page on which no block ever was is not held, however the heap is laid out") {
  HeldPages held;
  held.gain(1, 1, 1);
  held.gain(1'000'000, 1'000'001, 2);
  CHECK(held.most() == 0);
  held.lose(2);
  CHECK(held.most() == 2);
}

TEST_CASE("held pages: are no more than what was resident and what has lost its last block since") {
  HeldPages held;
  held.gain(0, 99, 100);
  held.lose(100);
  CHECK(held.most() == 100);
  held.limit(30);
  CHECK(held.most() == 30);
  held.gain(0, 9, 10);
  CHECK(held.most() == 30);
  held.lose(10);
  CHECK(held.most() == 40);
  held.gain(0, 89, 90);
  CHECK(held.most() == 10);
}
