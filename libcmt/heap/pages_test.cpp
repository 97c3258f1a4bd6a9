#include "libcmt/heap/pages.h"

#include <doctest/doctest.h>

using cmt::heap::gap;
using cmt::heap::own_pages;
using cmt::heap::PlacedBlock;

TEST_CASE("pages: a lone block has all its pages, and one of size 0 has one") {
  CHECK(own_pages({PlacedBlock{0x1ff0, 32, 0, 1}, {}, {}}, 12) == 2);
  CHECK(own_pages({PlacedBlock{0x1000, 4096, 0, 1}, {}, {}}, 12) == 1);
  CHECK(own_pages({PlacedBlock{0x1000, 0, 0, 1}, {}, {}}, 12) == 1);
  CHECK(own_pages({PlacedBlock{0x1ff0, 32, 0, 1}, {}, {}}, 21) == 1);
}

TEST_CASE("pages: a page that a neighbour is on is not the block's own, and is not taken away twice") {
  const PlacedBlock low{0x1000, 16, 0, 1};
  const PlacedBlock high{0x1f00, 16, 0, 2};
  CHECK(own_pages({PlacedBlock{0x1100, 16, 0, 3}, low, high}, 12) == 0);
  CHECK(own_pages({PlacedBlock{0x1100, 8192, 0, 3}, low, PlacedBlock{0x3200, 8, 0, 4}}, 12) == 1);
}

TEST_CASE("pages: a gap is counted by the size asked for, and is negative where blocks overlap") {
  CHECK(gap({0x1000, 10, 0, 1}, {0x1010, 8, 0, 2}) == 6);
  CHECK(gap({0x1000, 24, 0, 1}, {0x1010, 8, 0, 2}) == -8);
}
