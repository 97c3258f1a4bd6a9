// Tests which falls of live bytes are a tear-down.
#include "cmtreplay/plan/teardown.h"

#include <doctest/doctest.h>

#include <vector>

using namespace cmt::replay;

namespace {

/// Live bytes that change evenly from corner to corner, a moment for each unit of time.
class Curve {
 public:
  Curve& to(std::uint64_t at, double live_bytes) {
    const LiveMoment begin = moments_.back();
    for (std::uint64_t now = begin.at + 1; now <= at; ++now) {
      const double share = static_cast<double>(now - begin.at) / static_cast<double>(at - begin.at);
      const double from = static_cast<double>(begin.live_bytes);
      moments_.push_back({now, static_cast<std::uint64_t>(from + (live_bytes - from) * share)});
    }
    return *this;
  }

  /// The time of the last moment before the tear-down; 0: there is none.
  std::uint64_t teardown() const {
    const auto found = last_before_teardown(moments_);
    return found ? moments_[*found].at : 0;
  }

 private:
  std::vector<LiveMoment> moments_{{0, 0}};
};

}  // namespace

TEST_CASE("tear-down: a program that frees all that it has made is torn down from its peak") {
  CHECK(Curve().to(500, 1e6).to(1000, 0).teardown() == 500);
  CHECK(Curve().to(990, 1e6).to(1000, 1e4).teardown() == 990);
}

TEST_CASE("tear-down: a fall before a pause is not a part of it") {
  CHECK(Curve().to(300, 1e8).to(400, 5e6).to(900, 5e6).to(1000, 1e5).teardown() == 900);
  // The same with a slow fall during the pause.
  CHECK(Curve().to(300, 1e8).to(400, 5e6).to(900, 49e5).to(1000, 1e5).teardown() >= 870);
}

TEST_CASE("tear-down: rises and falls of a program at work are before it") {
  Curve curve;
  for (std::uint64_t round = 0; round < 50; ++round) curve.to(20 * round + 10, 1e6).to(20 * round + 20, 6e5);
  CHECK(curve.to(1010, 1e6).to(1030, 0).teardown() == 1010);
}

TEST_CASE("tear-down: short rises within it do not end it") {
  CHECK(Curve().to(500, 1e6).to(900, 1e6).to(920, 6e5).to(922, 65e4).to(960, 0).teardown() == 900);
}

TEST_CASE("tear-down: a program that keeps its blocks has none") {
  CHECK(Curve().to(1000, 1e6).teardown() == 0);
  CHECK(Curve().to(900, 1e6).to(1000, 6e5).teardown() == 0);  // less than half is freed
  CHECK(Curve().to(500, 1e6).to(501, 0).teardown() == 500);
}

TEST_CASE("tear-down: a program that idles after it has freed all has none") {
  CHECK(Curve().to(500, 1e6).to(510, 300).to(1000, 300).teardown() == 0);
  CHECK(Curve().to(900, 1e6).to(990, 300).to(1000, 300).teardown() == 900);
}

TEST_CASE("tear-down: the little that a large program has at its end does not count") {
  CHECK(Curve().to(800, 1e8).to(900, 1e6).to(990, 1e6).to(1000, 0).teardown() == 800);
}

TEST_CASE("tear-down: an empty trace and one event have none") {
  CHECK(!last_before_teardown({}));
  CHECK(Curve().teardown() == 0);
  CHECK(Curve().to(1, 100).teardown() == 0);
}

TEST_CASE("tear-down: moments of one coarse time are taken together") {
  const std::vector<LiveMoment> moments{{0, 0}, {10, 90}, {20, 100}, {20, 60}, {20, 30}, {20, 5}};
  CHECK(last_before_teardown(moments) == 2);
}
