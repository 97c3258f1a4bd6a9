// Checks the tops of heaps on made-up places: those of glibc, of other allocators, and of traces that begin late.
#include "analysis/places/heap_tops.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "analysis/places/summarise.h"

using cmt::Event;
using cmt::Kind;
using namespace cmt::analysis;

namespace {

constexpr cmt::Tag first_tag = 100;
constexpr std::uint64_t main_heap = 0x55d0c0a01000, arena = 0x7f0004000000;

/// Makes events of blocks, and the summary of these events.
class Program {
 public:
  Event make(std::uint64_t address, std::uint64_t size) {
    Event event;
    event.address = address;
    event.size = size;
    event.tag = ++tag_;
    events_.push_back(event);
    return event;
  }

  void end(const Event& made) {
    Event event;
    event.kind = Kind::free;
    event.old_address = made.address;
    event.old_tag = made.tag;
    events_.push_back(event);
  }

  /// Makes neighbours of one size, `distance` apart, and ends all but the last `kept`.
  void fill(std::uint64_t address, std::uint64_t size, std::uint64_t distance, std::size_t count,
            std::size_t kept = 1) {
    std::vector<Event> made;
    for (std::size_t i = 0; i < count; ++i) made.push_back(make(address + i * distance, size));
    for (std::size_t i = 0; i + kept < count; ++i) end(made[i]);
  }

  void sample(std::uint64_t resident) {
    Event event;
    event.kind = Kind::sample;
    event.size = resident;
    events_.push_back(event);
  }

  HeapTops tops() const {
    cmt::command::Complaints complaints(false, [](const std::string&) {});
    Summariser summariser("a.trace", 12, false, complaints);
    for (const Event& event : events_) summariser.count_event(event);
    return summariser.finish(false).heap_tops;
  }

  std::size_t events() const { return events_.size(); }

 private:
  std::vector<Event> events_;
  cmt::Tag tag_ = first_tag - 1;
};

const char* const other_places = "the places of the blocks are not those of glibc's heaps, or not from the start";

}  // namespace

