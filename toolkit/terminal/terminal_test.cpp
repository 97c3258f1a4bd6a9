#include "toolkit/terminal/terminal.h"

#include <doctest/doctest.h>

#include <vector>

using namespace cmt::terminal;

TEST_CASE("terminal: a text is cut between code points") {
  CHECK(cut_to_width("abc", 2) == "ab");
  CHECK(cut_to_width("abc", 3) == "abc");
  CHECK(cut_to_width("\xc3\xa4\xe2\x82\xac"
                     "b",
                     2) == "\xc3\xa4\xe2\x82\xac");
  CHECK(cut_to_width("abc", 0).empty());
}

TEST_CASE("terminal: a descriptor that is none has the size of an old terminal") {
  CHECK(terminal_size(-1).rows == 24);
  CHECK(terminal_size(-1).columns == 80);
}

TEST_CASE("sparkline: heights go from 0 to the largest number") {
  CHECK(sparkline(std::vector<std::uint64_t>{0, 4, 8}, 10) == "▁▅█");
}

TEST_CASE("sparkline: the last numbers are shown, and the largest of them is the top") {
  CHECK(sparkline(std::vector<std::uint64_t>{1000, 4, 8}, 2) == "▅█");
}

TEST_CASE("sparkline: nothing, and nothing but zeros") {
  CHECK(sparkline({}, 10).empty());
  CHECK(sparkline(std::vector<std::uint64_t>{0, 0}, 10) == "▁▁");
  CHECK(sparkline(std::vector<std::uint64_t>{UINT64_MAX}, 10) == "█");
}
