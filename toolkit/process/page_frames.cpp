// kpageflags is an array of words of 8 bytes, one for each frame, with a bit for each property (the kernel's
// include/uapi/linux/kernel-page-flags.h). A huge page is a head and its tails, in frames that follow each other. Only
// the head has the flags of the whole page.
//
// pagemap and the bitmap of idle pages are such arrays too. pagemap has one for each page of the address space,
//
//   bits 0-54  the frame, 0 where we may not know it
//   bit 63     the page is resident
//
// and the bitmap one for each 64 frames. A bit that is written 0 changes nothing, so marking some of a word's frames
// leaves the others alone. The kernel (mm/page_idle.c) counts only words whose 64 frames all exist. If memory ends
// within a word, it returns 0 for that word, as at the end of a file.
#include "toolkit/process/page_frames.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
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

/// Words of the bitmap of idle pages that follow each other. The kernel transfers one page of bytes at most in a call.
constexpr std::size_t words_max = 512;
struct Words {
  std::uint64_t first = 0;
  std::vector<std::uint64_t> bits;  ///< those of the frames that are asked for

  std::size_t bytes() const { return bits.size() * sizeof bits[0]; }
  off_t offset() const { return static_cast<off_t>(first * sizeof bits[0]); }
};

/// The words that hold the frames, which are in rising order.
std::vector<Words> words_of(std::span<const std::uint64_t> frames) {
  assert(std::is_sorted(frames.begin(), frames.end()));
  std::vector<Words> runs;
  for (const std::uint64_t frame : frames) {
    const std::uint64_t word = frame / 64;
    const std::uint64_t end = runs.empty() ? 0 : runs.back().first + runs.back().bits.size();
    if (runs.empty() || word > end || (word == end && runs.back().bits.size() == words_max))
      runs.push_back({word, {0}});
    else if (word == end)
      runs.back().bits.push_back(0);
    runs.back().bits.back() |= bit(static_cast<unsigned>(frame % 64));
  }
  return runs;
}

/// Throws for a call on the bitmap that has not transferred all that was asked for.
void check_transfer(ssize_t transferred, std::size_t bytes, const std::string& path) {
  if (transferred != static_cast<ssize_t>(bytes))
    throw std::system_error(transferred < 0 ? errno : EIO, std::generic_category(), path);
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

/// In rising order. `kinds` mostly are, but a large page may form while the kernel's flags are read.
std::vector<std::uint64_t> heads_of(std::span<const FrameKind> kinds) {
  std::vector<std::uint64_t> heads;
  for (const FrameKind& kind : kinds) {
    if (kind.tracked && (heads.empty() || heads.back() != kind.head)) heads.push_back(kind.head);
  }
  if (!std::is_sorted(heads.begin(), heads.end())) {
    std::sort(heads.begin(), heads.end());
    heads.erase(std::unique(heads.begin(), heads.end()), heads.end());
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

/// All words can be read up to one, and none from there on: that one is found by bisection.
std::uint64_t PageIdle::find_end() const {
  std::uint64_t readable = 0, beyond = std::uint64_t{1} << 40;  // more words than physical addresses have
  while (readable < beyond) {
    const std::uint64_t word = readable + (beyond - readable) / 2;
    std::uint64_t bits = 0;
    const ssize_t got = pread(file_.get(), &bits, sizeof bits, static_cast<off_t>(word * sizeof bits));
    if (got < 0) check_transfer(got, sizeof bits, path_);
    if (got == sizeof bits)
      readable = word + 1;
    else
      beyond = word;
  }
  return readable * 64;
}

std::vector<FrameKind> PageIdle::kinds(PageFlags& flags, std::span<const std::uint64_t> frames) {
  if (end_ == 0) end_ = find_end();
  std::vector<FrameKind> result = flags.kinds(frames);
  for (FrameKind& kind : result) kind.tracked = kind.tracked && kind.head < end_;
  return result;
}

void PageIdle::set(std::span<const std::uint64_t> frames) const {
  for (const Words& words : words_of(frames))
    check_transfer(pwrite(file_.get(), words.bits.data(), words.bytes(), words.offset()), words.bytes(), path_);
}

std::vector<bool> PageIdle::idle(std::span<const std::uint64_t> frames) const {
  std::vector<bool> result;
  result.reserve(frames.size());
  for (Words& words : words_of(frames)) {
    check_transfer(pread(file_.get(), words.bits.data(), words.bytes(), words.offset()), words.bytes(), path_);
    const std::uint64_t end = words.first + words.bits.size();
    while (result.size() < frames.size() && frames[result.size()] / 64 < end) {
      const std::uint64_t frame = frames[result.size()];
      result.push_back(words.bits[frame / 64 - words.first] >> frame % 64 & 1);
    }
  }
  assert(result.size() == frames.size());
  return result;
}

std::uint64_t PageIdle::touched(std::span<const FrameKind> kinds) const {
  const std::vector<std::uint64_t> heads = heads_of(kinds);
  const std::vector<bool> is_idle = idle(heads);
  std::size_t place = 0;
  return static_cast<std::uint64_t>(std::count_if(kinds.begin(), kinds.end(), [&](const FrameKind& kind) {
    if (!kind.tracked) return true;
    if (place + 1 < heads.size() && heads[place + 1] == kind.head) ++place;
    if (heads[place] != kind.head)
      place = static_cast<std::size_t>(std::lower_bound(heads.begin(), heads.end(), kind.head) - heads.begin());
    assert(place < heads.size() && heads[place] == kind.head);
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