TEST_CASE("heap tops: one small block at the top of the main heap keeps all pages below it") {
  Program program;
  program.fill(main_heap + 0x2a0, 100, 112, 20'000);
  const HeapTops tops = program.tops();
  CHECK(tops.unknown_because.empty());
  CHECK(tops.event == program.events());
  REQUIRE(tops.heaps.size() == 1);
  const HeapTop& heap = tops.heaps[0];
  CHECK(heap.is_main);
  CHECK(heap.live_blocks == 1);
  CHECK(heap.top_blocks == 1);
  CHECK(heap.top_bytes == 100);
  REQUIRE(heap.highest.size() == 1);
  CHECK(heap.highest[0].block.address == main_heap + 0x2a0 + 19'999 * 112);
  CHECK(heap.highest[0].block.tag == first_tag + 19'999);
  // All pages of the blocks but the first, which has the thread's cache.
  const std::uint64_t end = (0x2a0 + 20'000 * 112 - 16 + 4095) / 4096 * 4096;
  CHECK(heap.gives_back_bytes_max == end - 4096);
  CHECK(tops.gives_back_bytes_max == heap.gives_back_bytes_max);
}

TEST_CASE("heap tops: few blocks at the top are named together, and those below the free pages are not") {
  Program program;
  program.fill(main_heap + 0x10, 1000, 1008, 3000, 3);             // three of them stay, above 2,997 freed ones
  program.fill(main_heap + 0x10 + 3000 * 1008, 100, 112, 10, 10);  // and ten after them
  const HeapTops tops = program.tops();
  REQUIRE(tops.heaps.size() == 1);
  CHECK(tops.heaps[0].top_blocks == 13);
  CHECK(tops.heaps[0].top_bytes == 4000);
  REQUIRE(tops.heaps[0].highest.size() == HeapTop::listed_max);
  CHECK(tops.heaps[0].highest[0].block.tag == first_tag + 3009);
}

TEST_CASE("heap tops: of several gaps the one is chosen that needs fewest blocks to end") {
  Program program;
  program.fill(main_heap + 0x2a0, 1000, 1008, 200, 100);           // 100 freed, 100 live
  program.fill(main_heap + 0x2a0 + 200 * 1008, 1000, 1008, 4000);  // 3,999 freed, one live
  const HeapTops tops = program.tops();
  REQUIRE(tops.heaps.size() == 1);
  CHECK(tops.heaps[0].live_blocks == 101);
  CHECK(tops.heaps[0].top_blocks == 1);
}

TEST_CASE("heap tops: a large block at the top is no finding, nor are free pages of less than 128 KiB") {
  Program large, small;
  large.fill(main_heap + 0x2a0, 1000, 1008, 1000, 0);
  large.make(main_heap + 0x2a0 + 1000 * 1008, 1'000'000);
  CHECK(large.tops().unknown_because.empty());
  CHECK(large.tops().heaps.empty());
  small.fill(main_heap + 0x2a0, 1000, 1008, 120);
  CHECK(small.tops().unknown_because.empty());
  CHECK(small.tops().heaps.empty());
}

TEST_CASE(
    "heap tops: heaps of arenas are those that begin a range of 64 MiB; blocks in mappings of their own are not") {
  Program program;
  program.make(main_heap + 0x2a0, 100);
  program.fill(arena + 0xb70, 1000, 1008, 1000);
  program.make(arena + (8 << 26) + 0x10, 200'000);  // mapped at the begin of a range
  program.make(arena + (8 << 26) + 0x3000010, 200'000);
  const HeapTops tops = program.tops();
  REQUIRE(tops.heaps.size() == 1);
  CHECK_FALSE(tops.heaps[0].is_main);
  CHECK(tops.heaps[0].address == arena);
  CHECK(tops.heaps[0].highest[0].block.address == arena + 0xb70 + 999 * 1008);
}

TEST_CASE("heap tops: of an arena with several heaps only one that was never outgrown is known to be its last") {
  const std::uint64_t next = arena + (3 << 26);
  Program alone, several;
  alone.make(main_heap + 0x2a0, 100);
  alone.fill(arena + 0xb70, 10'000, 10'016, 6000);  // 60 MB
  REQUIRE(alone.tops().heaps.size() == 1);
  CHECK(alone.tops().heaps[0].address == arena);
  several.make(main_heap + 0x2a0, 100);
  several.make(next + 0x40, 100);
  several.fill(arena + 0xb70, 10'000, 10'016, 6000);
  several.fill(next + 0x40 + 112, 10'000, 10'016, 1000);
  REQUIRE(several.tops().heaps.size() == 1);
  CHECK(several.tops().heaps[0].address == next);
}

TEST_CASE("heap tops: a sample of resident memory bounds what can be given back") {
  Program program;
  program.fill(main_heap + 0x2a0, 100, 112, 20'000);
  program.sample(1 << 20);
  const HeapTops tops = program.tops();
  REQUIRE(tops.heaps.size() == 1);
  CHECK(tops.heaps[0].gives_back_bytes_max == 1 << 20);
}

TEST_CASE("heap tops: of places that are not those of glibc nothing is known") {
  Program classes, pages, unaligned;
  classes.fill(main_heap + 0x2a0, 32, 32, 100'000);  // glibc needs 48 bytes for 32
  CHECK(classes.tops().unknown_because == other_places);
  pages.fill(main_heap, 100, 112, 20'000);
  CHECK(pages.tops().unknown_because == other_places);
  unaligned.fill(main_heap + 0x2a0, 100, 120, 20'000);
  CHECK(unaligned.tops().unknown_because == other_places);
  for (const Program* program : {&classes, &pages, &unaligned}) CHECK(program->tops().heaps.empty());
}

TEST_CASE("heap tops: nothing is known if blocks from before the trace end in it, or if there are no blocks") {
  Program program;
  Event early;
  early.address = main_heap + 0x5000;
  early.tag = 1;
  program.fill(main_heap + 0x2a0, 100, 112, 20'000);
  program.end(early);
  CHECK(program.tops().unknown_because == "the trace lacks blocks that were made before it began");
  CHECK(program.tops().heaps.empty());
  CHECK_FALSE(Program().tops().unknown_because.empty());
}
