// Checks the fates of blocks against their definitions, computed from the whole list of events.

#include "analysis/fates/fate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace cmt::analysis {
namespace {

constexpr std::uint64_t fate_page = 16;  // small, so that few bytes are to be counted
constexpr std::uint64_t fate_touched_min = 64;

struct FatedBlock {
  Tag tag = 0;
  std::uint64_t size = 0;
  std::uint64_t born = 0;
  std::uint32_t thread = 0;
};

/// Follows events with complaints that nobody reads.
class Followed {
 public:
  explicit Followed(heap::Clock::Unit unit = heap::Clock::Unit::events)
      : complaints_(false, [](const std::string&) {}), fates_(unit, fate_touched_min, complaints_) {}

  BlockFates<FatedBlock>& fates() { return fates_; }
  EndedBlock<FatedBlock> follow(const Event& event) {
    const EndedBlock<FatedBlock> ended = fates_.follow(event);
    if (event.makes_block()) fates_.begin_block(event, {});
    return ended;
  }

 private:
  command::Complaints complaints_;
  BlockFates<FatedBlock> fates_;
};

Event made(Tag tag, std::uint64_t size = 8, std::uint32_t thread = 0) {
  return {.kind = Kind::malloc, .thread = thread, .size = size, .tag = tag};
}
Event freed(Tag tag, std::uint32_t thread = 0) { return {.kind = Kind::free, .thread = thread, .old_tag = tag}; }
Event touched(Tag tag, std::uint64_t begin, std::uint64_t pages, std::uint32_t thread = 0) {
  return {.kind = Kind::touch,
          .thread = thread,
          .size = begin,
          .count = pages,
          .alignment = fate_page,
          .old_tag = tag,
          .old_address = 1 << 20};
}

/// 4,000 events of three threads: allocations, reallocations, frees, touches and marks, in random order.
std::vector<Event> random_events(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t bound) { return static_cast<std::uint32_t>(random() % bound); };
  std::vector<Event> events;
  std::vector<std::pair<Tag, std::uint64_t>> live;
  Tag tags = 0;
  while (events.size() < 4000) {
    const std::uint32_t thread = below(3), choice = below(10);
    if (choice == 9) {
      events.push_back({.kind = Kind::mark, .thread = thread});
    } else if (choice < 4 || live.empty()) {
      const std::uint64_t size = 1 + below(200);
      events.push_back(made(++tags, size, thread));
      live.emplace_back(tags, size);
    } else {
      const std::size_t at = below(3) == 0 ? below(static_cast<std::uint32_t>(live.size())) : live.size() - 1;
      if (choice < 6) {
        events.push_back(touched(live[at].first, fate_page * below(4), 1 + below(4), thread));
        continue;
      }
      Event event = freed(live[at].first, thread);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
      if (choice == 6) {
        event.kind = Kind::realloc;
        event.size = 1 + below(200);
        event.tag = ++tags;
        live.emplace_back(event.tag, event.size);
      }
      events.push_back(event);
    }
  }
  return events;
}

/// The fate of the block that events[end] ends, by definition.
Fate fate_by_definition(const std::vector<Event>& events, std::size_t end) {
  const Event& last = events[end];
  const auto allocation =
      std::find_if(events.begin(), events.end(), [&](const Event& event) { return event.tag == last.old_tag; });
  const auto begin = static_cast<std::size_t>(allocation - events.begin());
  const bool is_in_use =
      std::any_of(allocation + 1, events.begin() + static_cast<std::ptrdiff_t>(end),
                  [&](const Event& event) { return event.thread == allocation->thread && is_of_thread(event.kind); });
  Fate fate;
  fate.lifetime = end - begin;
  fate.is_temporary = last.tag == 0 && last.thread == allocation->thread && !is_in_use;
  fate.is_short_lived = fate.lifetime <= 256;
  fate.is_of_other_thread = last.thread != allocation->thread;
  if (allocation->size < fate_touched_min) return fate;
  for (std::uint64_t byte = 0; byte < allocation->size; ++byte) {
    fate.untouched_bytes +=
        std::none_of(allocation, events.begin() + static_cast<std::ptrdiff_t>(end), [&](const Event& event) {
          return event.kind == Kind::touch && event.old_tag == last.old_tag && event.size <= byte &&
                 byte < event.size + event.count * fate_page;
        });
  }
  return fate;
}

}  // namespace

