// The walk over chunks. A process that runs changes its heap meanwhile: then the walk loses the chain, and takes it up
// again where eight chunks follow each other.
#include "cmtwatch/explain/heap/walk.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace cmt::watch::explain {
namespace {

constexpr std::uint64_t chunk_bytes_min = 32;
constexpr std::uint64_t window_bytes_max = 256 << 10;
constexpr int chain_of_resync = 8, chain_of_piece = 2, chain_tried = 6;

std::uint64_t word_at(const std::uint8_t* bytes) {
  std::uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

/// Whether a size word can be that of a chunk at an address.
bool is_sound(std::uint64_t size_word, std::uint64_t chunk, std::uint64_t end) {
  const std::uint64_t bytes = chunk_bytes(size_word);
  return (size_word & chunk_is_mapped) == 0 && bytes >= chunk_alignment && bytes % chunk_alignment == 0 &&
         chunk < end && bytes <= end - chunk;
}

/// The end of a heap, or of a part of it, is marked by chunks that have no block.
bool is_fencepost(std::uint64_t size_word) { return size_word == 1 || chunk_bytes(size_word) == chunk_alignment; }

}  // namespace

HeapWalker::HeapWalker(AddressSpace& memory, const GlibcMalloc& malloc, const FreeLists& lists, HeapFigures& figures,
                       BlockSites* sites)
    : memory_(memory), malloc_(malloc), figures_(figures), sites_(sites), window_(memory), listed_chunks_(lists) {}

void HeapWalker::Window::move_to(Range within) {
  within_ = within;
  held_ = {};
  growth_ = 0;
}

bool HeapWalker::Window::fill(std::uint64_t address, std::uint64_t bytes) {
  if (address < within_.begin || address + bytes > within_.end) return false;
  if (memory_.page(address) != PageState::resident) return false;
  const bool goes_on = held_.end != 0 && address + 64 >= held_.end && address < held_.end + page_bytes;
  growth_ = goes_on ? std::min(growth_ * 4, window_bytes_max) : 2 * page_bytes;
  held_.begin = page_begin(address);
  held_.end = std::min(within_.end, std::max(held_.begin + growth_, page_end(address + bytes)));
  held_.end = memory_.next_swapped(held_);  // a page in swap is not one of zeros
  bytes_.resize(held_.bytes());
  if (address + bytes <= held_.end && memory_.read_pages(held_, bytes_.data())) return true;
  held_ = {};
  return false;
}

HeapWalker::ListedChunks::ListedChunks(const FreeLists& lists) {
  chunks_.reserve(lists.cached.size() + lists.fast.size() + lists.caches.size() + 1);
  for (const std::uint64_t chunk : lists.cached) chunks_.push_back({chunk, ChunkState::cached});
  for (const std::uint64_t chunk : lists.fast) chunks_.push_back({chunk, ChunkState::fast});
  for (const std::uint64_t chunk : lists.caches) chunks_.push_back({chunk, ChunkState::overhead});
  std::stable_sort(chunks_.begin(), chunks_.end(),
                   [](const Chunk& a, const Chunk& b) { return a.address < b.address; });
  chunks_.push_back({UINT64_MAX, ChunkState::live});
}

void HeapWalker::ListedChunks::move_to(std::uint64_t address) {
  const auto at = std::lower_bound(chunks_.begin(), chunks_.end(), address,
                                   [](const Chunk& chunk, std::uint64_t wanted) { return chunk.address < wanted; });
  at_ = static_cast<std::size_t>(at - chunks_.begin());
}

std::optional<std::uint64_t> HeapWalker::size_word(std::uint64_t chunk) {
  const std::uint8_t* const head = window_.at(chunk, chunk_head_bytes);
  return head == nullptr ? std::nullopt : std::optional(word_at(head + 8));
}

// The first word of a block, if it points into the data of a module: to a table of virtual functions, most likely.
std::uint64_t HeapWalker::type_of(std::uint64_t chunk) {
  const std::uint8_t* const head = window_.at(chunk, chunk_head_bytes + 8);
  const std::uint64_t word = head == nullptr ? 0 : word_at(head + chunk_head_bytes);
  const bool is_fixed = word >= 0x400000 && word >> 32 == 0;  // of a program that is linked to fixed addresses
  const bool may_be_type = word >> 40 == 0x7f || word >> 44 == 5 || is_fixed;  // where the kernel maps modules
  return may_be_type && word % 8 == 0 && (last_module_.contains(word) || find_module(word)) ? word : 0;
}

bool HeapWalker::find_module(std::uint64_t address) {
  const process::Mapping* const mapping = memory_.find(address);
  if (mapping == nullptr || !mapping->name.starts_with("/") || mapping->permissions[2] == 'x') return false;
  last_module_ = {mapping->begin, mapping->end};
  return true;
}

// Whether eight chunks follow each other, or some up to the end.
bool HeapWalker::is_chain(std::uint64_t chunk, std::uint64_t end, std::uint64_t least_bytes) {
  for (int count = 0; count < chain_of_resync; ++count) {
    const auto size = size_word(chunk);
    if (!size) return false;
    if (!is_sound(*size, chunk, end) || chunk_bytes(*size) < least_bytes) return false;
    chunk += chunk_bytes(*size);
    if (chunk == end) return count > 0;
  }
  return true;
}

std::uint64_t HeapWalker::find_chain(PageBook& book, std::uint64_t from, const HeapRegion& region) {
  std::uint64_t at = from + chunk_alignment;
  while (at < region.end && at != region.top && !is_chain(at, region.end, chunk_bytes_min)) {
    at += chunk_alignment;
    if (at < region.end && memory_.page(at) != PageState::resident) at = memory_.next_resident({at, region.end});
  }
  at = std::min(at, region.end);
  book.add({from, at}, ChunkState::overhead);
  return at;
}

// Pages in swap are counted by themselves.
void HeapWalker::count_lost(Range range, bool is_in_swap) {
  if (is_in_swap) return;
  ++figures_.resyncs;
  figures_.skipped_bytes += range.bytes();
}

std::uint64_t HeapWalker::resync(PageBook& book, std::uint64_t from, const HeapRegion& region) {
  const std::uint64_t at = find_chain(book, from, region);
  count_lost({from, at}, memory_.page(from) == PageState::swapped);
  return at;
}

// A chunk whose successor cannot be read, because its page is swapped out or gone.
std::uint64_t HeapWalker::pass_unreadable(PageBook& book, std::uint64_t chunk, std::uint64_t next,
                                          const HeapRegion& region) {
  book.add({chunk, next}, ChunkState::live);
  const bool is_in_swap = memory_.page(next) == PageState::swapped;
  std::uint64_t at = next;
  if (at < region.end && memory_.page(at) != PageState::resident) at = memory_.next_resident({at, region.end});
  at = std::min(at, region.end);
  if (at > next) book.add({next, at}, ChunkState::overhead);
  if (at < region.end && !is_chain(at, region.end, chunk_bytes_min)) at = find_chain(book, at, region);
  count_lost({next, at}, is_in_swap);
  return at;
}

// Returns where the chunks go on, or, at the end of the heap, after the fencepost.
std::uint64_t HeapWalker::pass_fencepost(PageBook& book, const HeapRegion& region, std::uint64_t chunk) {
  const std::uint64_t next = std::min(chunk + chunk_alignment, region.end);
  book.add({chunk, next}, ChunkState::overhead);
  if (next == region.end || (region.is_piece && next % page_bytes == 0)) return next;
  const auto size = size_word(next);
  if (size && (is_sound(*size, next, region.end) || *size == 1)) return next;
  const std::uint64_t chain = find_chain(book, next, region);
  figures_.foreign_bytes += chain - next;
  return chain;
}

// Whether a chunk, at the place of the top or at the region's end, is the top of its arena. The program may have moved
// the top since its place was read. The last chunk of a heap is a top, or a fencepost.
bool HeapWalker::is_top(const HeapRegion& region, std::uint64_t chunk, std::uint64_t next) {
  if (region.is_piece) return chunk == region.top;
  if (next == region.end) return true;
  const auto size = size_word(next);
  const bool leads_on = size && is_sound(*size, next, region.end) &&
                        (next + chunk_bytes(*size) == region.end || is_chain(next, region.end, chunk_bytes_min));
  return !leads_on;
}

// Returns where the chunks end.
std::uint64_t HeapWalker::walk_chunks(const HeapRegion& region, PageBook& book) {
  std::uint64_t chunk = region.first;
  std::uint64_t known_size = 0;  // of this chunk, as the step before has read it; 0: not known
  while (chunk < region.end) {
    const auto size = known_size != 0 ? std::optional(std::exchange(known_size, 0)) : size_word(chunk);
    if (!size && region.is_piece) return chunk;
    if (!size) {
      chunk = resync(book, chunk, region);
      continue;
    }
    if (is_fencepost(*size)) {
      const bool is_end = *size == 1 && !region.is_main;
      chunk = pass_fencepost(book, region, chunk);
      if (is_end || (region.is_piece && chunk % page_bytes == 0)) return chunk;
      continue;
    }
    if (!is_sound(*size, chunk, region.end)) {
      if (region.is_piece) return chunk;
      chunk = resync(book, chunk, region);
      continue;
    }
    ++figures_.chunks;
    const std::uint64_t next = chunk + chunk_bytes(*size);
    const std::uint64_t type = type_of(chunk);  // before the window moves on
    if ((chunk == region.top || next == region.end) && is_top(region, chunk, next)) {
      ++figures_.tops;
      book.add({chunk, next}, ChunkState::top);
      return next;
    }
    const auto next_size = next < region.end ? size_word(next) : std::optional(chunk_before_in_use);
    if (!next_size) {
      chunk = pass_unreadable(book, chunk, next, region);
      continue;
    }
    // Lists have free chunks that keep the flag.
    const ChunkState state =
        (*next_size & chunk_before_in_use) == 0 ? ChunkState::free : listed_chunks_.state_at(chunk);
    book.add({chunk, next}, state, state == ChunkState::live ? type : 0);
    chunk = next;
    known_size = *next_size;
  }
  return chunk;
}

std::uint64_t HeapWalker::walk(const HeapRegion& region) {
  window_.move_to(region.range);
  listed_chunks_.move_to(region.first);
  PageBook::Trim trim{.has_top = region.is_main && !region.is_piece};
  if (malloc_.parameters) {
    const process::Mapping* const mapping = memory_.find(region.range.begin);
    trim.top_step = malloc_.parameters->thp_page_bytes;
    if (mapping != nullptr && mapping->hugetlb_bytes() != 0) trim.huge_page_bytes = malloc_.parameters->huge_page_bytes;
  }
  PageBook book(memory_, region.range, figures_, trim, sites_);
  figures_.swapped_bytes += memory_.swapped_bytes(region.range);
  if (region.first > region.range.begin) book.add({region.range.begin, region.first}, ChunkState::overhead);
  const std::uint64_t end = walk_chunks(region, book);
  const std::uint64_t rest = region.is_piece ? std::min(region.range.end, page_end(end)) : region.range.end;
  if (end < rest) book.add({end, rest}, ChunkState::overhead);
  book.finish();
  return rest;
}

bool HeapWalker::has_chain(std::uint64_t address, std::uint64_t end, std::uint64_t top) {
  window_.move_to({page_begin(address), end});
  int count = 0;
  for (; count < chain_tried && address < end; ++count) {
    const auto size = size_word(address);
    if (!size) break;
    if (!is_sound(*size, address, end)) return false;
    if (address == top) return true;
    const bool ends_piece = is_fencepost(*size) && (address + chunk_alignment) % page_bytes == 0;
    if (ends_piece) break;  // memory of others may follow
    address += chunk_bytes(*size);
  }
  return count >= chain_of_piece;
}

}  // namespace cmt::watch::explain
