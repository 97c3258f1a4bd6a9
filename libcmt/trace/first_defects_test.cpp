// Checks that the first defects and the first of each kind are kept, and that all others are counted by one of these.

#include "libcmt/trace/first_defects.h"

#include <doctest/doctest.h>

#include <string>

using cmt::FirstDefects;
using cmt::kind_of_defect;

TEST_CASE("first defects: a kind is the words without numbers and quotations") {
  CHECK(kind_of_defect("10<3> lies on a live block: 8<2>") == kind_of_defect("abc4<5> lies on a live block: f0<1>"));
  CHECK(kind_of_defect("time goes back from 5 to 4") != kind_of_defect("its tag contradicts the events before"));
  CHECK(kind_of_defect("expected ')': malloc(8") == kind_of_defect("expected ')': free(x"));
}

TEST_CASE("first defects: the first are kept, and the first of each kind") {
  FirstDefects defects(2);
  CHECK(!defects.counted_by("wrong 1"));
  CHECK(!defects.counted_by("wrong 2"));
  CHECK(defects.counted_by("wrong 3") == 1);
  CHECK(!defects.counted_by("another"));
  CHECK(defects.counted_by("another") == 2);
  CHECK(defects.counted_by("wrong 4") == 1);
  defects.clear();
  CHECK(!defects.counted_by("wrong 5"));
}

TEST_CASE("first defects: kinds without end are counted by one") {
  FirstDefects defects(0);
  std::size_t kept = 0;
  std::string word;
  for (int i = 0; i < 1000; ++i) kept += !defects.counted_by(word += 'x');
  CHECK(kept == 32);
  CHECK(defects.counted_by("y") == 31);
}
