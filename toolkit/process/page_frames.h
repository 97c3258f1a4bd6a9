/// Frames of physical memory: which ones the pages of a process are in, what they are, and whether they are idle.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "toolkit/process/proc_file.h"

namespace cmt::process {

/// The properties of a frame that idle tracking needs.
struct FrameKind {
  std::uint64_t head = 0;  ///< the first frame of the huge page that it is a part of, else itself
  bool tracked = false;    ///< the kernel reports whether it is idle, as it does for pages that it may reclaim
  bool huge = false;       ///< part of a transparent huge page, of whatever size
};

/// The flags of frames of physical memory, /proc/kpageflags. Reading them needs CAP_SYS_ADMIN.
class PageFlags {
 public:
  /// `root` is the /proc that the file is in.
  explicit PageFlags(const std::string& root = "/proc");

  bool available() const { return file_.get() >= 0; }

  /// The kinds of frames, given in rising order. Throws std::system_error.
  std::vector<FrameKind> kinds(std::span<const std::uint64_t> frames);

 private:
  std::uint64_t flags(std::uint64_t frame);

  std::string path_;
  Fd file_;
  std::uint64_t block_ = 0;  ///< the number of the block in held_
  std::vector<std::uint64_t> held_;
};

/// The frames whose bits say whether these are idle: the first frame of each tracked page, once, in rising order.
std::vector<std::uint64_t> heads_of(std::span<const FrameKind> kinds);

/// The kernel's bitmap of idle pages, with a bit for each frame of physical memory. We set a bit, and the kernel clears
/// it when the page is touched. Unlike clear_refs the bitmap does not disturb other users of the referenced bits, above
/// all the kernel's reclaim. A kernel may lack it (CONFIG_IDLE_PAGE_TRACKING), or forbid its use.
///
/// Reading frames needs CAP_SYS_ADMIN. A huge page has its bit at its first frame.
class PageIdle {
 public:
  /// `bitmap` is another path for fixtures.
  explicit PageIdle(std::string bitmap = "/sys/kernel/mm/page_idle/bitmap");

  bool available() const { return file_.get() >= 0; }

  /// The kinds of frames, given in rising order. Tracked are only those whose bits the kernel hands out: it keeps back
  /// the last word of the bitmap where memory ends within it. Throws std::system_error.
  std::vector<FrameKind> kinds(PageFlags& flags, std::span<const std::uint64_t> frames);

  /// Marks tracked frames, given in rising order, as idle. Throws std::system_error.
  void set(std::span<const std::uint64_t> frames) const;

  /// Whether each of the tracked frames, given in rising order, is still idle: marked by set(), and not touched since.
  /// Throws std::system_error.
  std::vector<bool> idle(std::span<const std::uint64_t> frames) const;

  /// How many of the frames with these kinds, in rising order, are part of a page that is not idle. Untracked frames
  /// count: they may have been touched.
  std::uint64_t touched(std::span<const FrameKind> kinds) const;

 private:
  std::uint64_t find_end() const;

  std::string path_;
  Fd file_;
  std::uint64_t end_ = 0;  ///< one past the last frame whose bit can be read; 0: not yet known
};

/// A page of a process that is in memory: its number, which is its address over the page size, and its frame's number.
/// The frame is 0 if it is hidden from us.
struct ResidentPage {
  std::uint64_t page = 0;
  std::uint64_t frame = 0;
};

/// The resident pages between two addresses, rising. Reads 8 bytes for each page of addresses, resident or not. Throws
/// std::system_error if the process is gone.
std::vector<ResidentPage> resident_pages(int pid, std::uint64_t begin, std::uint64_t end,
                                         const std::string& root = "/proc");

/// The frames of the resident pages between two addresses, from /proc/PID/pagemap, rising. Empty if they are hidden
/// from us. Throws std::system_error if the process is gone.
std::vector<std::uint64_t> frames(int pid, std::uint64_t begin, std::uint64_t end, const std::string& root = "/proc");

}  // namespace cmt::process
