// Checks pinned, old and separable pages, and holders, on small sets of blocks.
#include "analysis/places/live_walks.h"

#include <doctest/doctest.h>

#include <initializer_list>

using cmt::Kind;
using cmt::heap::AddressIndex;
using cmt::heap::PlacedBlock;
using namespace cmt::analysis;

namespace {

void insert(AddressIndex& live, const PlacedBlock& block) {
  cmt::heap::Neighbourhood place{block, {}, {}};
  live.insert(place);
}

/// Finds the pins among these blocks; those born before 100 are old.
PinnedPages walk(std::initializer_list<PlacedBlock> blocks) {
  AddressIndex live;
  for (const PlacedBlock& block : blocks) insert(live, block);
  return find_pins(live, 12, 100);
}

/// Finds the holders at the moment when 1,000 bytes have been allocated.
Holders holders_of(std::initializer_list<PlacedBlock> blocks) {
  AddressIndex live;
  for (const PlacedBlock& block : blocks) insert(live, block);
  return find_holders(live, 12, 1000);
}

const Holding& of_size(const Holders& holders, std::uint64_t size) {
  return holders.by_size[cmt::heap::SizeClasses::index(size)];
}

}  // namespace

TEST_CASE("pin walk: a small old block alone on a page pins it") {
  const PinnedPages found =
      walk({{0x1010, 16, 50, 1}, {0x2000, 16, 50, 2}, {0x2100, 16, 150, 3}, {0x3000, 16, 150, 4}});
  REQUIRE(found.pins.size() == 1);
  CHECK(found.pins[0].tag == 1);
  CHECK(found.old.pages == 2);
  CHECK(found.old.bytes == 32);
}

TEST_CASE("pin walk: a large block pins nothing") {
  CHECK(walk({{0x1000, 513, 50, 1}}).pins.empty());
  CHECK(walk({{0x1000, 512, 50, 1}}).pins.size() == 1);
}

TEST_CASE("pin walk: a block across a border pins both pages if it is alone on both") {
  CHECK(walk({{0x1ff0, 32, 50, 1}}).pins.size() == 2);
  CHECK(walk({{0x1ff0, 32, 50, 1}, {0x2100, 8, 150, 2}}).pins.size() == 1);
  CHECK(walk({{0x1000, 8, 150, 2}, {0x1ff0, 32, 50, 1}}).pins.size() == 1);
}

TEST_CASE("pin walk: pages of old blocks are counted once") {
  const PinnedPages found = walk({{0x1000, 16, 50, 1}, {0x1800, 0x2000, 50, 2}, {0x3900, 16, 50, 3}});
  CHECK(found.old.pages == 3);
  CHECK(found.pins.empty());
}

TEST_CASE("pin walk: packed_bytes counts the small gap after an old block, but no large gap") {
  const PinnedPages found = walk({{0x1000, 16, 50, 1}, {0x1020, 8, 150, 2}, {0x1030, 8, 50, 3}, {0x1100, 8, 50, 4}});
  CHECK(found.old.bytes == 32);
  CHECK(found.old.packed_bytes == 48);
}

TEST_CASE("holders: each block of a page has its share of it, and of what is unused there") {
  const Holders found = holders_of({{0x1000, 96, 0, 1}, {0x1800, 8, 0, 2}, {0x1900, 8, 0, 3}, {0x1a00, 8, 0, 4}});
  CHECK(of_size(found, 96).page_bytes == 1024);
  CHECK(of_size(found, 8).page_bytes == 3072);
  CHECK(of_size(found, 8).unused_bytes == 3 * (4096 - 120) / 4);
  CHECK(of_size(found, 8).blocks == 3);
  CHECK(of_size(found, 8).live_bytes == 24);
}

TEST_CASE("holders: a page counts as a group's own only if no other group has a block on it") {
  const Holders found = holders_of({{0x1000, 8, 0, 1}, {0x1100, 8, 900, 2}, {0x2000, 8, 0, 3}, {0x3000, 500, 0, 4}});
  CHECK(of_size(found, 8).sole_bytes == 2 * 4096);
  CHECK(of_size(found, 500).sole_bytes == 4096);
  CHECK(found.by_age[Doublings::index(1000)].sole_bytes == 2 * 4096);
  CHECK(found.by_age[Doublings::index(100)].sole_bytes == 0);
}

TEST_CASE("holders: a block of several pages shares its first and its last one only") {
  const Holders found = holders_of({{0x1f00, 16, 0, 1}, {0x1f80, 0x2100, 0, 2, 0, Kind::calloc}, {0x4100, 16, 0, 3}});
  const Holding& large = of_size(found, 0x2100);
  CHECK(large.page_bytes == 2048 + 2 * 4096 + 2048);
  CHECK(large.sole_bytes == 2 * 4096);
  CHECK(large.unused_bytes == (4096 - 0x80 - 16) / 2 + (4096 - 0x80 - 16) / 2);
  CHECK(found.by_kind[static_cast<std::size_t>(Kind::calloc)] == large);
  CHECK(found.by_kind[static_cast<std::size_t>(Kind::malloc)].blocks == 2);
}
