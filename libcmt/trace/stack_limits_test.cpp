// Call stacks whose numbers, names or sizes were made to cost time or memory.

#include <doctest/doctest.h>

#include "libcmt/format/sections.h"
#include "libcmt/format/stacks/stack_streams.h"
#include "tests/format-spec/stack_fixture.h"

using namespace cmt;
using namespace cmt::fixture;

namespace {

ReadOptions reading_stacks() {
  ReadOptions options;
  options.stacks = true;
  return options;
}

std::string text_of_frames(int count, unsigned shift) {
  std::string text;
  for (std::uint64_t i = 1; i <= static_cast<std::uint64_t>(count); ++i)
    text += "#frame " + std::to_string(i << shift) + " module=0 address=" + std::to_string(i) + "\n";
  return text + "#node 1 parent=0 frame=" + std::to_string(std::uint64_t{1} << shift) + "\nmalloc(8) = 10<1> stack=1\n";
}

}  // namespace

TEST_CASE("stack limits: a text's numbers may be any, and take no more memory than others") {
  const WhatWasRead read = read_all(text_of_frames(20000, 40), reading_stacks());
  CHECK(read.error == "");
  CHECK(read.messages.empty());
  CHECK(read.lines.size() == 1);
}

TEST_CASE("stack limits: a frame has 256 names at most") {
  std::string text = text_of_frames(1, 0);
  for (int i = 0; i < 257; ++i) text.insert(text.find("#node"), "#name 1 function=f" + std::to_string(i) + "\n");
  Reader reader(file_of(text), "app", reading_stacks());
  while (!reader.read().empty()) {
  }
  CHECK(reader.defects() == 1);
  REQUIRE(reader.stacks().names(1).size() == frame_names_limit);
  CHECK(reader.stacks().names(1).front().function == "f0");
}

TEST_CASE("stack limits: a block ends before its definitions come near a stream's limit") {
  StackTable table;
  const int fd = file_of("");
  Writer writer(fd, {}, {.format = Format::cmt});
  writer.use_stacks(table);
  for (Tag tag = 1; tag <= 600; ++tag) {
    const ModuleId module = table.append_module({.path = std::string(60000, static_cast<char>('a' + tag % 26))});
    writer.add({.kind = Kind::malloc, .tag = tag, .stack = table.add_node({0, table.add_frame({module, tag})})});
  }
  writer.finish();
  Reader reader(file_of(bytes_of(fd)), "app", reading_stacks());
  CHECK(reader.blocks().size() == 3);
  std::size_t events = 0;
  for (auto read = reader.read(); !read.empty(); read = reader.read()) events += read.size();
  CHECK(events == 600);
  CHECK(reader.stacks().module_count() == 601);
}

TEST_CASE("stack limits: an index that leaves out a block gives no wrong stacks") {
  RandomStacks stacks(3);
  const int fd = file_of("");
  Writer writer(fd, {}, in_blocks_of(10));
  writer.use_stacks(stacks.table());
  for (Tag tag = 1; tag <= 50; ++tag) writer.add({.kind = Kind::malloc, .tag = tag, .stack = stacks.next()});
  writer.finish();
  const std::string bytes = bytes_of(fd);
  using namespace cmt::format;
  const auto header_at = [&](std::uint64_t offset) {
    const SectionStart start = take_section_start(std::string_view(bytes).substr(offset, SectionStart::size));
    return take_section_header(std::string_view(bytes).substr(offset, start.total()), start);
  };
  const Tail tail = take_tail(header_at(bytes.size() - tail_size));
  std::vector<BlockStart> blocks = take_index(header_at(tail.index_offset));
  REQUIRE(blocks.size() == 5);
  blocks.erase(blocks.begin() + 1);
  const std::string index = put_section(SectionType::index, put_index(blocks));
  const std::string damaged = bytes.substr(0, tail.index_offset) + index +
                              bytes.substr(tail.totals_offset, bytes.size() - tail_size - tail.totals_offset) +
                              put_tail(tail.index_offset, tail.index_offset + index.size());
  ReadOptions options = reading_stacks();
  options.addresses = false;  // else reading begins at the first block, and needs no index
  Reader reader(file_of(damaged), "app", options);
  CHECK_THROWS_AS(reader.seek(45), FormatError);
  CHECK(read_all(damaged, reading_stacks()).lines.size() == 50);
}

TEST_CASE("stack limits: a file has 2^24 nodes at most; stacks that need more are unknown in it") {
  StackTable table;
  StackId stack = 0;
  for (std::uint64_t i = 1; i <= 4; ++i) stack = table.add_node({stack, table.add_frame({0, i})});
  const StackId three = table.node(stack).parent;
  format::StackEncoder encoder;
  encoder.use(table, 3);
  for (const StackId each : {table.node(three).parent, stack, three}) encoder.add(Kind::malloc, each);
  const std::string numbers = encoder.finish_numbers(), definitions = encoder.finish_definitions();
  StackTable whole, small;
  format::StackDefinitions read(whole, 3), refused(small, 2);
  read.take_block(definitions, 3);
  CHECK(whole.node_count() == 4);
  std::vector<Event> events(3, Event{.kind = Kind::malloc});
  format::StackNumberDecoder decoder;
  decoder.start(numbers, read, 0);
  decoder.fill(events);
  CHECK(events[0].stack == 2);
  CHECK(events[1].stack == 0);
  CHECK(events[2].stack == 3);
  CHECK_THROWS_WITH(refused.take_block(definitions, 3), "more than 2 nodes of stacks");
}
