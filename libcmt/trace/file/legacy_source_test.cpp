// The .cmt of 2019: its records, cuts at every length, records that cannot be, and no other form is taken for it.

#include "libcmt/trace/file/legacy_source.h"

#include <doctest/doctest.h>

#include "tests/format-spec/trace_fixture.h"

using namespace cmt;

namespace {

const std::string readme("\x88\x80\x81\x90\x81\x81\x80\x81");

}  // namespace

TEST_CASE("legacy: the README's example is a malloc, a realloc and a free") {
  const auto read = fixture::read_all(readme);
  CHECK(read.lines == std::vector<std::string>{"malloc(8) = <1>", "realloc(<1>, 16) = <2>", "free(<2>)"});
  CHECK(!read.truncated);
  CHECK(read.defects == 0);
}

TEST_CASE("legacy: cut at every length it yields whole records, and says where it was cut") {
  for (std::size_t length = 3; length < readme.size(); ++length) {
    const auto read = fixture::read_all(std::string_view(readme).substr(0, length));
    const bool whole = length == 3 || length == 6;
    CHECK(read.truncated == !whole);
    CHECK(read.defects == (whole ? 0 : 1));
    CHECK(read.lines.size() == (length < 6 ? 1 : 2));
  }
}

TEST_CASE("legacy: a record that cannot be is where reading ends") {
  const auto read = fixture::read_all(readme + "\x80\x85");
  CHECK(read.lines.size() == 3);
  CHECK(read.messages == std::vector<std::string>{"app: offset 0x8: not a record of the .cmt of 2019: read to here"});
}

TEST_CASE("legacy: a size of more than 28 bits has five bytes") {
  const auto read = fixture::read_all(std::string("\x00\x00\x00\x00\x81\x80\x81", 7));
  CHECK(read.lines == std::vector<std::string>{"malloc(268435456) = <1>"});
}

TEST_CASE("legacy: neither text nor the magic begins as a legacy trace does") {
  CHECK(is_legacy(readme));
  CHECK(!is_legacy("malloc(8) = 1<1>"));
  CHECK(
      !is_legacy("\x89"
                 "CMT\r\n\x1a\n"));
  CHECK(!is_legacy(""));
}

TEST_CASE("legacy: many records cross the batches of the reader") {
  std::string bytes;
  for (int i = 0; i < 10000; ++i) bytes += "\x88\x80\x81";
  const auto read = fixture::read_all(bytes);
  CHECK(read.lines.size() == 10000);
  CHECK(read.lines.back() == "malloc(8) = <10000>");
  CHECK(!read.truncated);
}
