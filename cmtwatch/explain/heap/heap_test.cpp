// Checks how a heap of glibc 2.36 that a test makes up is found and walked: with pages in swap, and with damage.
#include "cmtwatch/explain/heap/heap.h"

#include <doctest/doctest.h>

#include "cmtwatch/explain/explain_report.h"
#include "cmtwatch/explain/explanation.h"
#include "cmtwatch/explain/heap/walk.h"
#include "cmtwatch/explain/memory/made_up_memory.h"

namespace cmt::watch::explain {
namespace {

constexpr std::uint64_t main_heap = 0x555555000000, text_at = 0x7f1000000000, data_at = text_at + 0x100000,
                        main_arena = data_at + 0x100, settings_at = data_at + 0xc00, thread_heap = 0x7f0004000000,
                        thread_arena = thread_heap + 0x30, after_arena = 0x8d0, bins = 0x70;
constexpr std::uint64_t block_chunk = 0x1001, heap_pages = 8;  // a block a page, and the top
const std::string libc = "/lib/libc.so.6";

/// The main arena has seven blocks of one page each in [heap], then its top.
struct MadeUpHeap {
  explicit MadeUpHeap(const std::string& module = libc,
                      const std::string& text = "GNU C Library (made up) stable release version 2.36.") {
    memory.map(text_at, page_bytes, module, "r--p");
    memory.map(data_at, 2 * page_bytes, module);
    memory.add_file(module, text);
    memory.map(main_heap, heap_pages * page_bytes, "[heap]");
    write_arena(main_arena, main_arena, main_heap + (heap_pages - 1) * page_bytes, heap_pages * page_bytes);
    for (std::uint64_t i = 0; i < heap_pages; ++i) memory.write(main_heap + i * page_bytes + 8, block_chunk);
    memory.write(settings_at + 8, std::uint64_t{128 << 10});  // top_pad
    memory.write(settings_at + 24, std::uint64_t{8});         // arena_test
    memory.write(settings_at + 64, std::int32_t{65536});      // n_mmaps_max
    memory.write(settings_at + 96, main_heap);                // sbrk_base
  }

  void write_arena(std::uint64_t arena, std::uint64_t next, std::uint64_t top, std::uint64_t bytes) {
    memory.write(arena + bins - 16, top);
    for (std::uint64_t i = 0; i < 254; ++i)
      memory.write(arena + bins + 8 * i, arena + bins + 8 * (i & ~std::uint64_t{1}) - 16);
    memory.write(arena + bins + 2048, next);
    memory.write(arena + bins + 2072, bytes);
  }

  /// A thread's arena, whose heap says that it has `bytes`. It has one block, then its top on the second page.
  void add_thread_arena(std::uint64_t bytes) {
    memory.map(thread_heap, 2 * page_bytes);
    memory.write(thread_heap, thread_arena);
    memory.write(thread_heap + 16, bytes);
    write_arena(thread_arena, main_arena, thread_heap + page_bytes, bytes);
    memory.write(main_arena + bins + 2048, thread_arena);
    memory.write(thread_heap + after_arena + 8, (page_bytes - after_arena) | 5);
    memory.write(thread_heap + page_bytes + 8, (bytes - page_bytes) | 5);
  }

