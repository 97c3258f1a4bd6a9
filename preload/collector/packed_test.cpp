#include "preload/collector/packed.h"

#include <doctest/doctest.h>

#include <random>

using namespace cmt::collector;

namespace {

constexpr std::uint64_t published = slot_valid | slot_parity;

void check_round_trip(const std::vector<Slot>& records, std::size_t bytes_max) {
  Packer packer;
  for (int piece = 0; piece < 2; ++piece) {
    for (const Slot& record : records) packer.add(record.head, record.body);
    CHECK(packer.count() == records.size());
    const Packed packed = packer.take();
    CHECK(packed.bytes() <= bytes_max);
    Unpacker unpacker(packed);
    for (const Slot& record : records) {
      const Slot got = unpacker.next();
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

TEST_CASE("packed: what a lone thread does near one place takes 8 bytes a record") {
  std::vector<Slot> records;
  std::mt19937 random(1);
  for (int i = 0; i < 10000; ++i) {
    const std::uint64_t address = 0x55550000'0000 + random() % 400000 * 16;
    records.push_back(i % 2 != 0 ? event(1, address, 0, 77) : event(0, address, 8 + random() % 1017, 77));
  }
  check_round_trip(records, records.size() * 8 + 8);
}

TEST_CASE("packed: records of all sorts come back as they were, but for their being published") {
  std::vector<Slot> records;
  std::mt19937_64 random(2);
  for (int i = 0; i < 20000; ++i) {
    const unsigned bits = static_cast<unsigned>(random() % 64), more = static_cast<unsigned>(random() % 64);
    Slot slot{random() >> bits, random() >> more};
    slot.head &= ~std::uint64_t{1 << 15};
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

TEST_CASE("packed: nothing") {
  Packer packer;
  const Packed packed = packer.take();
  CHECK(packed.count == 0);
  CHECK(Unpacker(packed).left() == 0);
}
