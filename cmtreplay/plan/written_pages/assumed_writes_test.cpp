// Tests which resident pages are written, and which bytes are unwritten or unknown.
#include "cmtreplay/plan/written_pages/assumed_writes.h"

#include <doctest/doctest.h>

#include <vector>

using cmt::Event;
using cmt::Kind;
using cmt::replay::AssumedWrites;
using cmt::replay::PageUses;

namespace {

Event block_alike(cmt::Tag tag, std::uint64_t size) { return {.kind = Kind::malloc, .size = size, .tag = tag}; }
Event end_alike(cmt::Tag tag) { return {.kind = Kind::free, .old_tag = tag}; }
Event run_alike(Kind kind, cmt::Tag tag, std::uint64_t offset, std::uint64_t count) {
  return {.kind = kind, .size = offset, .count = count, .alignment = 4096, .old_tag = tag};
}

std::shared_ptr<const PageUses> uses_of(std::uint64_t touched_min, const std::vector<Event>& events = {}) {
  auto uses = std::make_shared<PageUses>(touched_min);
  for (const Event& event : events) uses->learn(event);
  uses->finish();
  return uses;
}

/// Blocks of 16 pages, of each of which the first four are written, or as many as `written`.
std::vector<Event> blocks_alike(cmt::Tag first, std::uint64_t blocks, std::uint64_t written = 4) {
  std::vector<Event> events;
  for (cmt::Tag tag = first; tag < first + blocks; ++tag) {
    events.push_back(block_alike(tag, 65536));
    events.push_back(run_alike(Kind::touch, tag, 0, written));
    if (tag % 2 == 0) events.push_back(end_alike(tag));
  }
  return events;
}

/// The pages that are written in place of all resident ones of a new block.
std::uint64_t pages_written(AssumedWrites& writes, cmt::Tag tag, std::uint64_t size = 65536) {
  writes.plan(block_alike(tag, size));
  const Event planned = writes.plan(run_alike(Kind::resident, tag, 0, 0));
  return planned.size >= size ? 0 : planned.count != 0 ? planned.count : size / 4096;
}

/// Counts events one after the other; each allocation makes a new peak.
struct Counted {
  explicit Counted(std::shared_ptr<const PageUses> uses) : writes(std::move(uses)) {}
  void malloc(cmt::Tag tag, std::uint64_t bytes) {
    writes.plan(block_alike(tag, bytes));
    writes.note_peak();
  }
  std::uint64_t unknown() const { return writes.unknown_bytes_at_peak(); }

  AssumedWrites writes;
};

}  // namespace

TEST_CASE("unwritten: bytes of large blocks, until they are touched or end") {
  AssumedWrites writes(uses_of(16384));
  writes.plan(block_alike(2, 16383));
  CHECK(writes.unwritten_bytes() == 0);
  writes.plan(block_alike(3, 20000));
  writes.plan(block_alike(4, 30000));
  CHECK(writes.unwritten_bytes() == 50000);
  writes.plan(run_alike(Kind::touch, 3, 4096, 2));
  CHECK(writes.unwritten_bytes() == 50000 - 8192);
  writes.plan(run_alike(Kind::touch, 3, 16384, 0));
  CHECK(writes.unwritten_bytes() == 50000 - 8192 - 3616);
  writes.plan(end_alike(4));
  writes.plan({.kind = Kind::realloc, .size = 40000, .tag = 5, .old_tag = 3});
  CHECK(writes.unwritten_bytes() == 40000);
  writes.plan(run_alike(Kind::touch, 5, 0, ~std::uint64_t{0}));
  CHECK(writes.unwritten_bytes() == 0);
  writes.plan(end_alike(5));
  CHECK(writes.unwritten_bytes() == 0);
}

TEST_CASE("unwritten: a tag that is given again while its block lives is the new block's") {
  AssumedWrites writes(uses_of(16384));
  writes.plan(block_alike(1, 20000));
  writes.plan(run_alike(Kind::touch, 1, 0, 1));
  writes.plan(block_alike(1, 50000));
  CHECK(writes.unwritten_bytes() == 50000);
  writes.plan(block_alike(1, 100));
  CHECK(writes.unwritten_bytes() == 0);
}

TEST_CASE("assumed writes: as large a share of resident pages as of the blocks that are alike") {
  AssumedWrites writes(uses_of(16384, blocks_alike(1, 10)));
  std::uint64_t sum = 0;
  for (cmt::Tag tag = 100; tag < 110; ++tag) sum += pages_written(writes, tag);
  CHECK(sum == 10 + 37);  // the first page of each, and a quarter of the others
  CHECK(writes.unwritten_bytes() == 160 * 4096 - sum * 4096);
  CHECK(pages_written(writes, 111, 70000) == 5);                        // of a similar size
  CHECK(pages_written(writes, 112, 200000) == 48);                      // of another size: 200,000 / 4096, all
  CHECK(writes.plan(run_alike(Kind::resident, 999, 0, 3)).count == 3);  // of an unknown block
}

