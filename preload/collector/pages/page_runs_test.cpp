// Checks sets of pages against a list of single pages.

#include "preload/collector/pages/page_runs.h"

#include <doctest/doctest.h>

#include <set>

namespace cmt::collector {
namespace {

std::set<std::uint64_t> pages_of(const std::vector<PageRun>& runs) {
  std::set<std::uint64_t> pages;
  for (const PageRun& run : runs)
    for (std::uint64_t page = run.first; page < run.end(); ++page) pages.insert(page);
  return pages;
}

std::set<std::uint64_t> pages_of(const PageSet& set) {
  std::vector<PageRun> runs;
  for (const PageSet::Run& run : set.runs()) runs.push_back({run.first, run.end - run.first});
  return pages_of(runs);
}

TEST_CASE("a page set tells each page once, and its runs do not touch") {
  std::uint32_t random = 1;
  const auto next = [&random](std::uint32_t below) {
    random = random * 1103515245 + 12345;
    return (random >> 16) % below;
  };
  for (int round = 0; round < 300; ++round) {
    PageSet set;
    std::set<std::uint64_t> all;
    for (int step = 0; step < 6; ++step) {
      std::vector<PageRun> added;
      for (std::uint64_t at = next(5); at < 60; at += 1 + next(9)) {
        added.push_back({at, 1 + next(6), next(2) == 0});
        at = added.back().end();
      }
      std::vector<PageRun> news;
      set.add(added, [&](const PageRun& run) { news.push_back(run); });
      std::set<std::uint64_t> wanted = pages_of(added);
      for (const std::uint64_t page : all) wanted.erase(page);
      CHECK(pages_of(news) == wanted);
      all.merge(wanted);
      CHECK(pages_of(set) == all);
      for (std::size_t i = 1; i < set.runs().size(); ++i) CHECK(set.runs()[i - 1].end < set.runs()[i].first);
      std::vector<PageRun> missing;
      set.for_each_missing(50, [&](const PageRun& run) { missing.push_back(run); });
      for (std::uint64_t page = 0; page < 50; ++page) CHECK(pages_of(missing).contains(page) != all.contains(page));
      CHECK(set.has_all_below(3) == (all.contains(0) && all.contains(1) && all.contains(2)));
      const std::uint64_t first = next(60), end = first + 1 + next(20);
      bool had_any = false;
      for (std::uint64_t page = first; page < end; ++page) had_any |= all.erase(page) != 0;
      CHECK(set.remove(first, end) == had_any);
      CHECK(pages_of(set) == all);
    }
  }
}

}  // namespace
}  // namespace cmt::collector
