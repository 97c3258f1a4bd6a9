// Checks runs of touched pages against a list of pages, and the events that are made of them.

#include "libcmt/heap/touched_pages.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

using namespace cmt;
using heap::bytes_of;
using heap::RunBytes;
using heap::TouchedPages;

namespace {

Event run_of(std::uint64_t offset, std::uint64_t count, std::uint64_t page = 4096) {
  return {.kind = Kind::touch, .size = offset, .count = count, .alignment = page, .old_tag = 7};
}

std::string text(const RunBytes& bytes) {
  return std::to_string(bytes.begin) + ".." + std::to_string(bytes.end) + (bytes.is_wrong ? " wrong" : "");
}

std::string gaps(const TouchedPages& pages, std::uint64_t size) {
  std::string all;
  pages.for_each_gap(7, size, [&](std::uint64_t begin, std::uint64_t end) {
    all += std::to_string(begin) + ".." + std::to_string(end) + " ";
  });
  return all;
}

}  // namespace

TEST_CASE("touched pages: a run is of whole pages, less what is not the block's") {
  CHECK(text(bytes_of(run_of(0, 1), 0x10010, 20000)) == "0..4080");
  CHECK(text(bytes_of(run_of(4080, 2), 0x10010, 20000)) == "4080..12272");
  CHECK(text(bytes_of(run_of(16368, 1), 0x10010, 20000)) == "16368..20000");
  CHECK(text(bytes_of(run_of(0, 5), 0x10010, 20000)) == "0..20000");
  CHECK(text(bytes_of(run_of(4080, 0), 0x10010, 20000)) == "4080..20000");
  CHECK(text(bytes_of(run_of(0, 1), 0, 20000)) == "0..4096");
  CHECK(text(bytes_of(run_of(0, 1, 1 << 21), 0x7f0000100010, 1 << 24)) == "0..1048560");
}

TEST_CASE("touched pages: pages beyond the block's end are wrong") {
  CHECK(text(bytes_of(run_of(0, 6), 0x10010, 20000)) == "0..20000 wrong");
  CHECK(text(bytes_of(run_of(20464, 1), 0x10010, 20000)) == "0..0 wrong");
  CHECK(text(bytes_of(run_of(4080, ~std::uint64_t{0}), 0x10010, 20000)) == "4080..20000 wrong");
  CHECK(text(bytes_of(run_of(0, 1, 0), 0x10010, 20000)) == "0..0 wrong");
  CHECK(text(bytes_of(run_of(0, 1, 4095), 0x10010, 20000)) == "0..0 wrong");
  CHECK(text(bytes_of(run_of(0, 6), 0, 20000)) == "0..20000");
  CHECK(text(bytes_of(run_of(0, 7), 0, 20000)) == "0..20000 wrong");
  CHECK(text(bytes_of(run_of(0, 0), 0, 0)) == "0..0");
}

TEST_CASE("touched pages: runs fill the gaps, and each byte counts once") {
  constexpr std::uint64_t size = 40000;
  TouchedPages pages;
  std::uint64_t untouched = size;
  const auto add = [&](std::uint64_t offset, std::uint64_t count) {
    const Event run = run_of(offset, count);
    pages.add(run, bytes_of(run, 0, size), size, [&](std::uint64_t begin, std::uint64_t end, bool added) {
      added ? untouched += end - begin : untouched -= end - begin;
    });
  };
  CHECK(gaps(pages, size) == "0..40000 ");
  add(8192, 1);
  add(16384, 1);
  CHECK(gaps(pages, size) == "0..8192 12288..16384 20480..40000 ");
  add(4096, 5);
  CHECK(gaps(pages, size) == "0..4096 24576..40000 ");
  CHECK(pages.find(7)->size() == 1);
  add(36864, 0);
  add(0, 0);
  CHECK(gaps(pages, size).empty());
  CHECK(pages.find(7)->size() == 1);
  CHECK(untouched == 0);
  CHECK(pages.has_any(7, 39999, 40000));
  pages.end_block(7);
  CHECK(gaps(pages, size) == "0..40000 ");
  CHECK(!pages.has_any(7, 0, size));
}