TEST_CASE("assumed writes: of a page at the block's begin only the part in the block is known") {
  // Blocks of 8 KiB on three pages. The first one is in memory and 2,224 bytes long, and so is the last one, of 1,872.
  std::vector<Event> events;
  for (cmt::Tag tag = 1; tag <= 20; ++tag) {
    events.push_back(block_alike(tag, 8192));
    events.push_back(run_alike(Kind::resident, tag, 0, 1));
    events.push_back(run_alike(Kind::resident, tag, 2224 + 4096, 0));
  }
  const auto uses = uses_of(4096, events);
  REQUIRE(uses->of(Kind::malloc, 8192).has_value());
  CHECK(uses->of(Kind::malloc, 8192)->bytes == 20 * 4096);
  CHECK(uses->of(Kind::malloc, 8192)->written == 0);
  AssumedWrites writes(uses);
  writes.plan(block_alike(21, 8192));
  CHECK(writes.plan(run_alike(Kind::resident, 21, 0, 1)).count == 1);
  CHECK(writes.plan(run_alike(Kind::resident, 21, 2224 + 4096, 0)).size == 8192);  // no page
}

TEST_CASE("assumed writes: parts of pages add up over the blocks") {
  std::vector<Event> events = blocks_alike(1, 8, 1);
  const auto others = blocks_alike(20, 8, 0);
  for (const Event& event : others)
    if (event.kind != Kind::touch) events.push_back(event);
  AssumedWrites writes(uses_of(16384, events));
  std::uint64_t sum = 0;
  for (cmt::Tag tag = 100; tag < 120; ++tag) sum += pages_written(writes, tag);
  CHECK(sum == 20 + 20 * 15 / 32);
}

TEST_CASE("assumed writes: all pages where no block is alike, as one of another call") {
  AssumedWrites writes(uses_of(16384, blocks_alike(1, 10)));
  writes.plan({.kind = Kind::calloc, .size = 65536, .count = 1, .tag = 4});
  CHECK(writes.plan(run_alike(Kind::resident, 4, 0, 0)).count == 0);
  AssumedWrites none(uses_of(16384));
  CHECK(pages_written(none, 5) == 16);
}

TEST_CASE("assumed writes: blocks whose end could not be asked about tell nothing") {
  std::vector<Event> events = blocks_alike(1, 10);
  for (cmt::Tag tag = 1; tag <= 10; ++tag) events.push_back(run_alike(Kind::resident, tag, 4 * 4096, 0));
  std::erase_if(events, [](const Event& event) { return event.kind == Kind::free; });
  AssumedWrites writes(uses_of(16384, events));
  CHECK(pages_written(writes, 100) == 16);
}

TEST_CASE("unknown: whole pages of blocks below the least size, but for the first") {
  Counted counted(uses_of(65536));
  counted.malloc(1, 8191);
  CHECK(counted.unknown() == 0);
  counted.malloc(2, 8192);
  counted.malloc(3, 49152);
  CHECK(counted.unknown() == 4096 + 45056);
  counted.writes.plan(end_alike(3));
  CHECK(counted.unknown() == 4096 + 45056);
  counted.malloc(4, 65536);
  CHECK(counted.unknown() == 4096);
}

TEST_CASE("unknown: resident pages, also if they are reported after the peak") {
  Counted counted(uses_of(65536));
  counted.malloc(1, 81920);
  counted.writes.plan(run_alike(Kind::touch, 1, 0, 1));
  CHECK(counted.unknown() == 0);
  counted.writes.plan(run_alike(Kind::resident, 1, 4096, 0));
  CHECK(counted.unknown() == 19 * 4096);
  CHECK(counted.writes.left_out_bytes_at_peak() == 0);
  counted.malloc(2, 65536);
  counted.writes.plan(run_alike(Kind::resident, 2, 0, 4));
  CHECK(counted.unknown() == 22 * 4096);
  counted.writes.plan(end_alike(1));
  CHECK(counted.unknown() == 22 * 4096);
  counted.malloc(3, 1);
  CHECK(counted.unknown() == 3 * 4096);
}

TEST_CASE("unknown: not what several blocks that are alike tell") {
  Counted few(uses_of(16384, blocks_alike(1, AssumedWrites::alike_min - 1)));
  few.malloc(100, 65536);
  few.writes.plan(run_alike(Kind::resident, 100, 0, 0));
  CHECK(few.unknown() == 15 * 4096);
  CHECK(few.writes.left_out_bytes_at_peak() == 12 * 4096);  // a quarter is written
  Counted enough(uses_of(16384, blocks_alike(1, AssumedWrites::alike_min)));
  enough.malloc(100, 65536);
  enough.writes.plan(run_alike(Kind::resident, 100, 0, 0));
  CHECK(enough.unknown() == 0);
}

TEST_CASE("unknown: without touched pages all blocks are") {
  Counted counted(uses_of(0));
  counted.malloc(1, 1 << 20);
  CHECK(counted.unknown() == (1 << 20) - 4096);
}
