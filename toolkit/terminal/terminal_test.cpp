#include "toolkit/terminal/terminal.h"

#include <doctest/doctest.h>

using namespace cmt::output;

TEST_CASE("terminal: a text is cut between code points") {
  CHECK(cut_to_width("abc", 2) == "ab");
  CHECK(cut_to_width("abc", 3) == "abc");
  CHECK(cut_to_width("\xc3\xa4\xe2\x82\xac"
                     "b",
                     2) == "\xc3\xa4\xe2\x82\xac");
  CHECK(cut_to_width("abc", 0).empty());
}

TEST_CASE("terminal: what is none has the size of an old one") {
  CHECK(terminal_size(-1).rows == 24);
  CHECK(terminal_size(-1).columns == 80);
}
