#include "toolkit/terminal/sparkline.h"

#include <doctest/doctest.h>

#include <vector>

using cmt::output::sparkline;

TEST_CASE("sparkline: heights go from 0 to the largest number") {
  CHECK(sparkline(std::vector<std::uint64_t>{0, 4, 8}, 10) == "▁▅█");
}

TEST_CASE("sparkline: the last numbers are shown, and the largest of them is the top") {
  CHECK(sparkline(std::vector<std::uint64_t>{1000, 4, 8}, 2) == "▅█");
}

TEST_CASE("sparkline: nothing, and nothing but zeros") {
  CHECK(sparkline({}, 10).empty());
  CHECK(sparkline(std::vector<std::uint64_t>{0, 0}, 10) == "▁▁");
  CHECK(sparkline(std::vector<std::uint64_t>{UINT64_MAX}, 10) == "█");
}
