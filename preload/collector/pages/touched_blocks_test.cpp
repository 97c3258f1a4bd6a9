// Checks which events the reports about pages of large blocks become.

#include "preload/collector/pages/touched_blocks.h"

#include <doctest/doctest.h>

#include <string>

#include "preload/protocol.h"

namespace cmt::collector {
namespace {

constexpr std::uint64_t block_address = 0x7f0000001010, block_place = block_address % block_page_bytes;
constexpr std::uint64_t ten_pages = 10 * block_page_bytes - block_place;

/// "touch 1+2, resident 5-": kinds, first pages, and counts, "-" for all up to the end; "h" after huge ones.
std::string text_of(const std::vector<Event>& events, std::uint64_t page_place = block_place) {
  std::string text;
  for (const Event& event : events) {
    const std::uint64_t first = (page_place + event.size) / block_page_bytes;
    text += (text.empty() ? "" : ", ") + std::string(name(event.kind)) + " " + std::to_string(first) +
            (event.count == 0 ? "-" : "+" + std::to_string(event.count)) +
            (event.alignment == block_page_bytes_huge ? "h" : "");
  }
  return text;
}

Event allocation(Tag tag, std::uint64_t size, std::uint64_t address = block_address) {
  return {.kind = Kind::malloc, .thread = 3, .size = size, .tag = tag, .address = address};
}

format::LiveBlock block_of(const Event& event) { return {event.tag, event.address, event.size}; }

PagesReport report(std::uint64_t flags, std::vector<PageRun> runs = {}, std::uint64_t since = 0) {
  return {true, flags, (flags & block_is_whole) != 0 ? ten_pages : 0, since, std::move(runs)};
}

TEST_CASE("pages that were there are resident, and those that come are touched, once") {
  TouchedBlocks blocks(16384);
  const Event made = allocation(7, ten_pages);
  CHECK(text_of(blocks.add_block(made, 100, report(block_is_asked, {{0, 2}}))) == "resident 0+2");
  CHECK(text_of(blocks.add_report(block_of(made), 9, report(0, {{1, 3}}, 200))) == "touch 2+2");
  CHECK(blocks.add_report(block_of(made), 9, report(0, {{1, 3}}, 200)).empty());
  CHECK(text_of(blocks.add_report(block_of(made), 9, report(0, {{5, 1}}))) == "touch 5+1");
  const auto& last = blocks.end_block(block_of(made), 9, report(block_is_asked | block_ends, {{0, 4}, {5, 1}, {8, 9}}));
  CHECK(text_of(last) == "touch 8-");
  CHECK(last[0].thread == 9);
  CHECK(blocks.size() == 0);
}

TEST_CASE("what was seen before the block was there is not its own") {
  TouchedBlocks blocks(16384);
  const Event made = allocation(7, ten_pages);
  blocks.add_block(made, 100, report(block_is_asked));
  CHECK(blocks.add_report(block_of(made), 9, report(block_is_whole, {{0, 4}}, 100)).empty());
  CHECK(blocks.add_report({8, block_address, ten_pages}, 9, report(block_is_whole, {{0, 4}}, 101)).empty());
  CHECK(text_of(blocks.add_report(block_of(made), 9, report(block_is_whole, {{0, 4}}, 101))) == "touch 0+4");
}

TEST_CASE("where the kernel could not be asked, pages are resident, never touched") {
  TouchedBlocks blocks(16384);
  const Event made = allocation(7, ten_pages);
  CHECK(blocks.add_block(made, 100, report(0)).empty());
  CHECK(text_of(blocks.end_block(block_of(made), 9, report(block_ends))) == "resident 0-");
  blocks.add_block(made, 100, report(0));
  CHECK(text_of(blocks.add_report(block_of(made), 9, report(block_is_whole | block_has_more, {{1, 1}}, 200))) ==
        "resident 1+1");
  CHECK(text_of(blocks.add_report(block_of(made), 9, report(block_is_whole, {{3, 1}}, 200))) == "resident 3+1");
  CHECK(text_of(blocks.add_report(block_of(made), 9, report(block_is_whole, {{5, 1}}, 300))) == "touch 5+1");
  CHECK(text_of(blocks.end_block(block_of(made), 9, PagesReport{})) ==
        "resident 0+1, resident 2+1, resident 4+1, resident 6-");
}

TEST_CASE("the pages of a block that begins without a report are resident at once") {
  TouchedBlocks blocks(16384);
  const Event made = allocation(7, ten_pages);
  CHECK(text_of(blocks.add_block(made, 100, PagesReport{})) == "resident 0-");
  CHECK(blocks.add_report(block_of(made), 9, report(block_is_whole, {{1, 1}}, 200)).empty());
  CHECK(blocks.end_block(block_of(made), 9, PagesReport{}).empty());
  CHECK(blocks.size() == 0);
}

TEST_CASE("a report that may lack pages says nothing of those that it lacks") {
  TouchedBlocks blocks(16384);
  const Event made = allocation(7, ten_pages);
  blocks.add_block(made, 100, report(0));
  CHECK(text_of(blocks.add_report(block_of(made), 9, report(0, {{1, 1}}, 200))) == "resident 1+1");
  PagesReport of_shorter = report(block_is_whole, {{3, 1}}, 200);
  of_shorter.bytes = ten_pages - block_page_bytes;
  CHECK(text_of(blocks.add_report(block_of(made), 9, of_shorter)) == "resident 3+1");
  CHECK(text_of(blocks.add_report(block_of(made), 9, report(block_is_whole, {{5, 1}}, 300))) == "resident 5+1");
  CHECK(text_of(blocks.add_report(block_of(made), 9, report(0, {{7, 1}}, 400))) == "touch 7+1");
}

TEST_CASE("what is not known of a block that outlives the process is resident") {
  TouchedBlocks blocks(16384);
  const Event made = allocation(7, ten_pages);
  blocks.add_block(made, 100, report(block_is_asked));
  CHECK(text_of(blocks.add_report(block_of(made), 9, report(0, {{2, 1}}, 200))) == "touch 2+1");
  CHECK(text_of(blocks.add_report(block_of(made), 9, report(block_is_last, {}, 300))) == "resident 0+2, resident 3-");
  CHECK(blocks.add_report(block_of(made), 9, report(block_is_last, {}, 400)).empty());
}

TEST_CASE("a page that may have been read only is not reported before the block's end") {
  TouchedBlocks blocks(16384);
  const Event made = allocation(7, ten_pages);
  blocks.add_block(made, 100, report(block_is_asked));
  CHECK(blocks.add_report(block_of(made), 9, report(0, {{2, 1, true}}, 200)).empty());
  CHECK(text_of(blocks.end_block(block_of(made), 9, report(block_is_asked | block_ends, {{2, 1, true}, {3, 1}}))) ==
        "resident 2+1, touch 3+1");
}

TEST_CASE("a realloc's result has the pages of its old block as resident ones") {
  TouchedBlocks blocks(16384);
  const Event made = allocation(7, ten_pages);
  Event grown = allocation(8, 2 * ten_pages);
  grown.kind = Kind::realloc;
  blocks.add_block(made, 100, report(block_is_asked));
  CHECK(text_of(blocks.begin_realloc(block_of(made), 9, report(block_is_asked | block_ends, {{1, 2}}))) == "touch 1+2");
  CHECK(blocks.add_report(block_of(made), 9, report(0, {{1, 5}}, 200)).empty());
  CHECK(text_of(blocks.resize_block(block_of(made), grown, 300, report(block_is_asked | block_is_kept, {{9, 1}}))) ==
        "resident 1+2, resident 9+1");
  CHECK(text_of(blocks.end_block(block_of(grown), 9, report(block_is_asked | block_ends, {{1, 3}}))) == "touch 3+1");

  const Event moved = allocation(9, ten_pages, block_address + (1 << 20));
  blocks.add_block(made, 100, report(block_is_asked));
  CHECK(blocks.begin_realloc(block_of(made), 9, report(block_ends)).empty());
  CHECK(text_of(blocks.replace_block(block_of(made), 9)) == "resident 0-");
  CHECK(text_of(blocks.resize_block(block_of(made), moved, 300, report(block_is_asked, {{0, 10}}))) == "resident 0-");
  Event refused = moved;
  refused.tag = refused.address = 0;
  blocks.begin_realloc(block_of(moved), 9, report(block_is_asked | block_ends));
  CHECK(blocks.resize_block(block_of(moved), refused, 400, PagesReport{}).empty());
  CHECK(blocks.size() == 1);
}

TEST_CASE("discarded pages come again as touched ones, and earlier looks do not count") {
  TouchedBlocks blocks(16384);
  const Event made = allocation(7, ten_pages), other = allocation(8, ten_pages, block_address + (1 << 20));
  const std::uint64_t second_page = block_address - block_place + block_page_bytes;
  blocks.add_block(made, 100, report(block_is_asked));
  blocks.add_block(other, 100, report(block_is_asked));
  CHECK(blocks.discard(second_page, 4 * block_page_bytes, 9, 150).empty());  // nothing is known there
  blocks.add_report(block_of(made), 9, report(0, {{0, 4}}, 200));
  blocks.add_report(block_of(other), 9, report(0, {{0, 1}}, 200));
  const std::vector<Event> dropped = blocks.discard(second_page, 2 * block_page_bytes, 9, 300);
  REQUIRE(dropped.size() == 1);
  CHECK(dropped[0].kind == Kind::discard);
  CHECK(dropped[0].old_tag == 7);
  CHECK(dropped[0].thread == 9);
  CHECK(dropped[0].size == block_page_bytes - block_place);
  CHECK(dropped[0].count == 2 * block_page_bytes);
  CHECK(blocks.add_report(block_of(made), 9, report(0, {{0, 4}}, 300)).empty());
  CHECK(text_of(blocks.add_report(block_of(made), 9, report(0, {{0, 3}}, 301))) == "touch 1+2");
  const std::vector<Event> all = blocks.discard(second_page - block_page_bytes, 2 << 20, 9, 400);
  REQUIRE(all.size() == 2);
  CHECK(all[0].old_tag == 8);
  CHECK(all[1].size == 0);
  CHECK(all[1].count == ten_pages);
  CHECK(text_of(blocks.end_block(block_of(made), 9, report(block_is_asked | block_ends, {{5, 1}}))) == "touch 5+1");
  CHECK(blocks.discard(second_page, block_page_bytes, 9, 500).empty());

  TouchedBlocks restored(16384);
  restored.restore(made);
  restored.restore({.kind = Kind::touch, .size = 0, .count = 0, .alignment = block_page_bytes, .old_tag = 7});
  restored.restore(dropped[0]);
  CHECK(text_of(restored.end_block(block_of(made), 9, report(block_is_asked | block_ends, {{0, 10}}))) ==
        "resident 1+2");
}

TEST_CASE("huge pages are reported as such if all of one is new, within the block") {
  constexpr std::uint64_t huge = block_page_bytes_huge, pages = huge / block_page_bytes;
  TouchedBlocks blocks(16384);
  const Event made = allocation(7, 3 * huge, 5 * huge + block_page_bytes);
  blocks.add_block(made, 100, report(block_is_asked));
  const PageRun from_begin{0, 2 * pages - 1, false, true}, to_end{2 * pages, 2 * pages, false, true};
  CHECK(text_of(blocks.add_report(block_of(made), 9, report(0, {from_begin, to_end}, 200)), 0) ==
        "touch 0+2h, touch 1024-");
  CHECK(text_of(blocks.end_block(block_of(made), 9, report(block_is_asked | block_ends, {{0, 3 * pages}})), 0) ==
        "touch 1023+1");
}

TEST_CASE("a restored block's pages are known, and what comes then is not said to be touched") {
  TouchedBlocks blocks(16384);
  const Event made = allocation(7, ten_pages);
  blocks.restore(made);
  Event touch{.kind = Kind::touch, .size = block_page_bytes - block_place, .count = 2, .alignment = block_page_bytes};
  touch.old_tag = 7;
  blocks.restore(touch);
  CHECK(text_of(blocks.end_block(block_of(made), 9, report(block_is_asked | block_ends, {{1, 3}}))) == "resident 3+1");
}

}  // namespace
}  // namespace cmt::collector
