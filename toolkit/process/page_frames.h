#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "toolkit/process/page_flags.h"

namespace cmt::process {

/// The kernel's bitmap of idle pages, where it is built with one (CONFIG_IDLE_PAGE_TRACKING) and we may use it: a bit
/// for each frame of physical memory, set by us and cleared by whoever touches the page. Unlike clear_refs it leaves
/// other users of the referenced bits alone, the kernel's reclaim above all.
///
/// Reading frames needs CAP_SYS_ADMIN. A huge page has its bit at its first frame.
class PageIdle {
 public:
  /// `bitmap` and the root of `frames()` let fixtures stand in for the kernel's files.
  explicit PageIdle(std::string bitmap = "/sys/kernel/mm/page_idle/bitmap");
  ~PageIdle();
  PageIdle(const PageIdle&) = delete;
  PageIdle& operator=(const PageIdle&) = delete;

  bool available() const { return fd_ >= 0; }

  /// Marks frames, which rise. Those that the kernel does not track stay as they are. Throws std::system_error.
  void set(std::span<const std::uint64_t> frames) const;

  /// Of each of the frames, which rise, whether it is still idle. One that was touched since set(), was never marked or
  /// is not tracked is not. Throws std::system_error.
  std::vector<bool> idle(std::span<const std::uint64_t> frames) const;

  /// How many of the frames of which these are the kinds, in rising order, are part of a page that is not idle. What
  /// is not tracked counts: it may have been touched.
  std::uint64_t touched(std::span<const FrameKind> kinds) const;

 private:
  std::string path_;
  int fd_;
};

/// A page of a process that is in memory: its number (its address over the page size) and its frame's; 0 for a frame
/// that is hidden from us.
struct ResidentPage {
  std::uint64_t page = 0;
  std::uint64_t frame = 0;
};

/// The resident pages between two addresses, rising. Reads 8 bytes for each page of addresses, resident or not. Throws
/// std::system_error where the process is gone.
std::vector<ResidentPage> resident_pages(int pid, std::uint64_t begin, std::uint64_t end,
                                         const std::string& root = "/proc");

/// The frames of the resident pages between two addresses, from /proc/PID/pagemap, rising. Empty where they are hidden
/// from us. Throws std::system_error where the process is gone.
std::vector<std::uint64_t> frames(int pid, std::uint64_t begin, std::uint64_t end, const std::string& root = "/proc");

}  // namespace cmt::process
