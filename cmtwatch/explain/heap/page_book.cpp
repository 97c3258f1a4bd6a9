// Books chunks to pages. A page is done when a chunk begins beyond it, so that one page is held at a time.
#include "cmtwatch/explain/heap/page_book.h"

#include <algorithm>
#include <cassert>
#include <span>

#include "toolkit/output/numbers.h"

namespace cmt::watch::explain {
namespace {

/// A free chunk's header and the links that malloc writes to it. malloc_trim keeps the page that they are on.
constexpr std::uint64_t free_head_bytes = 48, top_head_bytes = 16;
constexpr std::uint64_t trim_keeps_bytes = 33;  // of the top: the smallest chunk and one byte
constexpr std::uint64_t partial_free_min = 64;  // less is padding

constexpr std::uint64_t large_free_min = 128 << 10;  // glibc's first mmap threshold

bool is_free(ChunkState state) { return state == ChunkState::free || state == ChunkState::fast; }

}  // namespace

std::uint64_t SizeGroups::least_bytes(std::size_t index) {
  return index < exact_groups ? index * unit : exact_groups * unit << (index - exact_groups);
}

std::string SizeGroups::text(std::uint64_t chunk_bytes) {
  const std::size_t group = index(chunk_bytes);
  const std::string least = output::with_commas(least_bytes(group));
  return (group < exact_groups ? least : least + " to " + output::with_commas(2 * least_bytes(group) - 1)) + " bytes";
}

PageBook::PageBook(AddressSpace& memory, Range region, HeapFigures& figures, const Trim& trim, BlockSites* sites)
    : memory_(memory),
      region_(region),
      figures_(figures),
      trim_(trim),
      sites_(sites),
      page_(page_begin(region.begin)) {}

std::uint64_t PageBook::resident(std::uint64_t begin, std::uint64_t end) {
  return end > begin ? memory_.resident_bytes({begin, end}) : 0;
}

void PageBook::book_other(std::uint64_t bytes, ChunkState state) {
  switch (state) {
    case ChunkState::live:
      break;
    case ChunkState::free:
      ++figures_.free_chunks;
      figures_.free_bytes += bytes;
      break;
    case ChunkState::fast:
      figures_.fast_bytes += bytes;
      break;
    case ChunkState::cached:
      ++figures_.cached_blocks;
      figures_.cached_bytes += bytes;
      break;
    case ChunkState::top:
      figures_.top_bytes += bytes;
      break;
    case ChunkState::overhead:
      figures_.overhead_bytes += bytes;
      break;
  }
}

// malloc_trim gives the whole pages within neighbouring free chunks. The kernel takes back whole huge pages of reserved
// ones, and refuses a range that does not begin with one.
void PageBook::end_free_run() {
  if (free_run_.end == 0) return;
  const std::uint64_t first = page_end(free_run_.begin + free_head_bytes), huge = trim_.huge_page_bytes;
  const std::uint64_t end = huge == 0 ? page_begin(free_run_.end) : free_run_.end / huge * huge;
  if (huge == 0 || first % huge == 0) figures_.trim_bytes += resident(first, end);
  free_run_ = {};
}

// A run of free chunks before the top becomes a part of it. malloc_trim does not give that of a thread's arena.
void PageBook::book_top(Range chunk, std::uint64_t free_from) {
  const std::uint64_t first = page_end(free_from + top_head_bytes);
  const std::uint64_t top = resident(first, page_begin(chunk.end));
  std::uint64_t given = 0;
  if (trim_.has_top && chunk.end == region_.end && chunk.end - free_from > trim_keeps_bytes) {
    const std::uint64_t step = std::max(trim_.top_step, page_bytes);
    const std::uint64_t shrinks_by = (chunk.end - free_from - trim_keeps_bytes) / step * step;
    given = resident(chunk.end - shrinks_by, chunk.end);
  }
  figures_.trim_bytes += given;
  if (!trim_.has_top) figures_.kept_tops_bytes += top;
}

void PageBook::end_page() {
  if (page_ >= region_.begin && page_ < region_.end && memory_.page(page_) == PageState::resident) {
    const std::uint64_t used = live_ + cached_ + overhead_, free = page_bytes - std::min(page_bytes, used);
    figures_.live_resident += live_;
    figures_.cached_resident += cached_;
    figures_.overhead_resident += overhead_;
    figures_.free_resident += free;
    if (used != 0 && free >= partial_free_min) {
      ++figures_.partial_pages;
      figures_.partial_free_bytes += free;
      ++figures_.pages_by_use[std::min(live_ + cached_, page_bytes - 1) * 10 / page_bytes];
      for (const Holder& holder : std::span(holders_).first(holders_count_)) {
        const std::uint64_t share = free / holders_count_;
        figures_.by_size[holder.group].pinned_bytes += share;
        if (holder.type != 0) figures_.by_type[holder.type].pinned_bytes += share;
        if (sites_ != nullptr) figures_.by_site[holder.site].pinned_bytes += share;
      }
    }
  }
  holders_count_ = 0;
  live_ = cached_ = overhead_ = 0;
}

void PageBook::book_on_page(Range piece, ChunkState state, const Holder& holder) {
  if (const std::uint64_t page = page_begin(piece.begin); page != page_) {
    end_page();
    page_ = page;
  }
  if (state == ChunkState::live) {
    add_holder(piece.bytes(), holder);
  } else if (state == ChunkState::cached) {
    cached_ += piece.bytes();
  } else if (state == ChunkState::overhead) {
    overhead_ += piece.bytes();
  }
}

// The whole pages of a chunk between its first and its last.
void PageBook::book_between(Range chunk, ChunkState state) {
  const std::uint64_t between = resident(page_begin(chunk.begin) + page_bytes, page_begin(chunk.end - 1));
  if (state == ChunkState::live)
    figures_.live_resident += between;
  else if (state == ChunkState::cached)
    figures_.cached_resident += between;
  else if (state == ChunkState::overhead)
    figures_.overhead_resident += between;
  else
    figures_.free_resident += between;
  if (chunk.bytes() >= large_free_min && (is_free(state) || state == ChunkState::top))
    figures_.large_free_resident += between;
}

void PageBook::book_chunk(Range chunk, ChunkState state, std::uint64_t type) {
  assert(chunk.begin < chunk.end && chunk.begin >= region_.begin && chunk.end <= region_.end);
  Holder holder{};
  if (state == ChunkState::live) {
    holder = {type, static_cast<std::uint32_t>(SizeGroups::index(chunk.bytes())),
              sites_ != nullptr ? sites_->site_of(chunk) : 0};
    book_live(chunk.bytes(), holder.group);
    if (type != 0) figures_.by_type[type].add(chunk.bytes());
    if (sites_ != nullptr) figures_.by_site[holder.site].add(chunk.bytes());
    end_free_run();
  } else {
    book_other(chunk.bytes(), state);
    if (is_free(state)) {
      if (free_run_.end == 0) free_run_.begin = chunk.begin;
      free_run_.end = chunk.end;
    } else if (state == ChunkState::top) {
      book_top(chunk, free_run_.end != 0 ? free_run_.begin : chunk.begin);
      free_run_ = {};
    } else {
      end_free_run();
    }
  }
  const std::uint64_t second = page_begin(chunk.begin) + page_bytes;
  book_on_page({chunk.begin, std::min(chunk.end, second)}, state, holder);
  if (chunk.end <= second) return;
  book_between(chunk, state);
  book_on_page({page_begin(chunk.end - 1), chunk.end}, state, holder);
}

void PageBook::finish() {
  end_free_run();
  end_page();
}

}  // namespace cmt::watch::explain
