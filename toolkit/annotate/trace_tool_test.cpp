#include "toolkit/annotate/trace_tool.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <system_error>

using cmt::annotate::AnnotatedText;

namespace {

/// What `write` leaves in a file.
template <class Write>
std::string annotated(Write write) {
  std::FILE* const file = std::tmpfile();
  AnnotatedText text(fileno(file));
  write(text);
  text.flush();
  std::rewind(file);
  std::string all;
  char buffer[4096];
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, file)) all.append(buffer, count);
  std::fclose(file);
  return all;
}

}  // namespace

TEST_CASE("annotated text: an annotation begins at column 50, or right behind a longer line") {
  CHECK(annotated([](AnnotatedText& text) {
          text.begin_annotated_line("free(10)");
          text.decimal(12);
          text.end_line();
          text.begin_annotated_line(std::string(60, 'x'));
          text.hex(0xabc);
          text.signed_decimal(-1);
          text.end_line();
        }) == "free(10)" + std::string(41, ' ') + " # 12\n" + std::string(60, 'x') + " # abc-1\n");
}

TEST_CASE("annotated text: lines stay in order over many buffers, and one longer than the buffer is kept whole") {
  const std::string line(1000, 'a');
  const std::string huge(600'000, 'b');
  std::string expected;
  for (int i = 0; i < 1000; ++i) expected += line + '\n';
  expected += huge + '\n' + line + '\n';
  CHECK(annotated([&](AnnotatedText& text) {
          for (int i = 0; i < 1000; ++i) text.plain_line(line);
          text.plain_line(huge);
          text.plain_line(line);
        }) == expected);
}

TEST_CASE("annotated text: what cannot be written is an error") {
  AnnotatedText text(-1);
  text.plain_line("free(10)");
  CHECK_THROWS_AS(text.flush(), std::system_error);
}
