#include "preload/collector/live_table.h"

#include <doctest/doctest.h>

#include <map>
#include <random>

using namespace cmt;
using namespace cmt::collector;

namespace {

constexpr std::uint64_t large = 0xffffffff;  // the first size that does not fit a slot

std::map<std::uint64_t, std::uint64_t> sizes_in(const LiveTable& table) {
  std::map<std::uint64_t, std::uint64_t> sizes;
  table.for_each([&](const format::LiveBlock& block) { sizes[block.address] = block.size; });
  return sizes;
}

/// One in `kept` is left when it is met again.
void check_at_random(unsigned kept) {
  LiveTable table;
  std::map<std::uint64_t, std::uint64_t> sizes;
  std::mt19937_64 random(1);
  Tag tag = 0;
  for (int i = 0; i < 200'000; ++i) {
    const std::uint64_t address = 0x7f0000000000 + random() % 12'000 * 16;
    const std::uint64_t size = random() % 8 == 0 ? large + random() % 3 : random() % 1000;
    LiveTable::Slot* slot = table.find(address);
    REQUIRE((slot != nullptr) == sizes.contains(address));
    if (slot != nullptr && random() % kept != 0) {
      table.erase(slot);
      sizes.erase(address);
    } else {
      table.set(table.place(address), {++tag, address, size});
      sizes[address] = size;
    }
  }
  CHECK(table.size() == sizes.size());
  CHECK(sizes_in(table) == sizes);
}

}  // namespace

TEST_CASE("live table: a block comes back with its tag and its size, however large") {
  LiveTable table;
  for (const std::uint64_t size : {std::uint64_t{0}, large - 1, large, large + 1, ~std::uint64_t{0}}) {
    const Tag tag = (Tag{1} << 47) - 1;
    table.set(table.place(0xffffffffffff), {tag, 0xffffffffffff, size});
    LiveTable::Slot* slot = table.find(0xffffffffffff);
    REQUIRE(slot != nullptr);
    slot->set_in_transit(true);
    CHECK(table.block(*slot).tag == tag);
    CHECK(table.block(*slot).address == 0xffffffffffff);
    CHECK(table.block(*slot).size == size);
  }
  CHECK(table.size() == 1);
}

TEST_CASE("live table: what is put and erased at random is what a map has") {
  for (const unsigned kept : {2, 4, 64}) {
    CAPTURE(kept);
    check_at_random(kept);
  }
}
