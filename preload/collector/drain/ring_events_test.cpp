// Checks that records become the same events however they are cut into chunks, with and without stacks.

#include "preload/collector/drain/ring_events.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <tuple>
#include <vector>

using namespace cmt::collector;

namespace {

constexpr std::uint32_t ring_malloc = 0, ring_free = 1, ring_realloc = 3;

Slot slot_of(std::uint64_t kind, std::uint64_t address, std::uint64_t size, std::uint64_t stamp) {
  return {address << slot_address_shift | kind, size << 32 | (stamp & 0xffffffff)};
}

/// Records of some minutes of a thread: events of one record and of several, early stamps, and void records. The upper
/// bits of stamps change, and now and then change back.
std::vector<Slot> records_of(std::mt19937& random, std::size_t count) {
  std::vector<Slot> records;
  std::uint64_t now = 0xffff0000, stamp_high = 0;
  while (records.size() < count) {
    now += random() % 100 != 0 ? random() % 100 : random();
    const std::uint64_t stamp = now - random() % 300;
    if (stamp >> 32 != stamp_high) records.push_back({record_stamp_high, stamp_high = stamp >> 32});
    const auto what = random() % 64;
    if (what == 0) records.push_back({record_void, 0});
    if (what == 1) records.push_back({record_count, random() % 9});
    if (what == 2) records.push_back({record_size, std::uint64_t{random()} << 32});
    if (what == 3) records.push_back({record_piece | std::uint64_t{2} << slot_alignment_shift | 0x6261 << 16, 0});
    const std::uint32_t kind = what < 8 ? ring_realloc : what % 2 == 0 ? ring_malloc : ring_free;
    records.push_back(slot_of(kind, 0x1000 + random() % 5000 * 16, random() % 2000, stamp));
  }
  return records;
}

using Seen = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;  // a record, its stamp

Seen seen(const Slot& slot, std::uint64_t stamp) { return {slot.head, slot.body, stamp}; }

/// All that a front says.
struct Front {
  Seen record;
  std::uint64_t position, resume_at, stamp_high, size, count;
  bool has_more;
  std::string label;
  bool operator==(const Front&) const = default;
};

Front front_of(const RingEvents& ring) {
  const cmt::Event event = ring.front();
  return {seen(ring.last_record(), ring.stamp()),
          ring.front_position(),
          ring.resume_point().saved.position,
          ring.resume_point().saved.stamp_high,
          event.size,
          event.count,
          ring.has_extension(),
          std::string(event.label)};
}

Packed packed(const std::vector<Slot>& records, std::size_t from, std::size_t count) {
  Packer packer;
  for (std::size_t i = from; i < from + count; ++i) packer.append(records[i].head, records[i].body);
  return packer.finish();
}

std::vector<Front> one_by_one(const std::vector<Slot>& records) {
  RingEvents ring;
  std::vector<Front> fronts;
  ring.append(packed(records, 0, records.size()));
  for (; ring.has_front(); ring.pop()) fronts.push_back(front_of(ring));
  return fronts;
}

/// Pops what is there, in runs up to bounds, and compares it with the events popped one by one.
struct Runs {
  const std::vector<Front>& wanted;
  std::mt19937& random;
  RingEvents ring{};
  std::size_t at = 0, in_runs = 0;
  bool is_same = true;

  void pop_run(std::uint64_t bound) {
    ring.pop_while(
        bound, [&](std::span<const Slot> read, const cmt::StackId*, std::uint64_t stamp_high, std::uint64_t& stamp) {
          const std::size_t count_max = 1 + random() % 100;
          std::size_t count = 0;
          for (; count < std::min(count_max, read.size()); ++count, ++at) {
            const Slot& slot = read[count];
            const std::uint64_t now = RingEvents::stamp_of(slot, stamp_high, stamp);
            if (slot_kind(slot.head) == ring_realloc || slot_kind(slot.head) >= record_stamp_high || now > bound) break;
            is_same = is_same && at < wanted.size() && seen(slot, now) == wanted[at].record;
            stamp = now;
          }
          in_runs += count;
          return count;
        });
  }

  void pop_all() {
    while (is_same && ring.has_front()) {
      const std::uint64_t bound = ring.stamp() + random() % 3 * (random() % 5000) - random() % 2;
      pop_run(bound);
      if (!ring.has_front()) return;
      is_same = is_same && at < wanted.size() && front_of(ring) == wanted[at];
      // The run has left nothing that it could have popped.
      is_same = is_same && (ring.stamp() > bound || ring.has_extension() || ring.kind() == ring_realloc);
      ring.pop();
      ++at;
    }
  }
};

}  // namespace

