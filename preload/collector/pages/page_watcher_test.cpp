// Checks the blocks that the page watcher follows, and the pages that it finds in a process.

#include "preload/collector/pages/page_watcher.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "preload/collector/pages/page_map.h"
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

TEST_CASE("new pages of a block are reported, and whether these are all that were ever seen") {
  WatchedBlocks watched;
  const auto look = [&](const std::vector<PageRun>& runs) -> std::string {
    const auto news = watched.note_runs(watched_address, watched.blocks().at(watched_address), runs);
    if (!news) return "nothing";
    std::string text = news->is_first ? "first:" : "then:";
    for (const PageRun& run : news->runs) text += " " + std::to_string(run.first) + "+" + std::to_string(run.count);
    return text;
  };
  watched.note({begin_of_block()});
  CHECK(look({{0, 2}}) == "first: 0+2");
  CHECK(look({{0, 2}}) == "nothing");
  CHECK(look({{0, 5}}) == "then: 2+3");
  watched.note({end_of_block(), begin_of_block()});
  CHECK(look({}) == "first:");  // so that it is known that it had none
  CHECK(look({{0, 300}}) == "then: 0+300");
  CHECK(watched.empty());  // its 257 pages
  watched.note({begin_of_block(block_is_asked)});
  CHECK(look({}) == "nothing");
  CHECK(look({{7, 1}}) == "then: 7+1");
}

TEST_CASE("page map: each run of a block is there once, also where there are more than the kernel returns at once") {
  constexpr std::size_t pages = 6000;
  const auto how = {PageMap::How::best, PageMap::How::by_reading};
  for (const std::size_t touched : {1, 511, 512, 513, 1023, 1024, 1025, 1600, 2048, 2999}) {
    void* const memory =
        ::mmap(nullptr, pages * block_page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    ::madvise(memory, pages * block_page_bytes, MADV_NOHUGEPAGE);
    for (std::size_t i = 0; i < touched; ++i) static_cast<char*>(memory)[(2 * i + 1) * block_page_bytes] = 1;
    for (const PageMap::How each : how) {
      PageMap map(::getpid(), each);
      if (!map.is_open()) continue;
      const auto runs = map.read(reinterpret_cast<std::uintptr_t>(memory), pages * block_page_bytes);
      REQUIRE(runs);
      CAPTURE(touched);
      REQUIRE(runs->size() == touched);
      for (std::size_t i = 0; i < touched; ++i) REQUIRE((*runs)[i] == PageRun{2 * i + 1, 1});
    }
    ::munmap(memory, pages * block_page_bytes);
  }
}

TEST_CASE("after a refused realloc a block is watched again") {
  WatchedBlocks watched;
  watched.note({begin_of_block()});
  watched.note({end_of_block(), begin_of_block()});
  CHECK(!watched.empty());
}

}  // namespace
}  // namespace cmt::collector
