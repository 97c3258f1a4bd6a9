#include "preload/collector/pages/page_watcher.h"

#include <doctest/doctest.h>

#include "preload/protocol.h"

namespace cmt::collector {
namespace {

constexpr std::uint64_t watched_address = 0x7f0000001010, watched_bytes = 1 << 20;

Slot begin_of_block(std::uint64_t flags = 0) {
  return {watched_address << slot_address_shift | record_block, watched_bytes << block_bytes_shift | flags};
}
Slot end_of_block() { return {watched_address << slot_address_shift | record_block, block_ends}; }

TEST_CASE("a block all of whose pages were seen waits for its end, and the next one at its address is watched") {
  WatchedBlocks watched;
  CHECK(watched.empty());
  for (int round = 0; round < 3; ++round) {
    watched.note({begin_of_block(block_is_asked)});
    REQUIRE(!watched.empty());
    CHECK(watched.blocks().at(watched_address).was_asked);
    watched.set_done(watched.blocks().at(watched_address));
    CHECK(watched.empty());
    if (round != 1) watched.note({end_of_block()});  // its record may be lost
  }
  watched.note({begin_of_block(), end_of_block()});
  CHECK(watched.empty());
  CHECK(watched.blocks().empty());
}

TEST_CASE("the end of a block may come before its begin") {
  WatchedBlocks watched;
  watched.note({end_of_block()});
  watched.note({begin_of_block()});
  CHECK(watched.empty());
  watched.note({end_of_block(), begin_of_block()});
  CHECK(watched.empty());
  watched.note({begin_of_block()});
  CHECK(!watched.empty());
}

TEST_CASE("after a refused realloc a block is watched again") {
  WatchedBlocks watched;
  watched.note({begin_of_block()});
  watched.note({end_of_block(), begin_of_block()});
  CHECK(!watched.empty());
}

}  // namespace
}  // namespace cmt::collector
