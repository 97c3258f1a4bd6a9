// Checks how chunks are booked to pages: what malloc_trim gives back, what blocks keep, and that all parts add up.
#include "cmtwatch/explain/heap/page_book.h"

#include <doctest/doctest.h>

#include "cmtwatch/explain/memory/made_up_memory.h"

namespace cmt::watch::explain {
namespace {

constexpr std::uint64_t heap_begin = 0x555555000000;

/// A region of some resident pages.
struct MadeUpRegion {
  explicit MadeUpRegion(std::uint64_t pages) : range(memory.map(heap_begin, pages * page_bytes, "[heap]")) {
    memory.set_state(range, PageState::resident);
  }
  MadeUpMemory memory;
  Range range;
  HeapFigures figures;
};

std::uint64_t sum_of(const HeapFigures& figures) {
  return figures.live_resident + figures.free_resident + figures.cached_resident + figures.overhead_resident;
}

TEST_CASE("page book: a block is one of the trace only if its size fits") {
  BlockSites sites;
  sites.names.push_back("load (app.c:41)");
  sites.by_stack.push_back(2);
  sites.blocks.insert({heap_begin + 0x10, 0xf0, 1});           // a chunk of 0x100 bytes
  sites.blocks.insert({heap_begin + 0x100 + 0x10, 0x700, 1});  // its place has a smaller block now
  MadeUpRegion made(2);
  made.figures.by_site.resize(sites.names.size());
  PageBook book(made.memory, made.range, made.figures, {.has_top = true}, &sites);
  book.add({heap_begin, heap_begin + 0x100}, ChunkState::live);
  book.add({heap_begin + 0x100, heap_begin + 0x200}, ChunkState::live);
  book.add({heap_begin + 0x200, heap_begin + 0x2000}, ChunkState::free);
  book.finish();
  CHECK(made.figures.by_site[2].blocks == 1);
  CHECK(made.figures.by_site[2].bytes == 0x100);
  CHECK(made.figures.by_site[2].pinned_bytes == 0xe00 / 2);
  CHECK(made.figures.by_site[BlockSites::not_in_trace].blocks == 1);
  CHECK(made.figures.by_site[BlockSites::not_in_trace].pinned_bytes == 0xe00 / 2);
}

TEST_CASE("page book: sizes from 64 KiB on are named by the least and the most of their group") {
  CHECK(SizeGroups::text(144) == "144 bytes");
  CHECK(SizeGroups::text(65520) == "65,520 bytes");
  CHECK(SizeGroups::text(70016) == "65,536 to 131,071 bytes");
  CHECK(SizeGroups::text(131072) == "131,072 to 262,143 bytes");
}

TEST_CASE("page book: a free run gives back its whole pages") {
  MadeUpRegion made(4);
  PageBook book(made.memory, made.range, made.figures, {.has_top = true});
  book.add({heap_begin, heap_begin + 0x100}, ChunkState::live);
  book.add({heap_begin + 0x100, heap_begin + 0x1800}, ChunkState::free);
  book.add({heap_begin + 0x1800, heap_begin + 0x3000}, ChunkState::fast);
  book.add({heap_begin + 0x3000, heap_begin + 0x3800}, ChunkState::live);
  book.add({heap_begin + 0x3800, heap_begin + 0x4000}, ChunkState::cached);
  book.finish();
  CHECK(made.figures.trim_bytes == 0x2000);
  CHECK(made.figures.live_resident == 0x900);
  CHECK(made.figures.largest_live_bytes == 0x800);
  CHECK(made.figures.cached_resident == 0x800);
  CHECK(made.figures.pinned_bytes() == 0xf00);
  CHECK(made.figures.partial_pages == 1);
  CHECK(made.figures.by_size[SizeGroups::index(0x100)].pinned_bytes == 0xf00);
  CHECK(sum_of(made.figures) == 4 * page_bytes);
}

TEST_CASE("page book: of reserved huge pages only a run that begins with one is given back, and whole ones of it") {
  constexpr std::uint64_t huge = 4 * page_bytes;
  static_assert(heap_begin % huge == 0);
  for (const std::uint64_t before : {std::uint64_t{0x40}, huge - 0x30, huge}) {
    MadeUpRegion made(16);
    PageBook book(made.memory, made.range, made.figures, {.has_top = false, .huge_page_bytes = huge});
    book.add({heap_begin, heap_begin + before}, ChunkState::live);
    book.add({heap_begin + before, heap_begin + 3 * huge + 0x2000}, ChunkState::free);
    book.add({heap_begin + 3 * huge + 0x2000, heap_begin + 4 * huge}, ChunkState::live);
    book.finish();
    CHECK(made.figures.trim_bytes == (before == huge - 0x30 ? 2 * huge : 0));
    CHECK(sum_of(made.figures) == 16 * page_bytes);
  }
}

TEST_CASE("page book: the top of a thread's arena is kept, that of the main one is given back") {
  for (const bool is_main : {true, false}) {
    MadeUpRegion made(4);
    PageBook book(made.memory, made.range, made.figures, {.has_top = is_main});
    book.add({heap_begin, heap_begin + 0x800}, ChunkState::live);
    book.add({heap_begin + 0x800, heap_begin + 0x900}, ChunkState::free);
    book.add({heap_begin + 0x900, heap_begin + 0x4000}, ChunkState::top);
    book.finish();
    CHECK(made.figures.trim_bytes == (is_main ? 0x3000 : 0));
    CHECK(made.figures.kept_tops_bytes == (is_main ? 0 : 0x3000));
    CHECK(made.figures.pinned_bytes() == 0x800);
    CHECK(sum_of(made.figures) == 4 * page_bytes);
  }
}

TEST_CASE("page book: pages that are not resident count nowhere") {
  MadeUpRegion made(4);
  made.memory.set_state({heap_begin + 0x1000, heap_begin + 0x2000}, PageState::absent);
  made.memory.set_state({heap_begin + 0x2000, heap_begin + 0x3000}, PageState::swapped);
  PageBook book(made.memory, made.range, made.figures, {.has_top = true});
  book.add({heap_begin, heap_begin + 0x4000}, ChunkState::live);
  book.finish();
  CHECK(made.figures.live_bytes == 0x4000);
  CHECK(made.figures.live_resident == 0x2000);
}

TEST_CASE("size groups: exact below 64 KiB, then powers of two") {
  CHECK(SizeGroups::least_bytes(SizeGroups::index(0x20)) == 0x20);
  CHECK(SizeGroups::least_bytes(SizeGroups::index(0xfff0)) == 0xfff0);
  CHECK(SizeGroups::least_bytes(SizeGroups::index(0x10000)) == 0x10000);
  CHECK(SizeGroups::least_bytes(SizeGroups::index(0x1fff0)) == 0x10000);
  CHECK(SizeGroups::least_bytes(SizeGroups::index(std::uint64_t{1} << 40)) == std::uint64_t{1} << 40);
}

}  // namespace
}  // namespace cmt::watch::explain
