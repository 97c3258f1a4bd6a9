// Compares the shadow and the patterns of live blocks with plain loops over single bytes.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

extern "C" {
#include "cmtreplay/worker/live_blocks.h"
}

#ifndef CMT_SANITIZED  // the shadow takes 16 TiB of addresses
namespace {

constexpr std::uintptr_t heap_begin = 0x700000000000;
constexpr std::uint64_t heap_bytes = 512;

/// The addresses of a small heap that are in live blocks, one by one.
struct LiveBytes {
  std::vector<bool> live = std::vector<bool>(heap_bytes);

  void set(std::uint64_t place, std::uint64_t bytes, bool is_live) {
    std::fill_n(live.begin() + static_cast<std::ptrdiff_t>(place), bytes, is_live);
  }
  bool have(std::uint64_t place, std::uint64_t bytes) const {
    const auto first = live.begin() + static_cast<std::ptrdiff_t>(place);
    return std::find(first, first + static_cast<std::ptrdiff_t>(bytes), true) !=
           first + static_cast<std::ptrdiff_t>(bytes);
  }
};

}  // namespace

TEST_CASE("live blocks: the shadow knows each byte, whatever the alignment of blocks and questions") {
  REQUIRE(live_blocks_open() == 0);
  std::mt19937 random(1);
  const auto below = [&](std::uint64_t end) { return std::uint64_t{random()} % end; };
  LiveBytes bytes;
  std::set<std::uint64_t> begins;
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t place = below(heap_bytes - 1);
    const std::uint64_t most = std::min<std::uint64_t>(heap_bytes - place, step % 2 ? 24 : heap_bytes);
    const std::uint64_t size = 1 + below(most);
    REQUIRE((live_blocks_have(heap_begin + place, size) != 0) == bytes.have(place, size));
    if (!bytes.have(place, size)) {
      const live_block block{heap_begin + place, size, size, 1, 0, 0};
      REQUIRE(live_blocks_insert(&block) == 1);
      bytes.set(place, size, true);
      begins.insert(place);
    } else if (step % 3 == 0) {
      const std::uint64_t last = *std::prev(begins.end());
      const live_block removed = live_blocks_remove(heap_begin + last);
      REQUIRE(removed.begin == heap_begin + last);
      bytes.set(last, removed.usable, false);
      begins.erase(last);
    }
  }
  for (const std::uint64_t place : begins) live_blocks_remove(heap_begin + place);
  CHECK_FALSE(live_blocks_have(heap_begin, heap_bytes));
}
#endif

TEST_CASE("live blocks: a pattern fills a block exactly, and each changed byte is found") {
  for (std::uint64_t size = 0; size <= 40; ++size) {
    std::string block(size + 2, '\0');
    fill_pattern(block.data() + 1, size, 7);
    CHECK(block.front() == '\0');
    CHECK(block.back() == '\0');
    CHECK(block.substr(1, size).find('\0') == std::string::npos);
    CHECK(first_changed(block.data() + 1, size, 7) == nullptr);
    for (std::uint64_t at = 0; at < size; ++at) {
      std::string changed = block;
      changed[1 + at] = static_cast<char>(changed[1 + at] ^ 0x40);
      CHECK(first_changed(changed.data() + 1, size, 7) == changed.data() + 1 + at);
    }
  }
}

TEST_CASE("live blocks: contents of another block or place are no pattern of this one") {
  std::string block(64, '\0'), shifted(64, '\0');
  fill_pattern(block.data(), block.size(), 7);
  CHECK(first_changed(block.data(), 8, 8) != nullptr);
  std::memcpy(shifted.data(), block.data() + 8, 56);
  CHECK(first_changed(shifted.data(), 8, 7) != nullptr);
  CHECK(first_changed(block.data(), 64, 0) == nullptr);
}
