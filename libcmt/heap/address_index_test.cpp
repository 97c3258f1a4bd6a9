// Checks the index of addresses against an ordered map, and its memory a block.

#include "libcmt/heap/address_index.h"

#include <doctest/doctest.h>

#include <malloc.h>

#include <map>
#include <optional>
#include <random>
#include <vector>

using cmt::heap::AddressIndex;
using cmt::heap::Neighbour;
using cmt::heap::Neighbourhood;
using cmt::heap::PlacedBlock;

namespace {

std::optional<Neighbourhood> insert(AddressIndex& index, const PlacedBlock& block) {
  Neighbourhood place{block, {}, {}};
  return index.insert(place) ? std::optional(place) : std::nullopt;
}

std::optional<Neighbourhood> erase(AddressIndex& index, std::uint64_t address) {
  Neighbourhood place;
  return index.erase(address, place) ? std::optional(place) : std::nullopt;
}

/// The same by an ordered map: what the index has to agree with.
class Model {
 public:
  std::optional<Neighbourhood> insert(const PlacedBlock& block) {
    const auto [place, added] = blocks_.emplace(block.address, block);
    if (!added) return std::nullopt;
    return around(place);
  }

  std::optional<Neighbourhood> erase(std::uint64_t address) {
    const auto place = blocks_.find(address);
    if (place == blocks_.end()) return std::nullopt;
    const Neighbourhood found = around(place);
    blocks_.erase(place);
    return found;
  }

