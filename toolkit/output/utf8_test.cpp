#include "toolkit/output/utf8.h"

#include <doctest/doctest.h>

namespace cmt::output {

TEST_CASE("UTF-8: what is well-formed stays as it is") {
  for (const char* text : {"", "phase 2", "Gänsefüßchen", "\xe2\x82\xac", "\xf0\x9f\x8e\x89"})
    CHECK(to_utf8(text) == text);
}

TEST_CASE("UTF-8: every byte that belongs to no sequence becomes a replacement character") {
  const std::string mark(replacement_character);
  CHECK(to_utf8("a\xff") == "a" + mark);
  CHECK(to_utf8("\xc3") == mark);
  CHECK(to_utf8("\xc0\xaf") == mark + mark);
  CHECK(to_utf8("\xed\xa0\x80z") == mark + mark + mark + "z");
}

TEST_CASE("utf8: a line has nothing that a terminal would obey") {
  CHECK(to_line("a\nb\t\x1b[2J\x7f\xc3\xa4\xff") == "a b  [2J \xc3\xa4\xef\xbf\xbd");
}

}  // namespace cmt::output
