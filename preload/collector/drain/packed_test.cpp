// Checks that packed records come back as they were, and how many words they take.

#include "preload/collector/drain/packed.h"

#include <doctest/doctest.h>

#include <random>

using namespace cmt::collector;

namespace {

constexpr std::uint64_t published = slot_valid | slot_parity;

void check_round_trip(const std::vector<Slot>& records, std::size_t bytes_max) {
  Packer packer;
  for (int piece = 0; piece < 2; ++piece) {
    for (const Slot& record : records) packer.append(record.head, record.body);
    const Packed packed = packer.finish();
    CHECK(packed.bytes() <= bytes_max);
    Unpacker unpacker(packed);
    for (const Slot& record : records) {
      Slot got;
      REQUIRE(unpacker.unpack(&got, 1) == 1);
      REQUIRE(got.head == (record.head & ~published));
      REQUIRE(got.body == record.body);
    }
    CHECK(unpacker.left() == 0);
  }
}

Slot event(std::uint64_t kind, std::uint64_t address, std::uint64_t size, std::uint64_t stamp) {
  return {address << slot_address_shift | slot_valid | kind, size << 32 | stamp};
}

}  // namespace

TEST_CASE("packed: records of one thread with near addresses take 8 bytes each") {
  std::vector<Slot> records;
  std::mt19937 random(1);
  for (int i = 0; i < 10000; ++i) {
    const std::uint64_t address = 0x55550000'0000 + random() % 400000 * 16;
    records.push_back(i % 2 != 0 ? event(1, address, 0, 77) : event(0, address, 8 + random() % 1017, 77));
  }
  check_round_trip(records, records.size() * 8 + 8);
}

TEST_CASE("packed: records of all sorts come back without their published bits") {
  std::vector<Slot> records;
  std::mt19937_64 random(2);
  for (int i = 0; i < 20000; ++i) {
    const unsigned bits = static_cast<unsigned>(random() % 64), more = static_cast<unsigned>(random() % 64);
    Slot slot{random() >> bits, random() >> more};
    if (i % 3 == 0) slot.head &= ~std::uint64_t{0xffff'ffff'ffff'0000};
    records.push_back(slot);
  }
  check_round_trip(records, records.size() * Packer::record_bytes_max);
}

TEST_CASE("packed: values before an event do not disturb the stamps, nor a NULL the addresses") {
  const std::vector<Slot> records{event(0, 0x7f00'0000'1000, 16, 0x8000'0000),
                                  {record_count, 0xffff'ffff'ffff'ffff},
                                  event(2, 0x7f00'0000'1010, 8, 0x8000'0001),
                                  event(1, 0, 0, 0x8000'0002),
                                  event(1, 0x7f00'0000'1010, 0, 0x8000'0003)};
  check_round_trip(records, 16 + 16 + 8 + 16 + 8);
}

TEST_CASE("packed: a record is short up to the very bounds, and comes back on either side of them") {
  constexpr std::uint64_t place = 0x7f00'0000'1000, stamp = 0xffff'ff00, gib = std::uint64_t{1} << 30;
  const Slot first = event(0, place, 16, stamp);
  const auto check = [&](const Slot& second, bool is_short) {
    check_round_trip({first, second, first}, 16 + (is_short ? 8 : 16) + 16);
    Packer packer;
    packer.append(first.head, first.body);
    packer.append(second.head, second.body);
    CHECK(packer.finish().bytes() == (is_short ? 24 : 32));
  };
  check(event(0, place + gib - 8, 16, stamp), true);
  check(event(0, place + gib, 16, stamp), false);
  check(event(0, place - gib, 16, stamp), true);
  check(event(0, place - gib - 8, 16, stamp), false);
  check(event(0, place + 8, 16, stamp), true);
  check(event(0, place + 4, 16, stamp), false);
  check(event(0, 0xffff'ffff'fff8, 16, stamp), false);
  check(event(1, 0, 0, stamp), false);
  check(event(0, place, (1 << 16) - 1, stamp), true);
  check(event(0, place, 1 << 16, stamp), false);
  check(event(0, place, 0xffff'ffff, stamp), false);
  check(event(0, place, 16, (stamp + 0x7ff) & 0xffff'ffff), true);
  check(event(0, place, 16, (stamp + 0x800) & 0xffff'ffff), false);
  check(event(0, place, 16, stamp - 1), false);
  check({first.head | slot_has_old_block, first.body}, true);
  check({first.head | 5 << slot_alignment_shift, first.body}, false);
  check(event(record_events - 1, place, 16, stamp), true);
  check(event(record_realloc_begin, place, 0, stamp), true);
  check(event(record_owner, 0, 3, stamp), false);
  check(event(record_stamp_high, 0, 0, 7), false);
}

TEST_CASE("packed: blocks and NULL at the very bottom of the addresses") {
  check_round_trip({event(1, 0, 0, 1), event(0, 8, 1, 2), event(1, 0, 0, 3), event(0, 0x10, 1, 4)}, 4 * 8);
}

TEST_CASE("packed: nothing") {
  Packer packer;
  const Packed packed = packer.finish();
  CHECK(packed.count == 0);
  CHECK(Unpacker(packed).left() == 0);
}
