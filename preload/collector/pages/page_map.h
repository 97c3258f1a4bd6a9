#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "preload/collector/pages/page_runs.h"

namespace cmt::collector {

/// Which pages of a process are in memory, but for pages of zeros that were only read. From outside: /proc/PID/pagemap.
///
/// PAGEMAP_SCAN (Linux 6.7) passes over what is not there, 3 ns a page otherwise. Older kernels give 8 bytes for each
/// page; there a page that is shared with a forked process cannot be told from one of zeros, and is not seen. After an
/// exec the descriptor still means the memory that was, and reads nothing.
class PageMap {
 public:
  enum class How { best, by_reading };

  explicit PageMap(pid_t process, How how = How::best);
  ~PageMap();
  PageMap(const PageMap&) = delete;
  PageMap& operator=(const PageMap&) = delete;

  /// False: another user's process, or one that may not be looked at.
  bool is_open() const { return fd_ >= 0; }

  /// The pages that hold `bytes` from an address on, as sorted runs, counted from the page of the address. Nothing:
  /// they could not be read, or are more than `runs_max` runs.
  std::optional<std::vector<PageRun>> read(std::uint64_t address, std::uint64_t bytes);

  static constexpr std::size_t runs_max = 1 << 20;

 private:
  bool scan(std::uint64_t begin, std::uint64_t end, std::vector<PageRun>& runs);
  bool read_entries(std::uint64_t begin, std::uint64_t end, std::vector<PageRun>& runs) const;

  int fd_;
  bool has_scan_;
};

}  // namespace cmt::collector
