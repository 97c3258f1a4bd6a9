// Checks columns of annotations, growth of the buffer, and the canonical form of hostile lines.

#include "toolkit/trace/annotated_text.h"

#include <doctest/doctest.h>

#include <string>

using cmt::trace::AnnotatedText;

TEST_CASE("annotated text: an annotation begins at column 50, or right after a longer line") {
  AnnotatedText text;
  text.begin_line("free(10)");
  text.begin_annotation();
  text.decimal(12);
  text.end_line();
  text.begin_line(std::string(60, 'x'));
  text.begin_annotation();
  text.hex(0xabc);
  text.signed_decimal(-1);
  text.end_line();
  CHECK(text.lines() == "free(10)" + std::string(41, ' ') + " # 12\n" + std::string(60, 'x') + " # abc-1\n");
}

TEST_CASE("annotated text: lines stay in order while the buffer grows, and one longer than it is kept whole") {
  const std::string line(1000, 'a');
  const std::string huge(600'000, 'b');
  std::string expected;
  for (int i = 0; i < 1000; ++i) expected += line + '\n';
  expected += huge + '\n' + line + '\n';
  AnnotatedText text;
  for (int i = 0; i < 1002; ++i) {
    text.begin_line(i == 1000 ? huge : line);
    text.end_line();
  }
  CHECK(text.lines() == expected);
  text.clear();
  CHECK(text.lines().empty());
}

TEST_CASE("annotated text: a line that a terminal would obey is written in canonical form, any other as it is") {
  const cmt::Event event{.kind = cmt::Kind::malloc, .size = 8, .tag = 1, .address = 0x1000};
  const cmt::Event mark{.kind = cmt::Kind::mark, .label = "one\x1b"};
  AnnotatedText text;
  text.begin_line(event, "malloc(8)  = 1000", false);
  text.end_line();
  text.begin_line(event, "malloc(8)\x1b[2J = 1000", false);
  text.end_line();
  text.begin_line(event, "", true);
  text.end_line();
  text.begin_line(mark, "", true);
  text.end_line();
  CHECK(text.lines() == "malloc(8)  = 1000\nmalloc(8) = 1000<1>\nmalloc(8) = 1000<1>\nmark(\"one\\x1b\")\n");
}
