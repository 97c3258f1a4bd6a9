// The table of call stacks: equal nodes have one number, whatever their order and count, and names are copied.

#include "cmt/stacks.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cmt {

TEST_CASE("stack table: what is added twice has one number") {
  StackTable table;
  CHECK(table.node_count() == 1);
  const ModuleId library = table.add_module({.path = "/lib/a.so", .begin = 0x1000, .end = 0x2000});
  CHECK(library == 1);
  CHECK(table.add_module({.path = "/lib/a.so", .begin = 0x1000, .end = 0x2000}) == library);
  CHECK(table.add_module({.path = "/lib/a.so", .begin = 0x5000, .end = 0x6000}) == 2);
  const FrameId frame = table.add_frame({.module = library, .address = 0x1234});
  CHECK(table.add_frame({.module = library, .address = 0x1234}) == frame);
  CHECK(table.add_frame({.module = library, .address = 0x1234, .is_exact = true}) == frame + 1);
  CHECK(table.frame(frame).instruction() == 0x1233);
  CHECK(table.frame(frame + 1).instruction() == 0x1234);
  CHECK(table.add_frame({}) == 0);
}

TEST_CASE("stack table: a tree of many nodes") {
  StackTable table;
  for (int round = 0; round < 2; ++round) {
    StackId expected = 0;
    for (StackId root = 1; root <= 100; ++root) {
      StackId parent = 0;
      for (FrameId frame = root; frame < root + 100; ++frame) {
        parent = table.add_node({parent, frame});
        REQUIRE(parent == ++expected);
      }
    }
  }
  CHECK(table.node_count() == 100 * 100 + 1);
  CHECK(table.node(101) == StackNode{0, 2});
  CHECK(table.find_node({0, 2}) == 101);
  CHECK(table.find_node({101, 3}) == 102);
  CHECK(table.find_node({101, 4}) == 0);
  CHECK(table.find_node({10000, 4}) == 0);
}

TEST_CASE("stack table: nodes in any order") {
  StackTable table;
  std::map<std::pair<StackId, FrameId>, StackId> known;
  std::uint32_t random = 1, wrong = 0;
  for (int i = 0; i < 200000; ++i) {
    random = random * 1664525 + 1013904223;
    const StackNode node{random >> 8 & 1 ? table.node_count() - 1 : (random >> 9) % table.node_count(), random >> 30};
    const auto [place, is_new] = known.try_emplace({node.parent, node.frame}, table.node_count());
    const bool is_right = table.find_node(node) == (is_new ? 0 : place->second) &&
                          table.add_node(node) == place->second && table.node(place->second) == node;
    wrong += is_right ? 0 : 1;
  }
  CHECK(wrong == 0);
  CHECK(table.node_count() == known.size() + 1);
}

TEST_CASE("stack table: a stack after a very deep one is found again") {
  StackTable table;
  StackId innermost = 0;
  while (table.node_count() <= 300000) innermost = table.add_node({innermost, 1});
  const StackId other = table.add_node({0, 2});
  CHECK(other == table.node_count() - 1);
  CHECK(table.add_node({0, 2}) == other);
  CHECK(table.find_node({0, 2}) == other);
}

TEST_CASE("stack table: names are copied") {
  StackTable table;
  const FrameId frame = table.add_frame({.address = 16});
  CHECK(table.names(frame).empty());
  {
    const std::string function = "a function that is inlined", file = "file.cpp";
    const FrameName names[] = {{function, file, 7}, {"main", file, 9}};
    table.set_names(frame, names);
  }
  REQUIRE(table.names(frame).size() == 2);
  CHECK(table.names(frame)[0].function == "a function that is inlined");
  CHECK(table.names(frame)[1].file == "file.cpp");
  CHECK(table.names(frame)[1].line == 9);
}

TEST_CASE("stack table: of very many names of a frame the inner ones are kept") {
  StackTable table;
  const FrameId frame = table.add_frame({.address = 16});
  std::vector<FrameName> names;
  for (std::uint32_t line = 1; line <= 300; ++line) names.push_back({"f", "f.c", line});
  table.set_names(frame, names);
  REQUIRE(table.names(frame).size() == frame_names_limit);
  CHECK(table.names(frame).back().line == frame_names_limit);
  CHECK(!table.add_name(frame, names[0]));
}

}  // namespace cmt
