// Tests the MANIFEST and the messages for its faults.
#include "cmtreplay/matrix/trace_files.h"

#include <doctest/doctest.h>

#include "cmt/error.h"
#include "cmtreplay/matrix/matrix.h"

using namespace cmt::replay;

TEST_CASE("a manifest's columns are found by their titles") {
  const auto rows = parse_manifest(
      "# the corpus\nfile program events quick sha256\na.cmt gcc 1,234 yes 00ff\nb.cmt x 5 no 11\n", "M");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].file == "a.cmt");
  CHECK(rows[0].events == 1234);
  CHECK(rows[0].sha256 == "00ff");
  CHECK(rows[0].is_quick);
  CHECK_FALSE(rows[1].is_quick);
}

TEST_CASE("columns apart by tabs may have blanks") {
  const auto rows = parse_manifest("file\tcommand\tevents\tsha256\tquick\na.cmt\tgcc -O2 x.c\t7\tff\tyes\n", "M");
  CHECK(rows[0].events == 7);
}

TEST_CASE("faults of a manifest name their line") {
  const auto fault = [](const std::string& text) {
    try {
      parse_manifest(text, "M");
    } catch (const cmt::FormatError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(fault("") == "M: has no traces");
  CHECK(fault("file events quick\n") == "M:1: expected a column \"sha256\"");
  CHECK(fault("file events sha256 quick\na.cmt 1\n") == "M:2: expected as many columns as the first line has");
  CHECK(fault("file events sha256 quick\na.cmt many ff no\n") == "M:2: expected a number of events, not 'many'");
  CHECK(fault("file events sha256 quick\n../a.cmt 1 ff no\n") == "M:2: expected the name of a file");
}
