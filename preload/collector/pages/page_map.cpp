// Reads /proc/PID/pagemap by PAGEMAP_SCAN or, on older kernels, entry by entry.

#include "preload/collector/pages/page_map.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "preload/protocol.h"

namespace cmt::collector {
namespace {

/// As in Linux 6.7's fs.h.
struct ScanArguments {
  std::uint64_t size, flags, start, end, walk_end, regions, regions_max, pages_max;
  std::uint64_t inverted, all_of, any_of, returned;
};
struct ScanRegion {
  std::uint64_t start, end, categories;
};
constexpr unsigned long pagemap_scan = _IOWR('f', 16, ScanArguments);
constexpr std::uint64_t category_present = 1 << 3, category_swapped = 1 << 4, category_zeros = 1 << 5,
                        category_huge = 1 << 6;
constexpr std::size_t regions_at_once = 1024, entries_at_once = 4096;

/// The bits of an entry of pagemap.
constexpr std::uint64_t entry_exclusive = std::uint64_t{1} << 56, entry_of_file = std::uint64_t{1} << 61,
                        entry_swapped = std::uint64_t{1} << 62, entry_present = std::uint64_t{1} << 63;

/// Appends a run. Returns false if there are too many.
bool append_run(std::vector<PageRun>& runs, const PageRun& run) {
  if (!runs.empty() && runs.back().end() == run.first && runs.back().is_huge == run.is_huge) {
    runs.back().count += run.count;
    return true;
  }
  if (runs.size() == PageMap::runs_max) return false;
  runs.push_back(run);
  return true;
}

}  // namespace

PageMap::PageMap(pid_t process, How how)
    : fd_(::open(("/proc/" + std::to_string(process) + "/pagemap").c_str(), O_RDONLY | O_CLOEXEC)),
      has_scan_(how == How::best) {}

PageMap::~PageMap() {
  if (fd_ >= 0) ::close(fd_);
}

std::optional<std::vector<PageRun>> PageMap::read(std::uint64_t address, std::uint64_t bytes) {
  std::vector<PageRun> runs;
  const std::uint64_t begin = address / block_page_bytes * block_page_bytes;
  const std::uint64_t end = (address + bytes + block_page_bytes - 1) / block_page_bytes * block_page_bytes;
  if (!is_open()) return std::nullopt;
  if (has_scan_ && scan(begin, end, runs)) return runs;
  if (has_scan_) return std::nullopt;
  return read_entries(begin, end, runs) ? std::optional(std::move(runs)) : std::nullopt;
}

bool PageMap::scan(std::uint64_t begin, std::uint64_t end, std::vector<PageRun>& runs) {
  ScanRegion regions[regions_at_once];  // without an initial value, which would cost more than a question
  for (std::uint64_t from = begin; from < end;) {
    ScanArguments arguments{};
    arguments.size = sizeof arguments;
    arguments.start = from;
    arguments.end = end;
    arguments.regions = reinterpret_cast<std::uintptr_t>(regions);
    arguments.regions_max = regions_at_once;
    arguments.inverted = arguments.all_of = category_zeros;
    arguments.any_of = category_present | category_swapped;
    arguments.returned = category_huge;
    const int found = ::ioctl(fd_, pagemap_scan, &arguments);
    if (found < 0 && errno == EINTR) continue;
    if (found < 0 && (errno == ENOTTY || errno == EINVAL)) {
      has_scan_ = false;
      return read_entries(begin, end, runs);
    }
    if (found < 0) return false;
    for (int i = 0; i < found; ++i) {
      const ScanRegion& region = regions[i];
      PageRun run{(region.start - begin) / block_page_bytes, (region.end - region.start) / block_page_bytes};
      run.is_huge = (region.categories & category_huge) != 0;
      if (!append_run(runs, run)) return false;
    }
    if (static_cast<std::size_t>(found) < regions_at_once) return true;
    // After 512 regions the kernel begins anew by itself. If it then comes to the end, walk_end is of that moment.
    from = std::max(arguments.walk_end, regions[regions_at_once - 1].end);
  }
  return true;
}

bool PageMap::read_entries(std::uint64_t begin, std::uint64_t end, std::vector<PageRun>& runs) const {
  std::vector<std::uint64_t> entries(entries_at_once);
  const std::uint64_t pages = (end - begin) / block_page_bytes;
  for (std::uint64_t from = 0; from < pages;) {
    const std::size_t count = std::min<std::uint64_t>(pages - from, entries.size());
    const ssize_t got = ::pread(fd_, entries.data(), count * sizeof entries[0],
                                static_cast<off_t>((begin / block_page_bytes + from) * sizeof entries[0]));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    const std::size_t read = static_cast<std::size_t>(got) / sizeof entries[0];
    for (std::size_t i = 0; i < read; ++i) {
      const std::uint64_t entry = entries[i];
      const bool is_there = (entry & entry_swapped) != 0 ||
                            ((entry & entry_present) != 0 && (entry & (entry_exclusive | entry_of_file)) != 0);
      if (is_there && !append_run(runs, {from + i, 1})) return false;
    }
    from += read;
  }
  return true;
}

}  // namespace cmt::collector
