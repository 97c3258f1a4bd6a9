// Sets of a block's pages, as runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace cmt::collector {

/// Pages of a block, in units of block_page_bytes, counted from the page in which the block begins.
struct PageRun {
  std::uint64_t first = 0, count = 0;
  bool is_unsure = false;  ///< in memory, but the program may only have read them
  bool is_huge = false;    ///< parts of huge pages

  std::uint64_t end() const { return first + count; }
  bool operator==(const PageRun&) const = default;
};

/// A set of pages as runs: 16 bytes for each run of pages in memory, so that a reservation of 1 TiB costs nothing. Runs
/// are sorted and not adjacent.
class PageSet {
 public:
  struct Run {
    std::uint64_t first, end;
    bool operator==(const Run&) const = default;
  };

  const std::vector<Run>& runs() const { return runs_; }
  bool empty() const { return runs_.empty(); }
  /// Whether all pages below `end` are in the set.
  bool has_all_below(std::uint64_t end) const {
    return end == 0 || (!runs_.empty() && runs_[0].first == 0 && runs_[0].end >= end);
  }

  /// Adds sorted runs, and calls visit(run) with each part that was not in the set, by rising number.
  template <class Visit>
  void add(const std::vector<PageRun>& added, const Visit& visit) {
    std::vector<Run> all;
    all.reserve(runs_.size() + added.size());
    std::size_t passed = 0, merged = 0;  // how many runs of the set end before the added one; are in `all`
    for (const PageRun& run : added) {
      while (passed < runs_.size() && runs_[passed].end <= run.first) ++passed;
      std::uint64_t from = run.first;
      for (std::size_t i = passed; i < runs_.size() && runs_[i].first < run.end(); ++i) {
        if (runs_[i].first > from) visit(part_of(run, from, runs_[i].first));
        from = std::max(from, runs_[i].end);
      }
      if (from < run.end()) visit(part_of(run, from, run.end()));
      while (merged < runs_.size() && runs_[merged].first <= run.first) append(all, runs_[merged++]);
      append(all, {run.first, run.end()});
    }
    while (merged < runs_.size()) append(all, runs_[merged++]);
    runs_ = std::move(all);
  }
  void add(const std::vector<PageRun>& added) {
    add(added, [](const PageRun&) {});
  }

  /// Removes the pages from `first` to before `end`. Returns whether any of them was in the set.
  bool remove(std::uint64_t first, std::uint64_t end) {
    std::vector<Run> left;
    bool has_changed = false;
    for (const Run& run : runs_) {
      if (run.end <= first || run.first >= end) {
        left.push_back(run);
        continue;
      }
      has_changed = true;
      if (run.first < first) left.push_back({run.first, first});
      if (run.end > end) left.push_back({end, run.end});
    }
    runs_ = std::move(left);
    return has_changed;
  }

  /// Calls visit(run) with each run of pages below `end` that is not in the set.
  template <class Visit>
  void for_each_missing(std::uint64_t end, const Visit& visit) const {
    std::uint64_t from = 0;
    for (const Run& run : runs_) {
      if (run.first >= end) break;
      if (run.first > from) visit(PageRun{from, run.first - from});
      from = run.end;
    }
    if (from < end) visit(PageRun{from, end - from});
  }

 private:
  static PageRun part_of(const PageRun& run, std::uint64_t first, std::uint64_t end) {
    return {first, end - first, run.is_unsure, run.is_huge};
  }
  static void append(std::vector<Run>& all, Run run) {
    if (!all.empty() && run.first <= all.back().end)
      all.back().end = std::max(all.back().end, run.end);
    else
      all.push_back(run);
  }

  std::vector<Run> runs_;
};

}  // namespace cmt::collector
