// Call stacks whose numbers, names or sizes were made to cost time or memory.

#include <doctest/doctest.h>

#include "tests/format/stack_fixture.h"

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
