// Checks varints at every length, the Cursor at every cut, and VarintWriter.

#include "libcmt/format/coding.h"

#include <doctest/doctest.h>

#include <bit>
#include <random>
#include <string>

using namespace cmt::format;

namespace {

std::string varint_error(std::string_view bytes, std::uint64_t limit = ~std::uint64_t{0}) {
  try {
    Cursor(bytes).varint(limit, "a number");
    return "";
  } catch (const WireError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("varint: every power of two and its neighbours come back, in the predicted size") {
  for (unsigned shift = 0; shift < 64; ++shift) {
    for (const std::uint64_t step : {~std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{1}}) {
      const std::uint64_t value = (std::uint64_t{1} << shift) + step;
      std::string bytes;
      put_varint(bytes, value);
      CHECK(bytes.size() == varint_size(static_cast<unsigned>(std::bit_width(value))));
      Cursor cursor(bytes);
      CHECK(cursor.varint() == value);
      CHECK(cursor.at_end());
    }
  }
}

TEST_CASE("varint: 2^64 - 1 is ten bytes") {
  std::string bytes;
  put_varint(bytes, ~std::uint64_t{0});
  CHECK(bytes == "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

TEST_CASE("zigzag: small differences of either sign are small, and all come back") {
  CHECK(zigzag(0) == 0);
  CHECK(zigzag(std::uint64_t{0} - 1) == 1);
  CHECK(zigzag(1) == 2);
  CHECK(zigzag(std::uint64_t{0} - 2) == 3);
  CHECK(zigzag(std::uint64_t{1} << 63) == ~std::uint64_t{0});
  for (unsigned shift = 0; shift < 64; ++shift) {
    const std::uint64_t value = std::uint64_t{1} << shift;
    CHECK(unzigzag(zigzag(value)) == value);
    CHECK(unzigzag(zigzag(0 - value)) == 0 - value);
  }
}

TEST_CASE("cursor: a number that has no end is reported") {
  CHECK(varint_error("") == "a number is cut off");
  CHECK(varint_error("\x80") == "a number is cut off");
  CHECK(varint_error(std::string(9, '\xff')) == "a number is cut off");
}

TEST_CASE("cursor: a number of more than 64 bits is reported") {
  CHECK(varint_error(std::string(9, '\xff') + "\x02") == "a number of more than 64 bits");
  CHECK(varint_error(std::string(10, '\x80') + "\x01") == "a number of more than 64 bits");
}

TEST_CASE("cursor: a number above its limit is reported with its name, its value and where it begins") {
  CHECK(varint_error("\x05", 5) == "");
  CHECK(varint_error("\x06", 5) == "a number 6 is above its limit");
  Cursor cursor(std::string_view("\x01\x06", 2));
  cursor.varint();
  try {
    cursor.varint(5, "a number");
    FAIL("no error");
  } catch (const WireError& error) {
    CHECK(error.offset() == 1);
  }
}

TEST_CASE("cursor: bytes after the end are not there") {
  Cursor cursor("abc");
  CHECK(cursor.bytes(2) == "ab");
  CHECK_THROWS_AS(cursor.bytes(2), WireError);
  CHECK_THROWS_AS(cursor.bytes(~std::uint64_t{0}), WireError);
  CHECK_THROWS_AS(cursor.u32(), WireError);
  CHECK_THROWS_AS(cursor.u64(), WireError);
  CHECK(cursor.bytes(1) == "c");
}

using namespace cmt::format;

TEST_CASE("varint writer: the bytes are those of each varint by itself, wherever its buffer ends") {
  std::mt19937_64 random(1);
  for (unsigned round = 0; round < 200; ++round) {
    VarintWriter writer;
    std::string wanted;
    for (unsigned i = 0; i < 2000; ++i) {
      // Round by round another power of two and its neighbours among all sorts.
      const std::uint64_t near = (std::uint64_t{1} << round % 64) - 1 + random() % 3;
      const std::uint64_t value = i % 3 == 0 ? near : random() >> random() % 64;
      writer.put(value);
      put_varint(wanted, value);
      if (random() % 500 != 0) continue;
      const std::string label(random() % 1500, 'x');
      writer.put(label);
      wanted += label;
    }
    REQUIRE(writer.size() == wanted.size());
    REQUIRE(writer.take() == wanted);
    REQUIRE(writer.take().empty());
  }
}
