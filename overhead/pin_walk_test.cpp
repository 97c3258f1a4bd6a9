#include "overhead/pin_walk.h"

#include <doctest/doctest.h>

#include <initializer_list>

using cmt::heap::AddressIndex;
using cmt::heap::PlacedBlock;
using cmt::overhead::PinWalk;

namespace {

/// Over blocks of which those born before 100 are old.
PinWalk walk(std::initializer_list<PlacedBlock> blocks) {
  AddressIndex live;
  for (const PlacedBlock& block : blocks) live.insert(block);
  return PinWalk(live, 12, 100);
}

}  // namespace

TEST_CASE("pin walk: a small old block alone on a page pins it") {
  const PinWalk found = walk({{0x1010, 16, 50, 1}, {0x2000, 16, 50, 2}, {0x2100, 16, 150, 3}, {0x3000, 16, 150, 4}});
  REQUIRE(found.pins().size() == 1);
  CHECK(found.pins()[0].tag == 1);
  CHECK(found.old().pages == 2);
  CHECK(found.old().bytes == 32);
}

TEST_CASE("pin walk: a large block pins nothing") {
  CHECK(walk({{0x1000, 513, 50, 1}}).pins().empty());
  CHECK(walk({{0x1000, 512, 50, 1}}).pins().size() == 1);
}

TEST_CASE("pin walk: a block across a border pins both pages if it is alone on both") {
  CHECK(walk({{0x1ff0, 32, 50, 1}}).pins().size() == 2);
  CHECK(walk({{0x1ff0, 32, 50, 1}, {0x2100, 8, 150, 2}}).pins().size() == 1);
  CHECK(walk({{0x1000, 8, 150, 2}, {0x1ff0, 32, 50, 1}}).pins().size() == 1);
}

TEST_CASE("pin walk: pages of old blocks are counted once") {
  const PinWalk found = walk({{0x1000, 16, 50, 1}, {0x1800, 0x2000, 50, 2}, {0x3900, 16, 50, 3}});
  CHECK(found.old().pages == 3);
  CHECK(found.pins().empty());
}

TEST_CASE("pin walk: packed, an old block keeps the small gap behind it, and no large one") {
  const PinWalk found = walk({{0x1000, 16, 50, 1}, {0x1020, 8, 150, 2}, {0x1030, 8, 50, 3}, {0x1100, 8, 50, 4}});
  CHECK(found.old().bytes == 32);
  CHECK(found.old().packed_bytes == 48);
}
