#include "libcmt/format/varint_writer.h"

#include <doctest/doctest.h>

#include <random>
#include <string>

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
