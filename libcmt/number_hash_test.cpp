// Checks that NumberHash spreads numbers that share their low or high bits.

#include "libcmt/number_hash.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

namespace cmt {

TEST_CASE("number hash: numbers that differ in any ten bits have places of their own") {
  for (unsigned shift = 0; shift <= 54; ++shift) {
    CAPTURE(shift);
    std::vector<int> places(1024);
    int fullest = 0;
    for (std::uint64_t i = 0; i < 1024; ++i) fullest = std::max(fullest, ++places[NumberHash()(i << shift) % 1024]);
    CHECK(fullest <= 10);  // of random numbers 6
  }
}

}  // namespace cmt
