// Checks the origins of live blocks: round trips, unknown kinds, and damaged bytes.

#include "libcmt/format/origins.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "cmt/text.h"
#include "libcmt/trace/file/origin_table.h"

using namespace cmt;
using namespace cmt::format;

namespace {

const std::vector<StackId> node_of_stack{0, 5, 9};
const std::vector<LiveBlock> two_blocks{{3, 0x1000, 48}, {9, 0x2000, 16}};

std::string varints(std::initializer_list<std::uint64_t> numbers) {
  std::string bytes;
  for (const std::uint64_t number : numbers) put_varint(bytes, number);
  return bytes;
}

/// The error of decoding these bytes as the origins of two_blocks.
std::string origins_error(std::initializer_list<std::uint64_t> numbers) {
  try {
    take_origins(varints(numbers), two_blocks, node_of_stack);
    return "nothing";
  } catch (const WireError& error) {
    return std::to_string(error.offset()) + ": " + error.what();
  }
}

std::uint64_t same_number(StackId stack) { return stack; }

}  // namespace

TEST_CASE("origins: calls, times, usable sizes, stacks and pages come back") {
  Origins origins{.time_ns = 77};
  origins.blocks = {{.kind = Kind::calloc,
                     .thread = 2,
                     .size = 16,
                     .count = 3,
                     .tag = 3,
                     .address = 0x1000,
                     .time_ns = 12,
                     .stack = 1},
                    {.kind = Kind::operator_new,
                     .thread = 0xffffffff,
                     .size = 16,
                     .alignment = 64,
                     .tag = 9,
                     .address = 0x2000,
                     .time_ns = 5,
                     .usable = 24,
                     .stack = 2}};
  origins.runs = {{3, 0, 40, Kind::resident, 4096}, {3, 44, 48, Kind::touch, 2097152}};
  const Origins read = take_origins(put_origins(origins, same_number), two_blocks, node_of_stack);
  CHECK(read.time_ns == 77);
  REQUIRE(read.blocks.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    Event expected = origins.blocks[i];
    expected.stack = node_of_stack[expected.stack];
    CHECK(to_line(read.blocks[i]) == to_line(expected));
  }
  REQUIRE(read.runs.size() == 2);
  CHECK(read.runs[0].kind == Kind::resident);
  CHECK(read.runs[1].begin == 44);
  CHECK(read.runs[1].end == 48);
  CHECK(read.runs[1].page_size == 2097152);
}