TEST_CASE("ring events: runs have the same events as single pops, wherever chunks and bounds end") {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    const std::vector<Slot> records = records_of(random, 3000);
    const std::vector<Front> wanted = one_by_one(records);
    Runs runs{wanted, random};
    const std::size_t chunk_max = std::size_t{1} << random() % 12;
    for (std::size_t at = 0, count = 0; at < records.size(); at += count) {
      count = std::min<std::size_t>(1 + random() % chunk_max, records.size() - at);
      runs.ring.append(packed(records, at, count));
      if (random() % 2 == 0) runs.pop_all();
    }
    runs.pop_all();
    CHECK(runs.is_same);
    CHECK(runs.at == wanted.size());
    CHECK(runs.in_runs > wanted.size() / 2);
    CHECK(runs.ring.resume_point().saved.position == records.size());
  }
}

TEST_CASE("ring events: some records after one that is handed out can be read, and are mostly those that follow") {
  std::vector<Slot> records;
  for (std::uint64_t i = 0; i < 1000; ++i) records.push_back(slot_of(ring_malloc, 16 * (i + 1), 8, i));
  RingEvents ring;
  ring.append(packed(records, 0, records.size()));
  std::uint64_t at = 0, right = 0;
  ring.pop_while(~std::uint64_t{0},
                 [&](std::span<const Slot> read, const cmt::StackId*, std::uint64_t, std::uint64_t&) {
                   for (const Slot& slot : read) {
                     const Slot ahead = (&slot)[RingEvents::ahead];
                     right += ahead.head >> slot_address_shift == 16 * (++at + RingEvents::ahead) ? 1 : 0;
                   }
                   return read.size();
                 });
  CHECK(at == records.size());
  CHECK(right > records.size() - 40);
}

TEST_CASE("ring events: a resumed ring goes on at its position, with its upper bits of stamps") {
  RingEvents ring;
  ring.resume({{.position = 500, .thread = 7, .stamp_high = 3}});
  ring.append(packed({slot_of(ring_malloc, 16, 8, 5), slot_of(ring_free, 16, 0, 9)}, 0, 2));
  CHECK(ring.resume_point().saved.position == 500);
  std::uint64_t last = 0;
  ring.pop_while(~std::uint64_t{0},
                 [&](std::span<const Slot> read, const cmt::StackId*, std::uint64_t high, std::uint64_t& stamp) {
                   for (const Slot& slot : read) last = stamp = RingEvents::stamp_of(slot, high, stamp);
                   return read.size();
                 });
  CHECK(last == (std::uint64_t{3} << 32 | 9));
  CHECK(ring.resume_point().saved.position == 502);
  CHECK(ring.resume_point().saved.stamp_high == 3);
  CHECK(ring.thread == 7);
}

TEST_CASE("ring events: a realloc that has not returned is resumed with the upper bits of its own stamp") {
  RingEvents ring;
  ring.resume({{.position = 500, .thread = 7, .stamp_high = 3}});
  ring.append(packed({slot_of(record_realloc_begin, 16, 0, 5),
                      {record_stamp_high, 4},
                      slot_of(ring_malloc, 32, 8, 1),
                      slot_of(ring_free, 32, 0, 2)},
                     0, 4));
  ring.open_reallocs.push_back({16, ring.point_of_front()});
  ring.pop();
  ring.pop();
  CHECK(ring.point_of_front().saved.stamp_high == 4);
  CHECK(ring.resume_point().saved.position == 500);
  CHECK(ring.resume_point().saved.stamp_high == 3);
  CHECK(ring.resume_point().saved.thread == 7);
}

TEST_CASE("ring events: values of an event without an end do not become the next one's") {
  constexpr std::uint64_t piece = record_piece | std::uint64_t{2} << slot_alignment_shift | 0x6261 << 16;
  RingEvents ring;
  ring.append(packed({{record_count, 5}, {piece, 0}, {record_void, 0}, slot_of(ring_malloc, 16, 8, 1)}, 0, 4));
  CHECK(ring.has_front());
  CHECK_FALSE(ring.has_extension());
  CHECK(ring.front().count == 1);
  CHECK(ring.front().label.empty());
}
