#include "preload/collector/live_table.h"

#include <doctest/doctest.h>

#include <map>
#include <random>

using namespace cmt;
using namespace cmt::collector;

namespace {

constexpr std::uint64_t large = 0xffffffff;  // the first size that does not fit an entry

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
    LiveTable::Entry* entry = table.find(address);
    REQUIRE((entry != nullptr) == sizes.contains(address));
    if (entry != nullptr && random() % kept != 0) {
      table.erase(entry);
      sizes.erase(address);
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
    LiveTable::Entry* entry = table.find(0xffffffffffff);
    REQUIRE(entry != nullptr);
    entry->set_in_realloc(true);
    CHECK(table.block(*entry).tag == tag);
    CHECK(table.block(*entry).address == 0xffffffffffff);
    CHECK(table.block(*entry).size == size);
  }
  CHECK(table.live_blocks() == 1);
}

TEST_CASE("live table: after random insertions and erasures it holds what a map holds") {
  for (const unsigned kept : {2, 4, 64}) {
    CAPTURE(kept);
    check_at_random(kept);
  }
}
