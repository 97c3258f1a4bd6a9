// kpageflags is an array of words of 8 bytes, one for each frame, with a bit for each property (the kernel's
// include/uapi/linux/kernel-page-flags.h). A huge page is a head and its tails, in frames that follow each other; what
// holds for all of it is said of the head.
#include "toolkit/process/page_flags.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace cmt::process {
namespace {

constexpr std::uint64_t bit(unsigned number) { return std::uint64_t{1} << number; }
constexpr std::uint64_t lru = bit(5), compound_tail = bit(16), transparent_huge = bit(22);
constexpr std::uint64_t frames_held = 512;

}  // namespace

PageFlags::PageFlags(const std::string& root)
    : path_(root + "/kpageflags"), file_(open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {}

std::vector<FrameKind> PageFlags::kinds(std::span<const std::uint64_t> frames) {
  std::vector<FrameKind> result;
  result.reserve(frames.size());
  for (const std::uint64_t frame : frames) {
    const bool is_tail = flags(frame) & compound_tail;
    const bool follows = !result.empty() && frames[result.size() - 1] + 1 == frame;
    std::uint64_t head = frame;
    if (is_tail && follows)
      head = result.back().head;  // a page's tails are found by one search
    else
      while (head != 0 && flags(head) & compound_tail) --head;
    const std::uint64_t of_all = flags(head);
    result.push_back({head, (of_all & lru) != 0, (of_all & transparent_huge) != 0});
  }
  return result;
}

std::vector<std::uint64_t> heads_of(std::span<const FrameKind> kinds) {
  std::vector<std::uint64_t> heads;
  for (const FrameKind& kind : kinds) {
    if (kind.tracked && (heads.empty() || heads.back() != kind.head)) heads.push_back(kind.head);
  }
  return heads;
}

/// Frames are asked for in their order, mostly, so a block at a time is read.
std::uint64_t PageFlags::flags(std::uint64_t frame) {
  if (held_.empty() || block_ != frame / frames_held) {
    block_ = frame / frames_held;
    held_.assign(frames_held, 0);
    const auto offset = static_cast<off_t>(block_ * frames_held * sizeof held_[0]);
    if (pread(file_.get(), held_.data(), frames_held * sizeof held_[0], offset) < 0) {
      held_.clear();
      throw std::system_error(errno, std::generic_category(), path_);
    }
  }
  return held_[frame % frames_held];
}

}  // namespace cmt::process