TEST_CASE("fate: each block's fate is the one that the definitions give") {
  for (const std::uint32_t seed : {1u, 2u, 3u}) {
    const std::vector<Event> events = random_events(seed);
    Followed followed;
    std::uint64_t ended_blocks = 0, temporary = 0, long_lived = 0;
    for (std::size_t i = 0; i < events.size(); ++i) {
      const EndedBlock<FatedBlock> ended = followed.fates().follow(events[i]);
      REQUIRE(static_cast<bool>(ended) == events[i].ends_block());
      if (ended) {
        const Fate expected = fate_by_definition(events, i);
        REQUIRE(ended.block->tag == events[i].old_tag);
        REQUIRE(ended.fate.lifetime == expected.lifetime);
        REQUIRE(ended.fate.untouched_bytes == expected.untouched_bytes);
        REQUIRE(ended.fate.is_temporary == expected.is_temporary);
        REQUIRE(ended.fate.is_short_lived == expected.is_short_lived);
        REQUIRE(ended.fate.is_of_other_thread == expected.is_of_other_thread);
        ++ended_blocks;
        temporary += ended.fate.is_temporary;
        long_lived += !ended.fate.is_short_lived;
      }
      if (events[i].makes_block()) REQUIRE(followed.fates().begin_block(events[i], {}));
    }
    CHECK(ended_blocks > 500);  // else the test would check little
    CHECK(temporary > 10);
    CHECK(long_lived > 10);
  }
}

TEST_CASE("fate: a block that its thread's next event frees is temporary, whatever other threads do meanwhile") {
  Followed followed;
  followed.follow(made(1));
  followed.follow(made(2, 8, 1));
  CHECK(followed.follow(freed(1)).fate.is_temporary);
  followed.follow(made(3));
  CHECK_FALSE(followed.follow(freed(2, 1)).fate.is_of_other_thread);
  CHECK(followed.follow(freed(3, 1)).fate.is_of_other_thread);
}

TEST_CASE("fate: touched pages are no event of a thread, so that a block that is touched and freed is temporary") {
  Followed followed;
  followed.follow(made(1, 100));
  followed.follow(touched(1, 0, 2));
  const Fate fate = followed.follow(freed(1)).fate;
  CHECK(fate.is_temporary);
  CHECK(fate.untouched_bytes == 100 - 2 * fate_page);
}

TEST_CASE("fate: a block that its thread's next event reallocates is not temporary") {
  Followed followed;
  followed.follow(made(1));
  CHECK_FALSE(followed.follow({.kind = Kind::realloc, .size = 16, .tag = 2, .old_tag = 1}).fate.is_temporary);
  CHECK(followed.follow(freed(2)).fate.is_temporary);
}

TEST_CASE("fate: an event that ends no live block has no fate") {
  Followed followed;
  CHECK_FALSE(followed.follow(freed(7)));
  followed.follow(made(8));
  CHECK_FALSE(followed.follow(freed(7)));
  CHECK_FALSE(followed.fates().is_made_here(7));
  CHECK(followed.follow(freed(8)));
  CHECK_FALSE(followed.follow(freed(8)));
  CHECK(followed.fates().is_made_here(8));
}

TEST_CASE("fate: a lifetime by the clock of bytes is short up to 32 KiB") {
  Followed followed(heap::Clock::Unit::bytes);
  followed.follow(made(1));
  followed.follow(made(2, 32'768));
  CHECK(followed.follow(freed(1)).fate.is_short_lived);
  followed.follow(made(3, 1));
  const Fate fate = followed.follow(freed(2)).fate;
  CHECK(fate.lifetime == 1);
  followed.follow(made(4, 8));
  followed.follow(made(5, 32'761));
  CHECK_FALSE(followed.follow(freed(3)).fate.is_short_lived);
}

TEST_CASE("fate: a block from before a late start is temporary if its thread's first event frees it") {
  Followed followed;
  followed.fates().start_late(100, 1);
  followed.fates().add_early({.tag = 7, .size = 64, .born = 90, .thread = 2});
  followed.fates().add_early({.tag = 9, .size = 64, .born = 95, .thread = 0});
  followed.fates().touch_early({.tag = 9, .begin = 16, .end = 48}, 64);
  CHECK(followed.fates().is_made_here(7));
  const EndedBlock<FatedBlock> ended = followed.follow(freed(9));
  CHECK(ended.fate.is_temporary);
  CHECK(ended.fate.lifetime == 6);
  CHECK(ended.fate.untouched_bytes == 32);
  CHECK(followed.follow(freed(7, 2)).fate.is_temporary);
}

TEST_CASE("fate: the untouched bytes of a live block are known before it ends") {
  Followed followed;
  followed.follow(made(1, 64));
  followed.follow(touched(1, 32, 0));  // up to its end
  std::uint64_t untouched = 0;
  followed.fates().for_each_live([&](const FatedBlock& block) { untouched += followed.fates().untouched_of(block); });
  CHECK(untouched == 32);
}

}  // namespace cmt::analysis
