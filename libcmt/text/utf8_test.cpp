// UTF-8: well-formed text stays, other bytes are replaced, and characters that a terminal obeys are removed.

#include "libcmt/text/utf8.h"

#include <doctest/doctest.h>

namespace cmt::text {

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

TEST_CASE("utf8: control characters and those that turn the direction of writing are obeyed by terminals, others not") {
  for (const char* control :
       {"\x1b", "\x7f", "\xc2\x80", "\xc2\x9b", "\xd8\x9c", "\xe2\x80\x8e", "\xe2\x80\xae", "\xe2\x81\xa9"}) {
    CAPTURE(control);
    CHECK(control_length(control) == std::string_view(control).size());
    CHECK_FALSE(is_plain(std::string("ä") + control));
    CHECK(to_line(std::string("a") + control + "z") == "a z");
    CHECK(to_lines(std::string("a\n\t\r\n\r") + control + "z") == "a\n\t\r\n  z");
  }
  for (const char* other :
       {"", "a", "\xc2\xa0", "\xc2", "\xd8\x9d", "\xe2\x82\xac", "\xe2\x80\x90", "\xe2\x81\xaa", "\x9b"}) {
    CAPTURE(other);
    CHECK(control_length(other) == 0);
    CHECK(is_plain(std::string("a\t") + other) == (to_utf8(other) == other));
  }
}

TEST_CASE("utf8: a byte that a terminal obeys is found at each place of texts of each length") {
  bool are_right = true;
  for (std::size_t size = 1; size <= 24; ++size) {
    for (std::size_t at = 0; at < size; ++at) {
      for (unsigned byte = 0; byte < 256; ++byte) {
        std::string text(size, 'a');
        text[at] = static_cast<char>(byte);
        are_right = are_right && is_plain(text) == ((byte >= 0x20 && byte < 0x7f) || byte == '\t');
      }
    }
  }
  CHECK(are_right);
}

}  // namespace cmt::text
