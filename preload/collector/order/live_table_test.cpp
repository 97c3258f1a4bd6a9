// Checks the table of live blocks against a map, for crowded buckets, large sizes and blocks in a realloc.

#include "preload/collector/order/live_table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

using namespace cmt;
using namespace cmt::collector;

namespace {

constexpr std::uint64_t large = LiveTable::large;

std::map<std::uint64_t, std::uint64_t> sizes_in(const LiveTable& table) {
  std::map<std::uint64_t, std::uint64_t> sizes;
  for (const format::LiveBlock& block : table.list_live_blocks()) sizes[block.address] = block.size;
  return sizes;
}

/// One block in `kept` stays where its address is drawn again.
void check_at_random(unsigned kept) {
  LiveTable table(1);
  std::map<std::uint64_t, std::uint64_t> sizes;
  std::mt19937_64 random(1);
  Tag tag = 0;
  for (int i = 0; i < 200'000; ++i) {
    const std::uint64_t address = 0x7f0000000000 + random() % 12'000 * 16;
    const std::uint64_t size = random() % 8 == 0 ? large + random() % 3 : random() % 1000;
    const auto place = table.find(address);
    REQUIRE(place.has_value() == sizes.contains(address));
    Tag taken;
    std::uint32_t taken_size;
    if (place && random() % kept != 0) {
      if (random() % 2 == 0) {
        table.erase(*place);
      } else if (LiveTable::Run(table, 0).take(address, taken, taken_size)) {
        REQUIRE(taken_size == sizes[address]);
      } else {
        REQUIRE(sizes[address] >= large);
        table.erase(*place);
      }
      sizes.erase(address);
    } else if (size < large && random() % 2 == 0) {
      REQUIRE(LiveTable::Run(table, 1).insert(address, ++tag, static_cast<std::uint32_t>(size)) == !place);
      sizes.emplace(address, size);
    } else {
      table.set(table.find_or_reserve(address), {++tag, address, size});
      sizes[address] = size;
    }
  }
  CHECK(table.live_blocks() == sizes.size());
  CHECK(sizes_in(table) == sizes);
}

}  // namespace

TEST_CASE("live table: a block is found with its tag and its size, however large") {
  LiveTable table(1);
  for (const std::uint64_t size : {std::uint64_t{0}, large - 1, large, large + 1, ~std::uint64_t{0}}) {
    const Tag tag = (Tag{1} << 47) - 1;
    table.set(table.find_or_reserve(0xffffffffffff), {tag, 0xffffffffffff, size});
    auto place = table.find(0xffffffffffff);
    REQUIRE(place);
    place->set_in_realloc(true);
    CHECK(table.block(*place).tag == tag);
    CHECK(table.block(*place).address == 0xffffffffffff);
    CHECK(table.block(*place).size == size);
  }
  CHECK(table.live_blocks() == 1);
}

TEST_CASE("live table: addresses whose lower halves differ in one bit or not at all are blocks apart") {
  LiveTable table(1);
  const std::uint64_t addresses[] = {0x100000000, 0x100000001, 0x7f0000000000, 0x7f0100000000, 0x1, 0x7f0000000001};
  Tag tag = 0;
  for (const std::uint64_t address : addresses) CHECK(LiveTable::Run(table, 1).insert(address, ++tag, 5));
  tag = 0;
  for (const std::uint64_t address : addresses) {
    CHECK(!LiveTable::Run(table, 1).insert(address, 99, 6));
    const auto place = table.find(address);
    REQUIRE(place);
    CHECK(place->address() == address);
    CHECK(place->tag() == ++tag);
  }
}

TEST_CASE("live table: what is not plain is not taken") {
  LiveTable table(10);
  table.set(table.find_or_reserve(0x100), {9, 0x100, 1});       // from before the trace
  table.set(table.find_or_reserve(0x200), {10, 0x200, large});  // too large
  table.set(table.find_or_reserve(0x300), {11, 0x300, 3});
  table.find(0x300)->set_in_realloc(true);
  table.set(table.find_or_reserve(0x400), {12, 0x400, large - 1});
  Tag tag;
  std::uint32_t size;
  for (const std::uint64_t address : {0x100, 0x200, 0x300, 0x500})
    CHECK(!LiveTable::Run(table, 0).take(address, tag, size));
  CHECK(table.live_blocks() == 4);
  CHECK(LiveTable::Run(table, 0).take(0x400, tag, size));
  CHECK(tag == 12);
  CHECK(size == large - 1);
  CHECK(!LiveTable::Run(table, 0).take(0x400, tag, size));
}

TEST_CASE("live table: after random insertions and erasures it holds what a map holds") {
  for (const unsigned kept : {2, 4, 64}) {
    CAPTURE(kept);
    check_at_random(kept);
  }
}

TEST_CASE("live table: a large table has all blocks after it has grown, in 32 bytes a block") {
  LiveTable table(1);
  constexpr Tag count = 300'000;
  const auto address_of = [](Tag tag) { return 0x7f0000000000 + tag * 48; };
  Tag refused = 0, bytes_max = 0, lost = 0, wrong = 0;  // one check for each block takes long under a sanitizer
  for (Tag tag = 1; tag <= count; ++tag) {
    if (!LiveTable::Run(table, 1).insert(address_of(tag), tag, static_cast<std::uint32_t>(tag))) ++refused;
    if (tag >= 200'000) bytes_max = std::max<Tag>(bytes_max, (table.bytes() + tag - 1) / tag);
  }
  CHECK(refused == 0);
  CHECK(bytes_max <= 32);
  Tag taken;
  std::uint32_t size;
  for (Tag tag = 2; tag <= count; tag += 2) {
    if (!LiveTable::Run(table, 0).take(address_of(tag), taken, size)) ++lost;
  }
  CHECK(lost == 0);
  CHECK(table.live_blocks() == count / 2);
  for (Tag tag = 1; tag <= count; ++tag) {
    const auto place = table.find(address_of(tag));
    if (place.has_value() != (tag % 2 != 0)) ++wrong;
    if (place && (place->tag() != tag || table.block(*place).size != tag)) ++wrong;
  }
  CHECK(wrong == 0);
}
