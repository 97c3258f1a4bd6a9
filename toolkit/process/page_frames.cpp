// kpageflags is an array of words of 8 bytes, one for each frame, with a bit for each property (the kernel's
// include/uapi/linux/kernel-page-flags.h). A huge page is a head and its tails, in frames that follow each other; the
// flags that hold for the whole page are set at the head alone.
//
// pagemap and the bitmap of idle pages are such arrays too. pagemap has one for each page of the address space,
//
//   bits 0-54  the frame, 0 where we may not know it
//   bit 63     the page is resident
//
// and the bitmap one for each 64 frames. A bit that is written 0 changes nothing, so marking some of a word's frames
// leaves the others alone.
#include "toolkit/process/page_frames.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "toolkit/process/system.h"

namespace cmt::process {
namespace {

constexpr std::uint64_t bit(unsigned number) { return std::uint64_t{1} << number; }
constexpr std::uint64_t lru = bit(5), compound_tail = bit(16), transparent_huge = bit(22);
constexpr std::uint64_t frames_held = 512;

constexpr std::uint64_t frame_mask = (std::uint64_t{1} << 55) - 1;
constexpr std::uint64_t resident = std::uint64_t{1} << 63;

/// Calls `visit(word, bits)` for each word of the bitmap that holds some of the frames, with theirs set.
template <class Visit>
void for_each_word(std::span<const std::uint64_t> frames, Visit visit) {
  for (std::size_t i = 0; i < frames.size();) {
    const std::uint64_t word = frames[i] / 64;
    std::uint64_t bits = 0;
    for (; i < frames.size() && frames[i] / 64 == word; ++i) bits |= std::uint64_t{1} << frames[i] % 64;
    visit(word, bits);
  }
}

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
      head = result.back().head;  // one search for all tails of a page
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

/// Most callers ask in rising order, so a whole block of flags is read at once.
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

PageIdle::PageIdle(std::string bitmap) : path_(std::move(bitmap)), file_(open(path_.c_str(), O_RDWR | O_CLOEXEC)) {}

void PageIdle::set(std::span<const std::uint64_t> frames) const {
  for_each_word(frames, [this](std::uint64_t word, std::uint64_t bits) {
    if (pwrite(file_.get(), &bits, sizeof bits, static_cast<off_t>(word * sizeof bits)) != sizeof bits)
      throw std::system_error(errno, std::generic_category(), path_);
  });
}

std::vector<bool> PageIdle::idle(std::span<const std::uint64_t> frames) const {
  std::vector<bool> result;
  result.reserve(frames.size());
  for_each_word(frames, [&](std::uint64_t word, std::uint64_t) {
    std::uint64_t idle = 0;
    const ssize_t got = pread(file_.get(), &idle, sizeof idle, static_cast<off_t>(word * sizeof idle));
    if (got != sizeof idle) throw std::system_error(got < 0 ? errno : EIO, std::generic_category(), path_);
    while (result.size() < frames.size() && frames[result.size()] / 64 == word)
      result.push_back(idle >> frames[result.size()] % 64 & 1);
  });
  return result;
}

std::uint64_t PageIdle::touched(std::span<const FrameKind> kinds) const {
  const std::vector<std::uint64_t> heads = heads_of(kinds);
  const std::vector<bool> is_idle = idle(heads);
  std::size_t place = 0;
  return static_cast<std::uint64_t>(std::count_if(kinds.begin(), kinds.end(), [&](const FrameKind& kind) {
    if (!kind.tracked) return true;
    if (heads[place] != kind.head) ++place;
    return !is_idle[place];
  }));
}

std::vector<ResidentPage> resident_pages(int pid, std::uint64_t begin, std::uint64_t end, const std::string& root) {
  std::vector<ResidentPage> result;
  const Fd file(ProcessFolder(pid, root).open("pagemap"));
  std::array<std::uint64_t, 4096> entries;
  const std::uint64_t end_page = (end + page_bytes() - 1) / page_bytes();
  for (std::uint64_t page = begin / page_bytes(); page < end_page;) {
    const std::uint64_t wanted = std::min<std::uint64_t>(entries.size(), end_page - page);
    const ssize_t got =
        pread(file.get(), entries.data(), wanted * sizeof entries[0], static_cast<off_t>(page * sizeof entries[0]));
    if (got < static_cast<ssize_t>(sizeof entries[0])) break;
    const auto count = static_cast<std::size_t>(got) / sizeof entries[0];
    for (std::size_t i = 0; i < count; ++i) {
      if (entries[i] & resident) result.push_back({page + i, entries[i] & frame_mask});
    }
    page += count;
  }
  return result;
}

std::vector<std::uint64_t> frames(int pid, std::uint64_t begin, std::uint64_t end, const std::string& root) {
  std::vector<std::uint64_t> result;
  for (const ResidentPage& page : resident_pages(pid, begin, end, root)) {
    if (page.frame != 0) result.push_back(page.frame);
  }
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace cmt::process
