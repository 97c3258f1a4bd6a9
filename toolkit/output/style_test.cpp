// Marks become the sequences of a terminal, and those in other texts do not.
#include "toolkit/output/style.h"

#include <doctest/doctest.h>

#include "libcmt/text/utf8.h"
#include "toolkit/output/table.h"

using namespace cmt::output;

TEST_CASE("style: bold text has a terminal's sequences, and without styles none") {
  CHECK(bold("a") == "a");
  CHECK(to_sequences("a\x1b[1m", cmt::text::to_lines).find('\x1b') == std::string::npos);
  use_bold(true);
  CHECK(to_sequences("1 " + bold("a") + " " + bold("b"), cmt::text::to_lines) == "1 \x1b[1ma\x1b[0m \x1b[1mb\x1b[0m");
  CHECK(bold("").empty());
  CHECK(without_styles("1 " + bold("a") + " " + bold("b")) == "1 a b");
  Table table({"name", "bytes"});
  table.add({"a", "1"});
  CHECK(to_sequences(table.text(), cmt::text::to_lines) == "\x1b[1mname  bytes\x1b[0m\na         1\n");
  use_bold(false);
}
