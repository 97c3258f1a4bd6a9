#include "preload/collector/ring_events.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <tuple>
#include <vector>

using namespace cmt::collector;

namespace {

constexpr std::uint32_t stream_malloc = 0, stream_free = 1, stream_realloc = 3;

Slot slot_of(std::uint64_t kind, std::uint64_t address, std::uint64_t size, std::uint64_t stamp) {
  return {address << slot_address_shift | kind, size << 32 | (stamp & 0xffffffff)};
}

/// What a thread appends in some minutes: events of one record and of several, stamps that run early, new epochs and
/// now and then the old one once more, void places.
std::vector<Slot> records_of(std::mt19937& random, std::size_t count) {
  std::vector<Slot> records;
  std::uint64_t now = 0xffff0000, epoch = 0;
  while (records.size() < count) {
    now += random() % 100 != 0 ? random() % 100 : random();
    const std::uint64_t stamp = now - random() % 300;
    if (stamp >> 32 != epoch) records.push_back({record_stamp_high, epoch = stamp >> 32});
    const auto what = random() % 64;
    if (what == 0) records.push_back({record_void, 0});
    if (what == 1) records.push_back({record_count, random() % 9});
    if (what == 2) records.push_back({record_size, std::uint64_t{random()} << 32});
    if (what == 3) records.push_back({record_piece | std::uint64_t{2} << slot_alignment_shift | 0x6261 << 16, 0});
    const std::uint32_t kind = what < 8 ? stream_realloc : what % 2 == 0 ? stream_malloc : stream_free;
    records.push_back(slot_of(kind, 0x1000 + random() % 5000 * 16, random() % 2000, stamp));
  }
  return records;
}

using Seen = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;  // a record, its stamp

Seen seen(const Slot& slot, std::uint64_t stamp) { return {slot.head, slot.body, stamp}; }

/// All that is known of a front.
struct Front {
  Seen record;
  std::uint64_t place, settled, epoch, size, count;
  bool has_more;
  std::string label;
  bool operator==(const Front&) const = default;
};

Front front_of(const Stream& stream) {
  const Recorded event = stream.front();
  return {seen(stream.slot(), stream.stamp()),
          stream.front_place(),
          stream.settled(),
          stream.epoch(),
          event.size,
          event.count,
          stream.has_more(),
          stream.label()};
}

Packed packed(const std::vector<Slot>& records, std::size_t from, std::size_t count) {
  Packer packer;
  for (std::size_t i = from; i < from + count; ++i) packer.add(records[i].head, records[i].body);
  return packer.take();
}

std::vector<Front> one_by_one(const std::vector<Slot>& records) {
  Stream stream;
  std::vector<Front> fronts;
  stream.append(packed(records, 0, records.size()));
  for (; stream.has_front(); stream.pop()) fronts.push_back(front_of(stream));
  return fronts;
}

/// Takes what is there, in runs up to bounds, and compares it with what there is event by event.
struct Runs {
  const std::vector<Front>& wanted;
  std::mt19937& random;
  Stream stream{};
  std::size_t at = 0, in_runs = 0;
  bool is_same = true;

  void take_run(std::uint64_t bound) {
    stream.take_short(bound, [&](const Slot& slot, std::uint64_t stamp, std::uint64_t) {
      if (slot_kind(slot.head) == stream_realloc) return false;
      is_same = is_same && at < wanted.size() && stamp <= bound && seen(slot, stamp) == wanted[at].record;
      ++at, ++in_runs;
      return true;
    });
  }

  void take_all() {
    while (is_same && stream.has_front()) {
      const std::uint64_t bound = stream.stamp() + random() % 3 * (random() % 5000) - random() % 2;
      take_run(bound);
      if (!stream.has_front()) return;
      is_same = is_same && at < wanted.size() && front_of(stream) == wanted[at];
      // Nothing is left over that was to be taken.
      is_same = is_same && (stream.stamp() > bound || stream.has_more() || stream.kind() == stream_realloc);
      stream.pop();
      ++at;
    }
  }
};

}  // namespace

TEST_CASE("stream: what is taken in runs is what comes one by one, wherever chunks and bounds end") {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    const std::vector<Slot> records = records_of(random, 3000);
    const std::vector<Front> wanted = one_by_one(records);
    Runs runs{wanted, random};
    const std::size_t chunk_max = std::size_t{1} << random() % 12;
    for (std::size_t at = 0, count = 0; at < records.size(); at += count) {
      count = std::min<std::size_t>(1 + random() % chunk_max, records.size() - at);
      runs.stream.append(packed(records, at, count));
      if (random() % 2 == 0) runs.take_all();
    }
    runs.take_all();
    CHECK(runs.is_same);
    CHECK(runs.at == wanted.size());
    CHECK(runs.in_runs > wanted.size() / 2);
    CHECK(runs.stream.settled() == records.size());
  }
}

TEST_CASE("stream: the address ahead is that of a record that follows, where there is one") {
  std::vector<Slot> records;
  for (std::uint64_t i = 0; i < 1000; ++i) records.push_back(slot_of(stream_malloc, 16 * (i + 1), 8, i));
  Stream stream;
  stream.append(packed(records, 0, records.size()));
  std::uint64_t at = 0, known = 0;
  bool is_right = true;
  stream.take_short(~std::uint64_t{0}, [&](const Slot&, std::uint64_t, std::uint64_t ahead) {
    ++at;
    is_right = is_right && (ahead == 0 || (ahead > 16 * at && ahead <= 16 * (at + 32)));
    known += ahead != 0 ? 1 : 0;
    return true;
  });
  CHECK(is_right);
  CHECK(at == records.size());
  CHECK(known > records.size() - 40);
}

TEST_CASE("stream: a resumed one goes on at its place, of its epoch") {
  Stream stream;
  stream.resume({.position = 500, .thread = 7, .stamp_high = 3});
  stream.append(packed({slot_of(stream_malloc, 16, 8, 5), slot_of(stream_free, 16, 0, 9)}, 0, 2));
  CHECK(stream.settled() == 500);
  std::uint64_t last = 0;
  stream.take_short(~std::uint64_t{0}, [&](const Slot&, std::uint64_t stamp, std::uint64_t) {
    last = stamp;
    return true;
  });
  CHECK(last == (std::uint64_t{3} << 32 | 9));
  CHECK(stream.settled() == 502);
  CHECK(stream.epoch() == 3);
  CHECK(stream.thread == 7);
}

TEST_CASE("stream: what began an event that has no end is not the next one's") {
  constexpr std::uint64_t piece = record_piece | std::uint64_t{2} << slot_alignment_shift | 0x6261 << 16;
  Stream stream;
  stream.append(packed({{record_count, 5}, {piece, 0}, {record_void, 0}, slot_of(stream_malloc, 16, 8, 1)}, 0, 4));
  CHECK(stream.has_front());
  CHECK_FALSE(stream.has_more());
  CHECK(stream.front().count == 1);
  CHECK(stream.label().empty());
}
