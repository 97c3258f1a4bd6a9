#include "toolkit/picture/address_rows.h"

#include <doctest/doctest.h>

using namespace cmt::output;

TEST_CASE("address rows: a short gap stays, a long one is left out and breaks the axis") {
  const AddressRows rows = address_rows({1000, 4, 7, 5, 5}, 4096);
  CHECK(rows.bins == std::vector<std::uint64_t>{4, 5, 7, 1000});
  CHECK(rows.edges == std::vector<double>{0, 1, 2, 3, 4, 5, 6});
  CHECK(rows.row_of(4) == 0);
  CHECK(rows.row_of(5) == 1);
  CHECK(rows.row_of(7) == 3);
  CHECK(rows.row_of(1000) == 5);
  CHECK(rows.axis.breaks == std::vector<double>{4.5});
  REQUIRE(rows.axis.ticks.size() >= 2);
  CHECK(rows.axis.ticks[0] == Tick{0, "0x4000"});
  CHECK(rows.axis.ticks[1] == Tick{5, "0x3e8000"});
}

TEST_CASE("address rows: nothing used is no row") {
  CHECK(address_rows({}, 4096).edges.empty());
  CHECK(address_rows({}, 4096).axis.ticks.empty());
}
