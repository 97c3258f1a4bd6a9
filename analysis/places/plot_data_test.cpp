// Checks the curve and the address map against plain counts.
#include "analysis/places/plot_data.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>

using cmt::heap::PlacedBlock;
using namespace cmt::analysis;

namespace {

MemoryUse moment(std::uint64_t event, std::uint64_t live_bytes) {
  MemoryUse use;
  use.event = event;
  use.live_bytes = live_bytes;
  return use;
}

std::uint64_t sum(const AddressMap::Moment& moment) {
  std::uint64_t sum = 0;
  for (const auto& bin : moment.bins) sum += bin.live_bytes;
  return sum;
}

}  // namespace

TEST_CASE("curve: the highest and the lowest moment of a long trace are kept, in few points") {
  Curve curve;
  for (std::uint64_t event = 1; event <= 300'000; ++event) {
    curve.add(moment(event, event == 123'457 ? 1'000'000 : event == 200'001 ? 1 : 1000 + event % 10));
  }
  const std::vector<MemoryUse> samples = std::move(curve).finish();
  CHECK(samples.size() <= 1026);
  CHECK(samples.size() > 256);
  CHECK(std::is_sorted(samples.begin(), samples.end(), [](auto& a, auto& b) { return a.event < b.event; }));
  const auto is_high = [](const MemoryUse& sample) { return sample.event == 123'457; };
  const auto is_low = [](const MemoryUse& sample) { return sample.event == 200'001; };
  CHECK(std::any_of(samples.begin(), samples.end(), is_high));
  CHECK(std::any_of(samples.begin(), samples.end(), is_low));
}

TEST_CASE("curve: there is none of nothing") { CHECK(Curve().finish().empty()); }

TEST_CASE("address map: a block's bytes are in the bins that it lies in") {
  AddressMapper mapper(12);
  mapper.begin_block({0x1ff8, 16, 0, 1});
  mapper.begin_block({0x5000, 0x2800, 0, 2});
  mapper.begin_block({0x9000, 0, 0, 3});
  mapper.add_moment(moment(1, 0));
  const AddressMap map = std::move(mapper).finish();
  CHECK(map.bin_bytes == 4096);
  REQUIRE(map.moments.size() == 1);
  const std::vector<AddressMap::Bin> expected{{1, 8}, {2, 8}, {5, 4096}, {6, 4096}, {7, 2048}, {9, 0}};
  CHECK(map.moments[0].bins == expected);
}

TEST_CASE("address map: bins grow with the heap, and nothing is lost or counted twice") {
  AddressMapper mapper(12);
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    mapper.begin_block({0x10000 + i * 0x1800, 0x1000, 0, i + 1});
    bytes += 0x1000;
    if (i % 100 == 0) mapper.add_moment(moment(i + 1, 0));
  }
  mapper.begin_block({0x7f0000000000, 0x40000000, 0, 6000});
  mapper.add_moment(moment(6000, 0));
  const AddressMap map = std::move(mapper).finish();
  CHECK(sum(map.moments.back()) == bytes + 0x40000000);
  CHECK(sum(map.moments.front()) == 0x1000);
  CHECK(map.moments.back().bins.size() <= 192);
}

TEST_CASE(
    "address map: a moment is what a walk over its live blocks gives, while blocks come, go and outgrow the bins") {
  std::mt19937_64 random(3);
  AddressMapper mapper(12);
  std::map<std::uint64_t, PlacedBlock> live;
  std::vector<std::map<std::uint64_t, PlacedBlock>> at_moments;
  for (std::uint64_t event = 1; event <= 30'000; ++event) {
    const std::uint64_t address = 0x7f0000000000 + random() % 4096 * 0x20000;
    if (const auto found = live.find(address); found != live.end()) {
      mapper.end_block(found->second);
      live.erase(found);
    } else {
      live[address] = {address, random() % (event % 1000 == 0 ? 0x20000 : 0x9000), 0, event};
      mapper.begin_block(live[address]);
    }
    if (event % 3000 != 0) continue;
    mapper.add_moment(moment(event, 0));
    at_moments.push_back(live);
  }
  const AddressMap map = std::move(mapper).finish();
  REQUIRE(map.moments.size() == at_moments.size());
  for (std::size_t i = 0; i < at_moments.size(); ++i) {
    std::map<std::uint64_t, std::uint64_t> expected;
    for (const auto& [address, block] : at_moments[i]) {
      for (std::uint64_t at = address; at <= block.last(); at = (at / map.bin_bytes + 1) * map.bin_bytes)
        expected[at / map.bin_bytes] += std::min(address + block.size, (at / map.bin_bytes + 1) * map.bin_bytes) -
                                        std::min(at, address + block.size);
    }
    std::vector<AddressMap::Bin> bins;
    for (const auto& [bin, bytes] : expected) bins.push_back({bin, bytes});
    CHECK(map.moments[i].bins == bins);
  }
}

TEST_CASE("address map: a moment that is told twice is there once") {
  AddressMapper mapper(12);
  mapper.add_moment(moment(64, 0));
  mapper.add_moment(moment(64, 0));
  CHECK(std::move(mapper).finish().moments.size() == 1);
}
