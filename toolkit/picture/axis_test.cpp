// Checks ticks, labels and ranges for each unit, and the rows of a map of addresses.

#include "toolkit/picture/axis.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace cmt::picture;

namespace {

std::vector<std::string> labels(Unit unit, bool log, double low, double high, int most) {
  std::vector<std::string> labels;
  for (const Tick& tick : choose_ticks(unit, log, low, high, most)) labels.push_back(tick.label);
  return labels;
}

using Labels = std::vector<std::string>;

}  // namespace

TEST_CASE("ticks: counts step by 1, 2 or 5, in one unit") {
  CHECK(labels(Unit::count, false, 0, 4'600'000, 6) == Labels{"0", "1 M", "2 M", "3 M", "4 M"});
  CHECK(labels(Unit::count, false, 0, 1'200'000, 5) == Labels{"0", "0.5 M", "1 M"});
  CHECK(labels(Unit::count, false, 0, 3, 9) == Labels{"0", "1", "2", "3"});
}

TEST_CASE("ticks: bytes step by powers of two") {
  CHECK(labels(Unit::bytes, false, 0, 12e6, 5) == Labels{"0", "4 MiB", "8 MiB"});
  CHECK(labels(Unit::bytes, true, 1, 70'000, 9) ==
        Labels{"1 B", "4 B", "16 B", "64 B", "256 B", "1 KiB", "4 KiB", "16 KiB", "64 KiB"});
}

TEST_CASE("ticks: times and shares have their units") {
  CHECK(labels(Unit::ns, false, 0, 2.5e9, 4) == Labels{"0", "1 s", "2 s"});
  CHECK(labels(Unit::share, false, 0, 1, 3) == Labels{"0", "50 %", "100 %"});
}

TEST_CASE("ticks: a logarithmic axis has a place for 0") {
  CHECK(labels(Unit::count, true, 0, 1e6, 9) == Labels{"0", "1", "10", "100", "1 k", "10 k", "100 k", "1 M"});
  CHECK(to_scale(0, true) == 0);
  CHECK(to_scale(1, true) == 1);
  CHECK(to_scale(8, true) == 4);
  CHECK(to_scale(0.5, true) == 0.5);
}

TEST_CASE("ticks: there are never more than asked for, whatever the range") {
  for (const Unit unit : {Unit::count, Unit::bytes, Unit::ns, Unit::share, Unit::one_in}) {
    for (const bool log : {false, true}) {
      for (const double high : {1.0, 7.0, 1e3, 999'999.0, 0x1p64, 1e300}) {
        const auto ticks = choose_ticks(unit, log, 0, high, 6);
        CHECK(!ticks.empty());
        CHECK(ticks.size() <= 6);
      }
    }
  }
  CHECK(choose_ticks(Unit::count, false, 5, 5, 6).size() == 1);
  CHECK(choose_ticks(Unit::count, false, 0, std::nan(""), 6).size() == 1);
}

TEST_CASE("ticks: numbers are written with their unit") {
  CHECK(label_text(Unit::count, 9999) == "9,999");
  CHECK(label_text(Unit::count, 1'234'567) == "1.23 M");
  CHECK((label_text(Unit::one_in, 1) == "0 %" && label_text(Unit::one_in, 2) == "50 %"));
  CHECK((label_text(Unit::one_in, 870) == "99.885 %" && label_text(Unit::one_in, 1000) == "99.9 %"));
  CHECK(label_text(Unit::bytes, 10'651'343) == "10.2 MiB");
  CHECK(label_text(Unit::ns, 340e6) == "340 ms");
  CHECK(label_text(Unit::share, 0.124) == "12.4 %");
}

TEST_CASE("ticks: a page gets the rules of every unit") {
  const std::string text = tick_rules_json();
  for (const char* const word : {"\"count\"", "\"bytes\"", "\"ns\"", "\"share\"", "[1024, \"KiB\"]", "[1, 2, 5]"}) {
    CHECK(text.find(word) != text.npos);
  }
}

TEST_CASE("ticks: an axis ends with a round number at or above the greatest") {
  CHECK(round_up(Unit::count, 4'636'863) == 5'000'000);
  CHECK(round_up(Unit::bytes, 10'651'343) == 0x1p21 * 6);
  CHECK(round_up(Unit::count, 0) == 1);
  CHECK(round_up(Unit::count, 8) == 8);
}

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