 private:
  using Blocks = std::map<std::uint64_t, PlacedBlock>;
  Neighbourhood around(Blocks::iterator place) {
    Neighbourhood found{place->second, {}, {}};
    if (place != blocks_.begin()) found.prev = as_neighbour(std::prev(place)->second);
    if (std::next(place) != blocks_.end()) found.next = as_neighbour(std::next(place)->second);
    return found;
  }
  static Neighbour as_neighbour(const PlacedBlock& block) { return {block.address, block.size, block.tag}; }
  Blocks blocks_;
};

bool same(const PlacedBlock& a, const PlacedBlock& b) {
  return a.address == b.address && a.size == b.size && a.born == b.born && a.tag == b.tag;
}

bool same(const Neighbour& a, const Neighbour& b) {
  return a.address == b.address && (a.address == 0 || (a.size == b.size && a.tag == b.tag));
}

bool same(const std::optional<Neighbourhood>& a, const std::optional<Neighbourhood>& b) {
  if (!a || !b) return !a && !b;
  return same(a->block, b->block) && same(a->prev, b->prev) && same(a->next, b->next);
}

/// How often index and model disagree over random calls, of which `erase_share` in 16 remove.
template <class Address>
int disagreements(Address address, unsigned erase_share, int rounds) {
  std::mt19937_64 random(20190401);
  AddressIndex index;
  Model model;
  std::vector<std::uint64_t> known{1};
  int wrong = 0;
  for (int round = 1; round <= rounds; ++round) {
    if (random() % 16 < erase_share) {
      const std::uint64_t victim = known[random() % known.size()];
      wrong += !same(erase(index, victim), model.erase(victim));
    } else {
      const auto born = static_cast<std::uint64_t>(round);
      const PlacedBlock block{address(random), random() % 100, born, born};
      wrong += !same(insert(index, block), model.insert(block));
      known.push_back(block.address);
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("address index: agrees with an ordered map on one page, byte by byte") {
  CHECK(disagreements([](auto& random) { return 0x81d220000 + random() % 4096; }, 5, 50000) == 0);
}

TEST_CASE("address index: agrees with an ordered map over a few regions") {
  CHECK(disagreements([](auto& random) { return 0x81d220000 + random() % (9u << 20) / 8 * 8; }, 7, 100000) == 0);
}

TEST_CASE("address index: agrees with an ordered map over the whole address space") {
  CHECK(disagreements([](auto& random) { return random() >> (1 + random() % 50) | 1; }, 7, 50000) == 0);
}

TEST_CASE("address index: agrees with an ordered map while regions come and go") {
  CHECK(disagreements([](auto& random) { return (random() % 6 + 1) << 27; }, 12, 20000) == 0);
}

TEST_CASE("address index: agrees with an ordered map while a region's pages become many and few again") {
  const auto address = [](auto& random) { return 0x81d200000 + random() % 120 * 4096 + random() % 2 * 16; };
  CHECK(disagreements(address, 8, 100000) == 0);
  CHECK(disagreements(address, 12, 20000) == 0);
  CHECK(disagreements([](auto& random) { return 0x81d200000 + random() % 3 * 4096; }, 10, 20000) == 0);
}

TEST_CASE("address index: a block costs at most 200 bytes, however far from the others it lies") {
  for (const std::uint64_t distance :
       {std::uint64_t{1} << 12, std::uint64_t{1} << 16, std::uint64_t{1} << 20, std::uint64_t{1} << 30}) {
    constexpr std::uint64_t blocks = 5000;
    const std::size_t before = mallinfo2().uordblks;
    AddressIndex index;
    for (std::uint64_t i = 1; i <= blocks; ++i) insert(index, {i * distance, 16, i, i});
    CHECK(mallinfo2().uordblks - before <= 200 * blocks);
    // The reserves of a page that had more.
    for (std::uint64_t i = 1; i <= blocks; ++i) {
      for (std::uint64_t k = 1; k < 12; ++k) insert(index, {i * distance + 16 * k, 16, i, i});
      for (std::uint64_t k = 1; k < 12; ++k) erase(index, i * distance + 16 * k);
    }
    CHECK(mallinfo2().uordblks - before <= 200 * blocks);
  }
}

TEST_CASE("address index: the ends of memory are places like others") {
  AddressIndex index;
  CHECK(insert(index, {~std::uint64_t{0}, 1, 0, 1}));
  const auto found = insert(index, {1, 1, 0, 2});
  REQUIRE(found);
  CHECK(found->prev.address == 0);
  CHECK(found->next.address == ~std::uint64_t{0});
}

TEST_CASE("address index: a block at an address that is taken is refused, and nothing changes") {
  AddressIndex index;
  CHECK(insert(index, {0x1000, 8, 1, 1}));
  CHECK_FALSE(insert(index, {0x1000, 16, 2, 2}));
  CHECK(index.size() == 1);
  CHECK(erase(index, 0x1000)->block.size == 8);
}

TEST_CASE("address index: blocks are visited by rising address") {
  AddressIndex index;
  for (const std::uint64_t address : {0x7f0000000000ul, 0x1008ul, 0x1000ul, 0x400000ul})
    insert(index, {address, 1, 0, 1});
  std::vector<std::uint64_t> seen;
  index.for_each([&](const PlacedBlock& block) { seen.push_back(block.address); });
  CHECK(seen == std::vector<std::uint64_t>{0x1000, 0x1008, 0x400000, 0x7f0000000000});
}

TEST_CASE("placed block: a block of size 0 ends where it begins, and none passes the end of memory") {
  CHECK(PlacedBlock{0x1000, 0, 0, 1}.last() == 0x1000);
  CHECK(PlacedBlock{0x1000, 4096, 0, 1}.last() == 0x1fff);
  CHECK(PlacedBlock{0x1000, ~std::uint64_t{0}, 0, 1}.last() == ~std::uint64_t{0});
}

TEST_CASE("address index: sizes and slops of any magnitude come back, as the block's own and as a neighbour's") {
  AddressIndex index;
  const std::uint64_t sizes[] = {0xfffffffe, 0xffffffff, 0x100000000, ~std::uint64_t{0}};
  for (std::uint64_t i = 0; i < 4; ++i) REQUIRE(insert(index, {0x1000 + 16 * i, sizes[i], 1, i + 1, sizes[3 - i]}));
  for (std::uint64_t i = 0; i + 1 < 4; ++i) {
    const auto found = erase(index, 0x1000 + 16 * i);
    REQUIRE(found);
    CHECK(found->block.size == sizes[i]);
    CHECK(found->block.slop == sizes[3 - i]);
    CHECK(found->next.size == sizes[i + 1]);
  }
  REQUIRE(erase(index, 0x1030));
  REQUIRE(insert(index, {0x1030, 5, 1, 9, 3}));
  CHECK(erase(index, 0x1030)->block.size == 5);
}

using cmt::heap::gap;
using cmt::heap::own_pages;
using cmt::heap::PlacedBlock;

TEST_CASE("pages: a lone block has all its pages, and one of size 0 has one") {
  CHECK(own_pages({PlacedBlock{0x1ff0, 32, 0, 1}, {}, {}}, 12) == 2);
  CHECK(own_pages({PlacedBlock{0x1000, 4096, 0, 1}, {}, {}}, 12) == 1);
  CHECK(own_pages({PlacedBlock{0x1000, 0, 0, 1}, {}, {}}, 12) == 1);
  CHECK(own_pages({PlacedBlock{0x1ff0, 32, 0, 1}, {}, {}}, 21) == 1);
}

TEST_CASE("pages: a page that a neighbour is on is not the block's own, and is not taken away twice") {
  const Neighbour low{0x1000, 16, 1}, high{0x1f00, 16, 2};
  CHECK(own_pages({PlacedBlock{0x1100, 16, 0, 3}, low, high}, 12) == 0);
  CHECK(own_pages({PlacedBlock{0x1100, 8192, 0, 3}, low, {0x3200, 8, 4}}, 12) == 1);
}

TEST_CASE("pages: a gap is counted by the size asked for, and is negative where blocks overlap") {
  CHECK(gap(Neighbour{0x1000, 10, 1}, Neighbour{0x1010, 8, 2}) == 6);
  CHECK(gap(Neighbour{0x1000, 24, 1}, Neighbour{0x1010, 8, 2}) == -8);
}

TEST_CASE("address index: a block is added apart from all others, or not at all") {
  std::mt19937_64 random(3);
  cmt::heap::AddressIndex index, apart;
  cmt::Tag tag = 0;
  std::size_t refused = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t address = (1 + random() % 300) * 16 + (random() % 4) * 0x1ff000;
    const cmt::heap::PlacedBlock block{
        .address = address, .size = random() % (random() % 16 == 0 ? 9000 : 80), .tag = ++tag};
    if (random() % 3 == 0) {
      const auto one = erase(index, address);
      cmt::heap::PlacedBlock other;
      REQUIRE(apart.take(address, other) == one.has_value());
      if (one) CHECK(one->block.tag == other.tag);
      continue;
    }
    const auto found = insert(index, block);
    const bool fits = found && !found->overlapped();
    if (found && !fits) erase(index, address);
    const std::uint64_t blocker = apart.insert_apart(block);
    REQUIRE((blocker == 0) == fits);
    refused += blocker != 0;
    if (found && !fits) CHECK((blocker == found->prev.address || blocker == found->next.address));
    REQUIRE(index.size() == apart.size());
  }
  CHECK(refused > 1000);
}

TEST_CASE("address index: an index of tags keeps tags and sizes of any size") {
  cmt::heap::TagIndex index;
  for (const std::uint64_t tag : {std::uint64_t{5}, std::uint64_t{0xffffffff}, std::uint64_t{1} << 40}) {
    for (const std::uint64_t size : {std::uint64_t{8}, std::uint64_t{0xffffffff}, std::uint64_t{1} << 33}) {
      CHECK(index.insert_apart({.address = 0x10000, .size = size, .tag = tag}) == 0);
      CHECK(index.insert_apart({.address = 0x10004, .size = 1, .tag = 9}) == 0x10000);
      cmt::heap::PlacedBlock found;
      REQUIRE(index.take(0x10000, found));
      CHECK(found.size == size);
      CHECK(found.tag == tag);
      CHECK(index.size() == 0);
    }
  }
}
