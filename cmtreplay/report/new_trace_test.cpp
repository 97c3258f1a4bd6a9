// Tests the addresses of the new trace, above all after calls that one of the two allocators refused.
#include "cmtreplay/report/new_trace.h"

#include <doctest/doctest.h>

#include "cmt/text.h"

using namespace cmt::replay;
using cmt::Event;
using cmt::Kind;

namespace {

/// An allocator that returns 0x1000, 0x2000, ... but 0 for call number `refused`.
Readdresser counting(std::uint64_t refused = 0) {
  return Readdresser([n = std::uint64_t{0}, refused]() mutable { return ++n == refused ? 0 : n * 0x1000; });
}

std::string line(Readdresser& readdresser, const Event& event) { return cmt::to_line(readdresser.readdress(event)); }

Event malloc_of(cmt::Tag tag) { return {.kind = Kind::malloc, .size = 8, .tag = tag, .address = 0xaa0 + tag}; }
Event free_of(cmt::Tag tag) { return {.kind = Kind::free, .old_tag = tag, .old_address = 0xaa0 + tag}; }
Event realloc_of(cmt::Tag old_tag, cmt::Tag tag) {
  return {.kind = Kind::realloc, .size = 16, .tag = tag, .old_tag = old_tag, .address = 0xbb0, .old_address = 0xcc0};
}

}  // namespace

TEST_CASE("new trace: addresses are the allocator's, the rest stays") {
  Readdresser readdresser = counting();
  Event first = malloc_of(5);
  first.thread = 3;
  CHECK(line(readdresser, first) == "malloc(8) = 1000<5> thread=3");
  CHECK(line(readdresser, realloc_of(5, 6)) == "realloc(1000<5>, 16) = 2000<6>");
  CHECK(line(readdresser, free_of(6)) == "free(2000<6>)");
}

TEST_CASE("new trace: what was refused when recorded stays refused") {
  Readdresser readdresser = counting();
  CHECK(line(readdresser, malloc_of(1)) == "malloc(8) = 1000<1>");
  CHECK(line(readdresser, {.kind = Kind::malloc, .size = 99}) == "malloc(99) = 0");
  CHECK(line(readdresser, {.kind = Kind::realloc, .size = 99, .old_tag = 1}) == "realloc(1000<1>, 99) = 0");
  CHECK(line(readdresser, free_of(1)) == "free(1000<1>)");
}

TEST_CASE("new trace: a malloc that this allocator refused returns 0, and so its free is of 0") {
  Readdresser readdresser = counting(1);
  CHECK(line(readdresser, malloc_of(1)) == "malloc(8) = 0");
  CHECK(line(readdresser, free_of(1)) == "free(0)");
}

TEST_CASE("new trace: a realloc that this allocator refused leaves the old block for later events") {
  Readdresser readdresser = counting(2);
  CHECK(line(readdresser, malloc_of(1)) == "malloc(8) = 1000<1>");
  CHECK(line(readdresser, realloc_of(1, 2)) == "realloc(1000<1>, 16) = 0");
  CHECK(line(readdresser, free_of(2)) == "free(1000<1>)");
}

TEST_CASE("new trace: an unknown block has no address") {
  Readdresser readdresser = counting();
  CHECK(line(readdresser, free_of(7)) == "free(<7>)");
}

TEST_CASE("new trace: a mark stays") {
  Readdresser readdresser = counting();
  CHECK(line(readdresser, {.kind = Kind::mark, .label = "phase 2"}) == "mark(\"phase 2\")");
}
