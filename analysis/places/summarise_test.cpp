// Checks the summary of overhead on small traces: pages, gaps, peaks, samples and defects.
#include "analysis/places/summarise.h"

#include <doctest/doctest.h>

#include <random>
#include <set>
#include <vector>

using cmt::Event;
using cmt::Kind;
using cmt::command::Complaints;
using namespace cmt::analysis;

namespace {

Event malloc(std::uint64_t address, std::uint64_t size, cmt::Tag tag) {
  Event event;
  event.address = address;
  event.size = size;
  event.tag = tag;
  return event;
}

Event free(const Event& made) {
  Event event;
  event.kind = Kind::free;
  event.old_address = made.address;
  event.old_tag = made.tag;
  return event;
}

Summary summary_of(const std::vector<Event>& events, bool has_usable = false) {
  Complaints complaints(false, [](const std::string&) {});
  Summariser summariser("a/b.trace", 12, has_usable, complaints);
  for (const Event& event : events) summariser.count_event(event);
  return summariser.finish(false);
}

/// Pages that blocks are on, one by one.
std::set<std::uint64_t> pages_of(const std::vector<Event>& live) {
  std::set<std::uint64_t> pages;
  for (const Event& block : live) {
    for (std::uint64_t page = block.address >> 12; page <= (block.address + block.size - 1) >> 12; ++page) {
      pages.insert(page);
    }
  }
  return pages;
}

}  // namespace

TEST_CASE("overhead summary: pages are what counting them one by one gives") {
  std::mt19937_64 random(7);
  std::vector<Event> events;
  std::vector<Event> live;
  for (cmt::Tag tag = 1; tag <= 3000; ++tag) {
    if (random() % 2 == 0 && !live.empty()) {
      const std::size_t victim = random() % live.size();
      events.push_back(free(live[victim]));
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(victim));
    } else {
      live.push_back(malloc(0x100000 + tag * 0x3000, 1 + random() % 0x2f00, tag));
      events.push_back(live.back());
    }
  }
  const Sample end = summary_of(events).samples.back();
  const auto pages = pages_of(live);
  CHECK(end.live_blocks == live.size());
  CHECK(end.pages == pages.size());
}

TEST_CASE("overhead summary: a gap between two areas is none of the heap's") {
  const Summary summary = summary_of({malloc(0x1000, 16, 1), malloc(0x7f0000000000, 16, 2), malloc(0x1018, 16, 3)});
  CHECK(summary.samples.back().held_pages_max == 0);
  CHECK(summary.gaps[cmt::heap::SizeClasses::index(8)].count == 1);
  CHECK(summary.samples.back().small_gap_bytes == 8);
}

TEST_CASE("overhead summary: pages that lost their last block may be held, but no more than is resident") {
  const Event large = malloc(0x100000, 10 << 12, 1), other = malloc(0x8000000, 16, 2);
  Event resident;
  resident.kind = Kind::sample;
  resident.size = 4 << 12;
  CHECK(summary_of({large, other, free(large)}).samples.back().held_pages_max == 10);
  const Sample bound = summary_of({large, other, free(large), resident}).samples.back();
  CHECK(bound.held_pages_max == 4);
  CHECK(bound.resident_bytes == 4 << 12);
  CHECK(bound.pages == 1);
}

TEST_CASE("overhead summary: who holds the pages is told where nothing pins one") {
  std::vector<Event> events;
  for (cmt::Tag tag = 1; tag <= 64; ++tag) events.push_back(malloc(0x10000 + tag * 2048, 100, tag));
  const Summary summary = summary_of(events);
  CHECK(summary.pins.pinned_pages == 0);
  const Holding& all = summary.holders.by_size[cmt::heap::SizeClasses::index(100)];
  CHECK(summary.holders.pages == 33);
  CHECK(all.blocks == 64);
  CHECK(all.page_bytes == 33 << 12);
  CHECK(all.sole_bytes == 33 << 12);
  CHECK(all.unused_bytes == (33 << 12) - 6400);
  CHECK(summary.holders.by_kind[static_cast<std::size_t>(Kind::malloc)] == all);
}