TEST_CASE("origins: kinds of later versions are replaced as their events are") {
  //                                     time  calls               threads, counts, alignments, times, usable, stacks
  const Origins read =
      take_origins(varints({0, 40 << 2 | 3, 41 << 2 | 1, 0, 0, 6, 8, 32, 32, 0, 0, 0, 0, 0, 0, 0}), two_blocks, {});
  CHECK(read.time_ns == unknown);
  CHECK(to_line(read.blocks[0]) == "calloc(6, 8) = 1000<3>");
  CHECK(to_line(read.blocks[1]) == "aligned_alloc(32, 16) = 2000<9>");
  const Origins plain = take_origins(varints({0, 40 << 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), two_blocks, {});
  CHECK(to_line(plain.blocks[0]) == "malloc(48) = 1000<3>");
}

TEST_CASE("origins: what contradicts the table of live blocks or the kinds is an error") {
  CHECK(origins_error({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}) == "nothing");
  CHECK(origins_error({0}) == "0: fewer blocks than the table of live blocks has");
  CHECK(origins_error({0, 0, 0, 0, 0, 0, 0, 0, 0, 0}) == "10: a number is cut off");
  CHECK(origins_error({0, 1 << 2, 0, 0, 0, 0, 0, 0, 0, 0}) == "1: a kind that makes no block");
  CHECK(origins_error({0, 3 << 2, 0, 0, 0, 0, 0, 0, 0, 0}) == "1: a kind that makes no block");
  CHECK(origins_error({0, 26 << 2, 0, 0, 0, 0, 0, 0, 0, 0}) == "1: a kind that makes no block");
  CHECK(origins_error({0, 64 << 2, 0, 0, 0, 0, 0, 0, 0, 0}) == "1: a kind 256 is above its limit");
  CHECK(origins_error({0, 2, 0, 0, 0, 0, 0, 0, 0, 0}) == "1: a kind with another count than its own");
  CHECK(origins_error({0, 0, 0, std::uint64_t{1} << 32, 0, 0, 0, 0, 0, 0, 0}) ==
        "3: a thread 4294967296 is above its limit");
  CHECK(origins_error({0, 2 << 2 | 2, 0, 0, 0, 6, 9, 0, 0, 0, 0, 0, 0, 0}) ==
        "5: a count and a size that are not the block's");
  CHECK(origins_error({0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0}) == "9: a stack that is not defined");
  CHECK(origins_error({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3}) == "11: the number of touched blocks 3 is above its limit");
  CHECK(origins_error({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3, 0}) == "12: pages of no block");
  CHECK(origins_error({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 28, 40, 9, 0}) ==
        "14: pages that the block does not have");
  CHECK(origins_error({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7}) == "12: bytes after the last block");
}

/// The live blocks after the events so far.
struct Live : LiveBlockSource {
  std::size_t live_blocks() const override { return blocks.size(); }
  std::vector<LiveBlock> list_live_blocks() const override {
    ++listed;
    return blocks;
  }

  std::vector<LiveBlock> blocks;
  mutable int listed = 0;
};

TEST_CASE("origins: a table has what makes each live block") {
  Live live;
  OriginTable table(3, live);
  table.add({.kind = Kind::calloc, .size = 16, .count = 3, .tag = 3, .address = 0x1000}, {}, 1);
  table.add({.size = 8, .tag = 5}, {}, 0);
  table.add({.kind = Kind::realloc, .size = 16, .tag = 9, .old_tag = 5, .address = 0x2000}, {5, 0, 8}, 2);
  table.add({.kind = Kind::touch, .count = 0, .alignment = 4096, .old_tag = 3}, two_blocks[0], 0);
  const Origins read = take_origins(table.put(two_blocks, 8, same_number), two_blocks, node_of_stack);
  CHECK(to_line(read.blocks[0]) == "calloc(3, 16) = 1000<3> stack=5");
  CHECK(to_line(read.blocks[1]) == "malloc(16) = 2000<9> stack=9");
  CHECK(read.runs.size() == 1);
  CHECK(table.put(std::vector<LiveBlock>{{4, 0, 8}}, 8, same_number).empty());
  CHECK(table.put(std::vector<LiveBlock>{{9, 0, 16}, {10, 0, 8}}, 8, same_number).empty());
}

/// A table to which allocations are added, of which one of 100,000 stays live.
struct Churn {
  /// `runs`: how many events report pages of each block; they report every second page.
  void make(Tag count, Event event, std::uint64_t runs = 0) {
    for (const Tag end = next + count; next < end; ++next) {
      event.tag = next;
      event.time_ns = next;
      const LiveBlock block{next, 0x1000, event.bytes()};
      if (next % 100'000 == 0) live.blocks.push_back(block);
      table.add(event, {}, 2);
      for (std::uint64_t run = 0; run < runs; ++run) {
        table.add({.kind = Kind::touch, .size = 8192 * run, .count = 1, .alignment = 4096, .old_tag = next}, block, 0);
      }
    }
  }
  bool has(Tag tag) const { return !table.put(std::vector<LiveBlock>{{tag, 0, 8}}, 8, same_number).empty(); }
  Origins of_live() const { return take_origins(table.put(live.blocks, 8, same_number), live.blocks, node_of_stack); }

  Live live;
  OriginTable table{100, live};
  Tag next = 1;
};

TEST_CASE("origins: a table drops the blocks that have ended, whatever fills it") {
  Churn churn;
  SUBCASE("allocations") {
    churn.make(400'000, {.address = 0x1000});
    CHECK(churn.live.listed == 0);
    churn.make(200'000, {.address = 0x1000});
    CHECK(churn.live.listed == 1);
    CHECK(to_line(churn.of_live().blocks[0]) == "malloc(0) = 1000<100000> time=100000 stack=9");
    CHECK(to_line(churn.of_live().blocks[5]) == "malloc(0) = 1000<600000> time=600000 stack=9");
  }
  SUBCASE("those of calloc") {
    churn.make(300'000, {.kind = Kind::calloc, .size = 16, .count = 3, .address = 0x1000});
    CHECK(churn.live.listed == 2);
    CHECK(to_line(churn.of_live().blocks[0]) == "calloc(3, 16) = 1000<100000> time=100000 stack=9");
    CHECK(to_line(churn.of_live().blocks[2]) == "calloc(3, 16) = 1000<300000> time=300000 stack=9");
  }
  SUBCASE("runs of pages") {
    churn.next = 99'900;
    churn.make(200, {.size = 1 << 23}, 1000);
    CHECK(churn.live.listed == 3);
    CHECK(churn.of_live().blocks.size() == 1);
    CHECK(churn.of_live().runs.size() == 1000);
  }
  CHECK(!churn.has(99'900));
  CHECK(churn.has(churn.next - 1));
  CHECK(!churn.has(churn.next));
  CHECK(churn.table.is_kept());
}

TEST_CASE("origins: a table gives up for good as soon as too many live") {
  Churn churn;
  churn.live.blocks.resize(100);
  churn.make(1, {});
  CHECK(churn.table.is_kept());
  churn.live.blocks.resize(101);
  churn.make(1, {});
  CHECK(!churn.table.is_kept());
  churn.live.blocks.clear();
  churn.make(1, {});
  CHECK(!churn.table.is_kept());
}

TEST_CASE("origins: where many live, they are listed seldom") {
  Live live;
  OriginTable table(10'000'000, live);
  live.blocks.resize(400'000);
  for (Tag tag = 1; tag <= 1'000'000; ++tag) {
    table.add({.tag = tag}, {}, 0);
    table.add({.kind = Kind::touch, .count = 0, .alignment = 4096, .old_tag = tag}, {tag, 0, 8}, 0);
  }
  CHECK(live.listed == 10);
}

TEST_CASE("origins: where tags fall, as in a damaged file, only what is there is read") {
  Live live;
  OriginTable table(100, live);
  const auto make = [&table](Tag from, Tag to) {
    for (Tag tag = from; tag != to; ++tag) table.add({.kind = Kind::calloc, .size = 1, .tag = tag}, {}, 0);
  };
  make(5, 4000);
  table.add({.size = 1, .tag = ~Tag{0}}, {}, 0);
  make(1, 3000);
  for (const Tag tag : {Tag{1}, Tag{5}, Tag{2999}, Tag{3999}, Tag{4000}, ~Tag{0} - 1, ~Tag{0}})
    table.put(std::vector<LiveBlock>{{tag, 0, 1}}, 8, same_number);
}
