// Checks which ranges are read, which events are in them, and what is refused at the end of a trace.

#include "toolkit/trace/slice.h"

#include <doctest/doctest.h>

#include <string>

#include "cmt/error.h"

namespace cmt::trace {
namespace {

using Unit = SliceBound::Unit;

/// Where each event of a trace lies: 'b'efore, 'i'nside or be'h'ind. Events are marks named by the letters of `marks`,
/// and mallocs where that is a point; each is 10 ns after the one before.
std::string places(const std::string& slice, const std::string& marks) {
  SliceProgress progress(*SliceRange::parse(slice));
  std::string found;
  std::uint64_t time = 0;
  for (const char& mark : marks) {
    Event event{.kind = mark == '.' ? Kind::malloc : Kind::mark, .time_ns = time += 10};
    if (mark != '.') event.label = {&mark, 1};
    found += "bih"[static_cast<int>(progress.next(event))];
  }
  progress.finish();
  return found;
}

}  // namespace

TEST_CASE("slice: a range is of events, or of time with a unit, or of marks") {
  const auto events = SliceRange::parse("10:20");
  REQUIRE(events);
  CHECK(events->unit == Unit::events);
  CHECK(events->from->value == 10);
  CHECK(events->to->value == 20);
  const auto time = SliceRange::parse("1.5s:2min");
  REQUIRE(time);
  CHECK(time->unit == Unit::time);
  CHECK(time->from->value == 1'500'000'000);
  CHECK(time->to->value == 120'000'000'000);
  const auto marks = SliceRange::parse("@load:@a b");
  REQUIRE(marks);
  CHECK(marks->unit == Unit::mark);
  CHECK(marks->from->label == "load");
  CHECK(marks->to->label == "a b");
  CHECK(SliceRange::parse("@a::b:@c:d")->from->label == "a::b");
  CHECK(SliceRange::parse("@a::b:@c:d")->to->label == "c:d");
  CHECK(SliceRange::parse("@a::b:")->from->label == "a::b");
  CHECK(SliceRange::parse("@a::b")->from->label == "a::b");
  CHECK(SliceRange::parse("@a::b")->to->label.empty());
}

TEST_CASE("slice: either side may be left out, not both") {
  CHECK(!SliceRange::parse(":7")->from);
  CHECK(!SliceRange::parse("7:")->to);
  CHECK(SliceRange::parse("3us:")->from->value == 3000);
  CHECK(SliceRange::parse(":@x")->to->label == "x");
  CHECK(!SliceRange::parse(":"));
}

TEST_CASE("slice: any other text is refused") {
  for (const char* text :
       {"",      "7",     "a:b",   "3:2",     "1s:7",  "1.5:2", "-1:2",          "-1s:2s",
        "1e3s:", "nans:", "infs:", "1x:2x",   "1:2:3", " 1:2",  "99999999999h:", "18446744073709551616:",
        "@:@",   "@",     "@:",    "@a:@b:@c"}) {
    CHECK_MESSAGE(!SliceRange::parse(text), text);
  }
}

TEST_CASE("slice: each event is before, inside or after it") {
  CHECK(places("2:4", "......") == "bbiihh");
  CHECK(places(":2", "....") == "iihh");
  CHECK(places("2:2", "....") == "bbhh");
  CHECK(places("20ns:40ns", "......") == "biihhh");
  CHECK(places("20ns:", "...") == "bii");
  CHECK(places("@x:@y", "..x.y.x.") == "bbiihhhh");
  CHECK(places("@x:@x", ".x..x..x") == "biiihhhh");
  CHECK(places("@x", ".x..y..x") == "biiihhhh");
  CHECK(places("@x", ".y.x.") == "bbbii");
  CHECK(places(":@y", "..y.") == "iihh");
  CHECK(places("@x:", ".x..") == "biii");
  CHECK(places("4:", "....") == "bbbb");
}

TEST_CASE("slice: a part that a trace does not have is refused") {
  CHECK_THROWS_WITH_AS(places("5:", "...."), doctest::Contains("the trace ends before --slice=5:"), FormatError);
  CHECK_THROWS_WITH_AS(places("1s:", "...."), doctest::Contains("ends before"), FormatError);
  CHECK_THROWS_WITH_AS(places("@z:", "..x."), doctest::Contains("no mark \"z\""), FormatError);
  CHECK_THROWS_WITH_AS(places(":@z", ""), doctest::Contains("no mark \"z\"; it has none"), FormatError);
  CHECK_THROWS_WITH_AS(places("@x:@z", ".x.."), doctest::Contains("no mark \"z\" after the start"), FormatError);
  CHECK_THROWS_WITH_AS(SliceProgress(*SliceRange::parse("1s:2s")).check(Header{}), doctest::Contains("times were not"),
                       FormatError);
}

}  // namespace cmt::trace