TEST_CASE("touched pages: discarded bytes are no longer in runs, and may come again") {
  std::mt19937 random(6);
  constexpr std::uint64_t size = 100 * 4096 - 96;
  for (const bool keeps_kinds : {false, true}) {
    TouchedPages pages(keeps_kinds);
    std::vector<bool> is_known(100);
    for (int i = 0; i < 400; ++i) {
      const std::uint64_t first = random() % 100, count = 1 + random() % (100 - first) % 9;
      const bool drops = random() % 2 == 0;
      const Event run = run_of(first * 4096, count);
      if (drops)
        pages.drop({.kind = Kind::discard,
                    .size = first * 4096,
                    .count = count * 4096 - (first + count == 100 ? 96 : 0),
                    .old_tag = 7},
                   size);
      else
        pages.add(run, bytes_of(run, 0x10000, size), size);
      for (std::uint64_t page = first; page < first + count; ++page) is_known[page] = !drops;
      for (std::uint64_t page = 0; page < 100; ++page)
        CHECK(pages.has_any(7, page * 4096, page * 4096 + 4000) == is_known[page]);
      if (const TouchedPages::Runs* const runs = pages.find(7)) CHECK(pages.runs() == runs->size());
    }
  }
  TouchedPages none;
  none.drop({.kind = Kind::discard, .size = 0, .count = 4096, .old_tag = 7}, size);
  CHECK(none.runs() == 0);
  CHECK(heap::discarded_bytes_of({.size = 4096, .count = 4096}, 6000).end == 6000);
  CHECK(heap::discarded_bytes_of({.size = 4096, .count = 4096}, 6000).is_wrong);
  CHECK(!heap::discarded_bytes_of({.size = 4096, .count = 1904}, 6000).is_wrong);
  CHECK(heap::discarded_bytes_of({.size = 6000, .count = 1}, 6000).is_wrong);
}

TEST_CASE("touched pages: random runs agree with a list of pages") {
  std::mt19937 random(5);
  constexpr std::uint64_t size = 100 * 4096;
  TouchedPages pages;
  std::vector<bool> is_known(100);
  std::uint64_t untouched = size;
  for (int i = 0; i < 60; ++i) {
    const std::uint64_t first = random() % 100, count = 1 + random() % (100 - first) % 5;
    const Event run = run_of(first * 4096, count);
    const RunBytes bytes = bytes_of(run, 0x10000, size);
    bool any = false;
    for (std::uint64_t page = first; page < first + count; ++page) any |= is_known[page];
    CHECK(pages.has_any(7, bytes.begin, bytes.end) == any);
    for (std::uint64_t page = first; page < first + count; ++page) is_known[page] = true;
    pages.add(run, bytes, size, [&](std::uint64_t begin, std::uint64_t end, bool added) {
      added ? untouched += end - begin : untouched -= end - begin;
    });
    CHECK(untouched == 4096 * static_cast<std::uint64_t>(std::count(is_known.begin(), is_known.end(), false)));
  }
}

TEST_CASE("touched pages: the events of a block's runs tell the same bytes, those of resident pages first") {
  const Event made{.kind = Kind::malloc, .thread = 3, .size = 20000, .tag = 7, .address = 0x10010, .time_ns = 50};
  TouchedPages pages(true);
  const auto add = [&](Kind kind, std::uint64_t offset, std::uint64_t count) {
    Event run = run_of(offset, count);
    run.kind = kind;
    pages.add(run, bytes_of(run, made.address, made.size), made.size);
  };
  add(Kind::touch, 0, 1);
  add(Kind::resident, 4080, 2);
  add(Kind::touch, 16368, 1);
  std::string all;
  pages.for_each_event(made, [&](const Event& run) {
    CHECK(run.old_tag == 7);
    CHECK(run.old_address == 0x10010);
    CHECK(run.thread == 3);
    CHECK(run.time_ns == 50);
    all += (run.kind == Kind::touch ? "touch " : "resident ") + text(bytes_of(run, made.address, made.size)) + ", ";
  });
  CHECK(all == "resident 4080..12272, touch 0..4080, touch 16368..20000, ");
  pages.for_each_event({.kind = Kind::malloc, .size = 8, .tag = 8}, [](const Event&) { FAIL("no runs"); });
}