  MadeUpMemory memory;
};

std::int64_t sum_of(const std::vector<Part>& parts) {
  std::int64_t sum = 0;
  for (const Part& part : parts) sum += part.bytes;
  return sum;
}

TEST_CASE("heap: a made-up heap is found and walked") {
  MadeUpHeap made;
  made.add_thread_arena(2 * page_bytes);
  const Explanation look = explain(made.memory);
  REQUIRE(look.heap);
  CHECK(look.doubts.empty());
  CHECK(look.heap->figures.live_blocks == heap_pages);
  CHECK(look.heap->free_bytes() == 2 * page_bytes);
  CHECK(sum_of(look.parts) == static_cast<std::int64_t>(look.resident_bytes));
}

TEST_CASE(
    "heap: of an arena's heaps of 8 MiB, as with reserved huge pages, one may begin where a heap of 64 MiB would") {
  constexpr std::uint64_t before = thread_heap - (std::uint64_t{8} << 20);
  MadeUpHeap made;
  made.memory.write(settings_at + 48, std::uint64_t{2} << 20);  // hp_pagesize
  made.add_thread_arena(2 * page_bytes);
  made.memory.map(before, page_bytes);
  made.memory.write(thread_heap + 8, before);
  made.memory.write(before, thread_arena);
  made.memory.write(before + 16, std::uint64_t{page_bytes});
  made.memory.write(before + 0x38, std::uint64_t{page_bytes - 0x30 - 0x20} | 5);
  made.memory.write(before + page_bytes - 0x18, std::uint64_t{0x11});  // fenceposts
  made.memory.write(before + page_bytes - 8, std::uint64_t{1});
  const Explanation look = explain(made.memory);
  REQUIRE(look.heap);
  CHECK(look.heap->heap_ranges.size() == 3);
  CHECK(look.heap->figures.live_blocks == heap_pages + 1);
}

TEST_CASE("heap: a piece of the main arena is found that has one chunk, and memory of others after it") {
  constexpr std::uint64_t piece = 0x7f2000000000, last = piece + 2 * page_bytes;
  MadeUpHeap made;
  made.memory.write(main_arena + 4, std::uint32_t{2});  // not contiguous
  made.memory.write(main_arena + bins + 2072, (heap_pages + 2) * page_bytes);
  made.memory.map(piece, 3 * page_bytes);
  made.memory.write(piece + 8, std::uint64_t{2 * page_bytes - 0x20} | 1);
  made.memory.write(last - 0x18, std::uint64_t{0x11});  // fenceposts
  made.memory.write(last - 8, std::uint64_t{0x11});
  made.memory.write(last + 8, std::uint64_t{0});
  const Explanation look = explain(made.memory);
  REQUIRE(look.heap);
  CHECK(look.doubts.empty());
  CHECK(look.heap->figures.live_blocks == heap_pages);
  CHECK(look.bytes_of(PartKind::anonymous) == page_bytes);
}

TEST_CASE("heap: a page in swap is not read, and is no lost chain") {
  MadeUpHeap made;
  made.memory.set_state({main_heap + 3 * page_bytes, main_heap + 4 * page_bytes}, PageState::swapped);
  const Explanation look = explain(made.memory);
  REQUIRE(look.heap);
  CHECK(look.heap->figures.swapped_bytes == page_bytes);
  CHECK(look.heap->figures.live_blocks == heap_pages - 2);
  CHECK(look.heap->figures.resyncs == 0);
  CHECK(look.doubts.size() == 1);
  CHECK(made.memory.faults() == 0);
}

TEST_CASE("heap: malloc's own data in swap are called so") {
  MadeUpHeap made;
  made.memory.set_state({data_at, data_at + page_bytes}, PageState::swapped);
  CHECK(explain(made.memory).why_no_heap == NoGlibc::swapped);
}

TEST_CASE("heap: a main arena that was never used is no malloc, whatever else is in swap") {
  MadeUpHeap made;
  for (std::uint64_t at = main_arena; at < main_arena + bins + 2048; at += 8) made.memory.write(at, std::uint64_t{0});
  made.memory.set_state({data_at + page_bytes, data_at + 2 * page_bytes}, PageState::swapped);
  CHECK(explain(made.memory).why_no_heap == NoGlibc::not_used);
}

TEST_CASE("heap: with malloc's own data in swap, another malloc is named as likely") {
  MadeUpHeap made;
  made.memory.map(text_at + 0x200000, page_bytes, "/lib/libjemalloc.so.2", "r--p");
  made.memory.set_state({data_at, data_at + page_bytes}, PageState::swapped);
  CHECK(explain_text(explain(made.memory), {}).find("Its malloc is that of libjemalloc.so.2, likely:") !=
        std::string::npos);
}

TEST_CASE("heap: a main arena that was made ready and has no memory is no malloc, whatever else is in swap") {
  MadeUpHeap made;
  made.write_arena(main_arena, main_arena, main_arena + bins - 16, 0);
  made.memory.write(settings_at + 96, std::uint64_t{0});
  made.memory.map(text_at + 0x200000, page_bytes, "/lib/libjemalloc.so.2", "r--p");
  made.memory.set_state({data_at + page_bytes, data_at + 2 * page_bytes}, PageState::swapped);
  const Explanation look = explain(made.memory);
  CHECK(look.why_no_heap == NoGlibc::not_used);
  CHECK(look.bytes_of(PartKind::anonymous) == heap_pages * page_bytes);
  CHECK(explain_text(look, {}).find("Its malloc is that of libjemalloc.so.2, and glibc's has no memory:") !=
        std::string::npos);
}

TEST_CASE("heap: a malloc without memory in its arenas holds mapped blocks") {
  MadeUpHeap made;
  made.write_arena(main_arena, main_arena, main_arena + bins - 16, 0);
  made.memory.write(settings_at + 96, std::uint64_t{0});
  made.memory.write(settings_at + 60, std::int32_t{1});  // n_mmaps
  CHECK(explain(made.memory).heap);
}

TEST_CASE("heap: beside a heap of glibc's, another malloc is named") {
  MadeUpHeap made;
  made.memory.map(text_at + 0x200000, page_bytes, "/lib/libjemalloc.so.2", "r--p");
  const std::string text = explain_text(explain(made.memory), {});
  CHECK(text.find("Its malloc is glibc 2.36's, with 1 arena") != std::string::npos);
  CHECK(text.find("free. libjemalloc.so.2 is loaded, too.\n") != std::string::npos);
}

TEST_CASE("heap: glibc is found in a program that is linked statically and does not have its version") {
  MadeUpHeap made("/program", "corrupted double-linked list");
  made.memory.write(main_heap + 8, std::uint64_t{0x291});  // the first thread's cache
  made.memory.write(main_heap + 0x298, std::uint64_t{page_bytes - 0x290} | 1);
  const Explanation look = explain(made.memory);
  REQUIRE(look.heap);
  CHECK(look.glibc_minor == 0);
  CHECK(look.heap->figures.live_blocks == heap_pages);
  CHECK(explain_text(look, {}).find("Its malloc is glibc's, with 1 arena") != std::string::npos);

  MadeUpHeap other("/program", "corrupted double-linked list");  // of a version with another cache
  CHECK(explain(other.memory).why_no_heap == NoGlibc::not_known);

  MadeUpHeap swapped("/program", "corrupted double-linked list");
  swapped.memory.set_state({data_at, data_at + page_bytes}, PageState::swapped);
  CHECK(explain(swapped.memory).why_no_heap == NoGlibc::swapped);

  MadeUpHeap none("/program", "glibc");
  CHECK(explain(none.memory).why_no_heap == NoGlibc::not_loaded);
}

TEST_CASE("heap: an arena whose memory is not found is a doubt") {
  MadeUpHeap made;
  made.memory.write(main_arena + 4, std::uint32_t{2});  // not contiguous: its memory is somewhere
  made.memory.write(main_arena + bins - 16, std::uint64_t{0x7fff00001000});
  made.memory.map(0x7fff00000000, 0x2000, "/unknown");
  made.memory.write(settings_at + 96, std::uint64_t{0x7fff00000000});
  CHECK(!explain(made.memory).doubts.empty());
}

TEST_CASE("heap: a piece of the main arena that is not found is a doubt") {
  MadeUpHeap made;
  made.memory.write(main_arena + 4, std::uint32_t{2});  // not contiguous
  made.memory.write(main_arena + bins + 2072, (heap_pages + 1) * page_bytes);
  const Explanation look = explain(made.memory);
  REQUIRE(look.heap);
  CHECK(look.heap->figures.tops == 1);
  CHECK(look.doubts.size() == 1);
}

TEST_CASE("heap: a heap that is longer than its memory ends with it") {
  MadeUpHeap made;
  made.add_thread_arena(4 * page_bytes);
  made.memory.map(thread_heap + 2 * page_bytes, 2 * page_bytes, "/file");
  made.memory.set_state({thread_heap + 2 * page_bytes, thread_heap + 4 * page_bytes}, PageState::resident);
  const Explanation look = explain(made.memory);
  REQUIRE(look.heap);
  CHECK(!look.doubts.empty());
  CHECK(sum_of(look.parts) == static_cast<std::int64_t>(look.resident_bytes));
}

TEST_CASE("heap: a heap of glibc 2.43 with reserved huge pages may be longer than four of them") {
  MadeUpHeap made;
  made.memory.write(settings_at + 48, page_bytes / 4);  // hp_pagesize
  made.add_thread_arena(2 * page_bytes);
  const Explanation look = explain(made.memory);
  REQUIRE(look.heap);
  CHECK(look.doubts.empty());
  CHECK(look.heap->figures.live_blocks == heap_pages);
}

TEST_CASE("heap: a list of free blocks that goes in a circle is left at once") {
  MadeUpHeap made;
  const auto link = [](std::uint64_t chunk, std::uint64_t next) { return ((chunk + 16) >> 12) ^ next; };
  made.memory.write(main_arena + 0x10, main_heap);  // the first fastbin
  made.memory.write(main_heap + 16, link(main_heap, main_heap + page_bytes));
  made.memory.write(main_heap + page_bytes + 16, link(main_heap + page_bytes, main_heap));
  const Explanation look = explain(made.memory);
  REQUIRE(look.heap);
  CHECK(look.heap->lists.broken == 1);
  CHECK(look.heap->lists.fast.size() == 2);
}

TEST_CASE("heap: of a list that breaks each time that it is followed, the longest part is kept") {
  MadeUpHeap made;
  const auto link = [](std::uint64_t chunk, std::uint64_t next) { return ((chunk + 16) >> 12) ^ next; };
  made.memory.write(main_heap + 16, link(main_heap, main_heap + page_bytes));
  made.memory.write(main_heap + page_bytes + 16, std::uint64_t{0x1234567});
  made.memory.write(main_arena + 0x10, main_heap + page_bytes);  // meanwhile the first chunk was taken
  GlibcMalloc malloc;
  malloc.layout = *glibc_layout(36);
  malloc.arenas = {{main_arena, 0, 0, {main_heap}}};
  const FreeLists lists = read_free_lists(made.memory, malloc, {});
  CHECK(lists.broken == 1);
  CHECK(lists.fast == std::vector<std::uint64_t>{main_heap, main_heap + page_bytes});
}

TEST_CASE("heap: a cache's counts say how many blocks a broken list has hidden") {
  constexpr std::uint64_t tls = 0x7f2000000000, control_block = tls + 0x800, cache = main_heap + 2 * page_bytes,
                          cached = cache + 0x290, rest = cached + 0x40;
  MadeUpHeap made;
  made.memory.map(tls, page_bytes);
  for (const std::uint64_t mark : {0, 16}) made.memory.write(control_block + mark, control_block);
  made.memory.write(control_block + 720, std::int32_t{7});
  made.memory.write(control_block - 0x40, cache + 16);
  made.memory.add_thread({.tid = 7, .control_block = control_block});
  made.memory.write(cache + 8, std::uint64_t{0x291});
  made.memory.write(cached + 8, std::uint64_t{0x41});
  made.memory.write(rest + 8, (page_bytes - 0x2d0) | 1);
  made.memory.write(cache + 16 + 2 * 2, std::uint16_t{3});
  made.memory.write(cache + 16 + 128 + 8 * 2, cached + 16);
  made.memory.write(cached + 16, std::uint64_t{0x1234567});  // no link: the block has been taken meanwhile
  const Explanation look = explain(made.memory);
  REQUIRE(look.heap);
  CHECK(look.heap->lists.broken == 1);
  CHECK(look.heap->figures.cached_blocks == 3);
  CHECK(look.heap->figures.cached_bytes == 3 * 0x40);
  CHECK(look.heap->figures.live_blocks == heap_pages - 1 - 2);
  CHECK(look.doubts.size() == 1);
  CHECK(sum_of(look.parts) == static_cast<std::int64_t>(look.resident_bytes));
}

TEST_CASE("heap: a stack that claims a part of the heap is booked once") {
  constexpr std::uint64_t control_block = main_heap + 3 * page_bytes + 0x400;
  MadeUpHeap made;
  for (const std::uint64_t mark : {0, 16}) made.memory.write(control_block + mark, control_block);
  made.memory.write(control_block + 720, std::int32_t{7});
  made.memory.write(control_block + 0x600, main_heap + 2 * page_bytes);  // its stack
  made.memory.write(control_block + 0x608, 2 * page_bytes);
  made.memory.add_thread({.tid = 7, .control_block = control_block});
  const Explanation look = explain(made.memory);
  REQUIRE(look.heap);
  CHECK(look.heap->figures.live_blocks == heap_pages - 1);
  CHECK(sum_of(look.parts) == static_cast<std::int64_t>(look.resident_bytes));
}

TEST_CASE("heap: a long chain of chunks is walked whole across the windows that are read") {
  constexpr std::uint64_t pages = 400, chunk = 0x30;  // a page has no whole number of them
  for (const std::uint64_t swapped_pages : {0, 1}) {
    MadeUpMemory memory;
    const Range range = memory.map(main_heap, pages * page_bytes, "[heap]");
    std::uint64_t top = range.begin, blocks = 0;
    for (; top + chunk <= range.end - page_bytes; top += chunk, ++blocks) memory.write(top + 8, chunk | 1);
    memory.write(top + 8, (range.end - top) | 1);
    const std::uint64_t swapped = range.begin + 300 * page_bytes;
    memory.set_state({swapped, swapped + swapped_pages * page_bytes}, PageState::swapped);
    const GlibcMalloc malloc;
    const FreeLists lists;
    HeapFigures figures;
    HeapWalker walker(memory, malloc, lists, figures, nullptr);
    CHECK(walker.walk({range, range.begin, range.end, top, true}) == range.end);
    const std::uint64_t missed = blocks - figures.live_blocks;
    CHECK(missed >= swapped_pages * (page_bytes / chunk - 1));
    CHECK(missed <= swapped_pages * (page_bytes / chunk + 2));
    CHECK(figures.tops == 1);
    CHECK(figures.resyncs == 0);
    CHECK(figures.swapped_bytes == swapped_pages * page_bytes);
    CHECK(memory.faults() == 0);
  }
}

TEST_CASE("heap: a library that claims terabytes costs no memory") {
  MadeUpHeap made;
  made.memory.map(0x600000000000, std::uint64_t{1} << 44, "/elsewhere/libc.so.6");
  CHECK(explain(made.memory).heap);
}

}  // namespace
}  // namespace cmt::watch::explain