TEST_CASE("overhead summary: ends of blocks from before the trace are counted, since no figure has those blocks") {
  const Event before = malloc(0x5000, 8, 1);
  const Summary summary = summary_of({free(before), malloc(0x1000, 16, 2)});
  CHECK(summary.unknown_ends == 1);
  CHECK(summary.defects == 0);
  CHECK(summary.peak.live_bytes == 16);
}

TEST_CASE("overhead summary: slop is known where usable sizes are") {
  Event event = malloc(0x1000, 10, 1);
  event.usable = 24;
  CHECK(summary_of({event}, true).samples.back().slop_bytes == 14);
  CHECK_FALSE(summary_of({event}).samples.back().slop_bytes);
}

TEST_CASE("overhead summary: there are at most 256 samples of a trace, evenly spaced, and the last is its end") {
  std::vector<Event> events;
  for (cmt::Tag tag = 1; tag <= 100'000; ++tag) {
    const Event block = malloc(0x1000, 8, tag);
    events.push_back(block);
    events.push_back(free(block));
  }
  events.pop_back();
  const Summary summary = summary_of(events);
  REQUIRE(summary.samples.size() >= 128);
  CHECK(summary.samples.size() <= 256);
  CHECK(summary.samples.back().event == events.size());
  const std::uint64_t interval = summary.samples[0].event;
  int wrong = 0;
  for (std::size_t i = 0; i + 1 < summary.samples.size(); ++i) {
    wrong += summary.samples[i].event != (i + 1) * interval;
    const std::size_t walk = i < 128 ? 8 : 16;  // the first 128 were every second one of an earlier 256
    wrong += summary.samples[i].old.has_value() != ((i + 1) % walk == 0);
  }
  CHECK(wrong == 0);
  CHECK(summary.samples.back().old);
}

TEST_CASE("overhead summary: what outlived the heap's renewal and holds a page alone is told, the oldest first") {
  std::vector<Event> events{malloc(0x5000, 8, 1), malloc(0x9000, 8, 2)};
  for (cmt::Tag tag = 3; tag < 300; ++tag) {
    const Event block = malloc(0x1000, 100, tag);
    events.push_back(block);
    events.push_back(free(block));
  }
  const Summary summary = summary_of(events);
  CHECK(summary.pins.pinned_pages == 2);
  REQUIRE(summary.pins.oldest.size() == 2);
  CHECK(summary.pins.oldest[0].block.tag == 1);
  CHECK(summary.samples.back().old->separable_pages == 1);
}

TEST_CASE("overhead summary: a block without an address is an error") {
  CHECK_THROWS_AS(summary_of({malloc(0, 8, 1)}), cmt::FormatError);
}

TEST_CASE("overhead summary: the most separable pages are found behind a phase with more unused bytes") {
  std::vector<Event> events, phase;
  cmt::Tag tag = 0;
  const auto make = [&](std::uint64_t address, std::uint64_t size) {
    events.push_back(malloc(address, size, ++tag));
    return events.back();
  };
  for (std::uint64_t page = 1; page <= 1000; ++page) phase.push_back(make(page << 12, 2100));
  for (const Event& block : phase) events.push_back(free(block));
  phase.clear();
  for (std::uint64_t i = 0; i < 6400; ++i) phase.push_back(make((std::uint64_t{1} << 24) + 64 * i, 64));
  const std::size_t loaded = events.size();
  for (std::size_t i = 0; i < phase.size(); ++i) {
    if (i % 64 != 5) events.push_back(free(phase[i]));
  }
  const std::size_t serving = events.size();
  for (int i = 0; i < 4000; ++i) {
    const Event block = make(std::uint64_t{1} << 28, 64);
    events.push_back(free(block));
  }
  Complaints complaints(false, [](const std::string&) {});
  Summariser summariser("a.trace", 12, false, complaints);
  std::uint64_t last_walk = 0, pages = 0;
  summariser.call_at_separable([&](const cmt::heap::AddressIndex&, const MemoryUse& now) {
    last_walk = now.event;
    pages = now.pages;
  });
  for (const Event& event : events) summariser.count_event(event);
  const Summary summary = summariser.finish(false);
  CHECK(summary.holders.event < 2000);
  CHECK(last_walk > loaded);
  CHECK(last_walk < serving + 4000);
  CHECK(pages == doctest::Approx(100).epsilon(0.02));
}
