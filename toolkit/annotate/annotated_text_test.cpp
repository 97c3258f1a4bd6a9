#include "toolkit/annotate/annotated_text.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <system_error>

using cmt::heap::AnnotatedText;

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
          text.annotate("free(10)");
          text.decimal(12);
          text.close();
          text.annotate(std::string(60, 'x'));
          text.hex(0xabc);
          text.signed_decimal(-1);
          text.close();
        }) == "free(10)" + std::string(41, ' ') + " # 12\n" + std::string(60, 'x') + " # abc-1\n");
}

TEST_CASE("annotated text: lines stay in order over many buffers, and one longer than the buffer is kept whole") {
  const std::string line(1000, 'a');
  const std::string huge(600'000, 'b');
  std::string expected;
  for (int i = 0; i < 1000; ++i) expected += line + '\n';
  expected += huge + '\n' + line + '\n';
  CHECK(annotated([&](AnnotatedText& text) {
          for (int i = 0; i < 1000; ++i) text.bare(line);
          text.bare(huge);
          text.bare(line);
        }) == expected);
}

TEST_CASE("annotated text: what cannot be written is an error") {
  AnnotatedText text(-1);
  text.bare("free(10)");
  CHECK_THROWS_AS(text.flush(), std::system_error);
}
