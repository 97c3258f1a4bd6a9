// Checks the moments of --at, and that the sums by stack equal those of the summary.
#include "overhead/by_holder.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "analysis/places/live_walks.h"
#include "analysis/places/summarise.h"

namespace {

using cmt::Event;
using namespace cmt::analysis;
using namespace cmt::overhead;

/// Blocks made and ended at random, few of them kept.
std::vector<Event> random_events(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Event> events, live;
  for (cmt::Tag tag = 1; tag <= 4000; ++tag) {
    if (random() % 20 < 9 && !live.empty()) {
      const std::size_t victim = random() % live.size();
      Event end;
      end.kind = cmt::Kind::free;
      end.old_address = live[victim].address;
      end.old_tag = live[victim].tag;
      events.push_back(end);
      live[victim] = live.back();
      live.pop_back();
    } else {
      Event block;
      block.address = 0x100000 + tag * 0x410;
      block.size = random() % (tag % 50 == 0 ? 0x400 : 64);
      block.tag = tag;
      live.push_back(block);
      events.push_back(live.back());
    }
  }
  return events;
}

template <class Holdings>
Holding sum_of(const Holdings& holdings) {
  Holding sum;
  for (const Holding& each : holdings) {
    sum.blocks += each.blocks;
    sum.live_bytes += each.live_bytes;
    sum.page_bytes += each.page_bytes;
    sum.unused_bytes += each.unused_bytes;
  }
  return sum;
}

}  // namespace

TEST_CASE("holders by stack: sums are those of the summary, at its moment") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    cmt::command::Complaints complaints(false, [](const std::string&) {});
    Summariser summariser("a", 12, false, complaints);
    PageUse sum;
    OldBlocks old;
    std::uint64_t event = 0;
    summariser.call_at_holders([&](const cmt::heap::AddressIndex& live, const MemoryUse& now) {
      event = now.event;
      old = find_pins(live, 12, now.old_before()).old;
      sum = PageUse();
      const auto key_of = [](const cmt::heap::PlacedBlock& block) { return static_cast<std::uint32_t>(block.tag % 7); };
      for (const auto& entry : cmt::analysis::find_page_uses(live, 12, now.old_before(), key_of).entries)
        sum += entry.use;
    });
    for (const Event& each : random_events(seed)) summariser.count_event(each);
    const Summary summary = summariser.finish(false);
    CHECK(event == summary.holders.event);
    for (const Holding& all :
         {sum_of(summary.holders.by_size), sum_of(summary.holders.by_age), sum_of(summary.holders.by_kind)}) {
      CHECK(sum.blocks == all.blocks);
      CHECK(sum.live_bytes == all.live_bytes);
      CHECK(sum.page_bytes == all.page_bytes);
      CHECK(sum.unused_bytes == all.unused_bytes);
    }
    CHECK(sum.page_bytes == summary.holders.pages << 12);
    CHECK(sum.old_bytes == old.bytes);
    CHECK(sum.old_page_bytes == old.pages << 12);
    CHECK(sum.pinned_pages == old.pinned_pages);
    CHECK(old.separable_pages != 0);
    CHECK(static_cast<std::uint64_t>(sum.separable_bytes) / 4096 == old.separable_pages);
  }
}

TEST_CASE("holders by stack: the moment is a sample, the peak, an event, a time or a mark") {
  CHECK(HolderMoment::parse("unused"));
  CHECK(HolderMoment::parse("peak")->is_peak);
  CHECK(HolderMoment::parse("1000")->until->to->value == 1000);
  CHECK(HolderMoment::parse("1.5s")->until->to->value == 1'500'000'000);
  CHECK(HolderMoment::parse("@load")->until->to->label == "load");
  for (const char* const text : {"", "soon", "5:7", "-1", "@"}) CHECK_FALSE(HolderMoment::parse(text));
}
