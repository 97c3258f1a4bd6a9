#include "overhead/plot_data.h"

#include <doctest/doctest.h>

#include <algorithm>

using cmt::heap::AddressIndex;
using namespace cmt::overhead;

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
  AddressIndex live;
  live.insert({0x1ff8, 16, 0, 1});
  live.insert({0x5000, 0x2800, 0, 2});
  live.insert({0x9000, 0, 0, 3});
  AddressMapper mapper(12);
  mapper.add_moment(moment(1, 0), live);
  const AddressMap map = std::move(mapper).finish();
  CHECK(map.bin_bytes == 4096);
  REQUIRE(map.moments.size() == 1);
  const std::vector<AddressMap::Bin> expected{{1, 8}, {2, 8}, {5, 4096}, {6, 4096}, {7, 2048}, {9, 0}};
  CHECK(map.moments[0].bins == expected);
}

TEST_CASE("address map: bins grow with the heap, and nothing is lost or counted twice") {
  AddressIndex live;
  AddressMapper mapper(12);
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    live.insert({0x10000 + i * 0x1800, 0x1000, 0, i + 1});
    bytes += 0x1000;
    if (i % 100 == 0) mapper.add_moment(moment(i + 1, 0), live);
  }
  live.insert({0x7f0000000000, 0x40000000, 0, 6000});
  mapper.add_moment(moment(6000, 0), live);
  const AddressMap map = std::move(mapper).finish();
  CHECK(sum(map.moments.back()) == bytes + 0x40000000);
  CHECK(sum(map.moments.front()) == 0x1000);
  CHECK(map.moments.back().bins.size() <= 192);
}

TEST_CASE("address map: a moment that is told twice is there once") {
  AddressIndex live;
  AddressMapper mapper(12);
  mapper.add_moment(moment(64, 0), live);
  mapper.add_moment(moment(64, 0), live);
  CHECK(std::move(mapper).finish().moments.size() == 1);
}
