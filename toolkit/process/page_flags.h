#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "toolkit/process/fd.h"

namespace cmt::process {

/// What the kernel says of a frame, as far as idle tracking is concerned.
struct FrameKind {
  std::uint64_t head = 0;  ///< the first frame of the huge page that it is a part of, else itself
  bool tracked = false;    ///< whether the kernel tracks whether it is idle: what it may give up, and nothing else
  bool huge = false;       ///< part of a transparent huge page, of whatever size
};

/// The flags of frames of physical memory, /proc/kpageflags. Reading them needs CAP_SYS_ADMIN.
class PageFlags {
 public:
  /// `root` is the /proc that the file is in.
  explicit PageFlags(const std::string& root = "/proc");

  bool available() const { return file_.get() >= 0; }

  /// What frames are, which rise. Throws std::system_error.
  std::vector<FrameKind> kinds(std::span<const std::uint64_t> frames);

 private:
  std::uint64_t flags(std::uint64_t frame);

  std::string path_;
  Fd file_;
  std::uint64_t block_ = 0;  ///< which one is held
  std::vector<std::uint64_t> held_;
};

/// The frames whose bits tell whether these are idle: the first of each tracked page, once, rising as the frames do.
std::vector<std::uint64_t> heads_of(std::span<const FrameKind> kinds);

}  // namespace cmt::process
