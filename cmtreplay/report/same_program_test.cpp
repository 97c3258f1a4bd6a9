// Tests how the verdicts of several recordings become one.
#include "cmtreplay/report/same_program.h"

#include <doctest/doctest.h>

using namespace cmt::replay;

namespace {

Comparison pair_of(const std::string& less, const std::string& more, double ratio, double low, double high) {
  return {
      .less = less, .more = more, .ratio = ratio, .low = low, .high = high, .is_known = true, .is_certain = high < 1};
}

}  // namespace

TEST_CASE("same program: two recordings that agree give a wider interval, and a certain verdict") {
  const auto pairs = join_comparisons({{pair_of("a", "b", 0.8, 0.78, 0.82)}, {pair_of("a", "b", 0.9, 0.88, 0.92)}});
  REQUIRE(pairs.size() == 1);
  CHECK(pairs[0].ratio == doctest::Approx(0.85));
  CHECK(pairs[0].low == 0.78);
  CHECK(pairs[0].high == 0.92);
  CHECK(pairs[0].is_certain);
  CHECK(verdict_lines({}, pairs, "2 recordings") ==
        std::vector<std::string>{"peak of 2 recordings: a is 15 % (8.0 to 22) lower than b"});
}

TEST_CASE("same program: recordings that are certain of the opposite are not certain together") {
  const auto pairs = join_comparisons({{pair_of("a", "b", 0.979, 0.979, 0.979)},
                                       {pair_of("b", "a", 0.9, 0.9, 0.9)},
                                       {pair_of("b", "a", 0.95, 0.9, 1)}});
  REQUIRE(pairs.size() == 1);
  CHECK(pairs[0].less == "b");
  CHECK(pairs[0].ratio == doctest::Approx(0.95));
  CHECK(pairs[0].low == doctest::Approx(0.9));
  CHECK(pairs[0].high == doctest::Approx(1 / 0.979));
  CHECK(!pairs[0].is_certain);
}

TEST_CASE("same program: a pair that a recording lacks, or does not know, has no verdict") {
  Comparison unknown_pair = pair_of("a", "b", 0.5, 0, 0);
  unknown_pair.is_known = unknown_pair.is_certain = false;
  const auto pairs =
      join_comparisons({{pair_of("a", "b", 0.5, 0.4, 0.6), pair_of("a", "c", 0.5, 0.4, 0.6)}, {unknown_pair}});
  REQUIRE(pairs.size() == 1);
  CHECK(!pairs[0].is_known);
  CHECK(!pairs[0].is_certain);
  CHECK(join_comparisons({}).empty());
}

TEST_CASE("same program: the CSV has the recording as first column, and the titles once") {
  std::string csv;
  append_csv(csv, "a.cmt", "x,y\n1,2\n");
  append_csv(csv, "b,c.cmt", "x,y\n3,4\n5,6\n");
  CHECK(csv == "trace,x,y\na.cmt,1,2\n\"b,c.cmt\",3,4\n\"b,c.cmt\",5,6\n");
}
