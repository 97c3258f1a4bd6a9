// The pages of another process that are in memory, from /proc/PID/pagemap.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "preload/collector/pages/page_runs.h"

namespace cmt::collector {

/// Finds which pages of a process are in memory, except for pages of zeros that were only read.
///
/// PAGEMAP_SCAN (Linux 6.7) skips absent pages, and costs 3 ns for each other page. Older kernels give 8 bytes for each
/// page. They cannot distinguish a page that is shared with a forked process from a page of zeros, so such a page is
/// not found. After an exec the descriptor still refers to the memory from before, and reads nothing.
class PageMap {
 public:
  enum class How { best, by_reading };

  explicit PageMap(pid_t process, How how = How::best);
  ~PageMap();
  PageMap(const PageMap&) = delete;
  PageMap& operator=(const PageMap&) = delete;

  /// False for another user's process, and for one that may not be inspected.
  bool is_open() const { return fd_ >= 0; }

  /// Returns the pages that hold `bytes` from an address on, as sorted runs, counted from the page of the address.
  /// Returns nullopt if they cannot be read, or are more than `runs_max` runs.
  std::optional<std::vector<PageRun>> read(std::uint64_t address, std::uint64_t bytes);

  static constexpr std::size_t runs_max = 1 << 20;

 private:
  bool scan(std::uint64_t begin, std::uint64_t end, std::vector<PageRun>& runs);
  bool read_entries(std::uint64_t begin, std::uint64_t end, std::vector<PageRun>& runs) const;

  int fd_;
  bool has_scan_;
};

}  // namespace cmt::collector
