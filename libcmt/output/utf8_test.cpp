#include "output/utf8.h"

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

}  // namespace cmt::output
