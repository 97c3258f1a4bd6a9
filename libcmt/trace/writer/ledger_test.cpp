// The ledger: which events it refuses, and that its totals are right.

#include "libcmt/trace/writer/ledger.h"

#include <doctest/doctest.h>

#include "tests/format-spec/trace_fixture.h"

using namespace cmt;

namespace {

Event malloc_of(Tag tag, std::uint64_t size = 8) { return {.kind = Kind::malloc, .size = size, .tag = tag}; }
Event free_of(Tag tag) { return {.kind = Kind::free, .old_tag = tag}; }
Event realloc_of(Tag old_tag, Tag tag, std::uint64_t size) {
  return {.kind = Kind::realloc, .size = size, .tag = tag, .old_tag = old_tag};
}

}  // namespace

TEST_CASE("ledger: a tag that is not above all before is refused") {
  Ledger ledger;
  CHECK(ledger.book(malloc_of(5)).accepted);
  CHECK(!ledger.book(malloc_of(5)).accepted);
  CHECK(!ledger.book(malloc_of(4)).accepted);
  CHECK(ledger.book(malloc_of(9)).accepted);
  CHECK(ledger.totals().events == 2);
}

TEST_CASE("ledger: a block of this trace is ended once") {
  Ledger ledger;
  ledger.book(malloc_of(5));
  CHECK(ledger.book(free_of(5)).accepted);
  CHECK(!ledger.book(free_of(5)).accepted);
  CHECK(!ledger.book(realloc_of(5, 6, 1)).accepted);
  CHECK(!ledger.book(free_of(6)).accepted);
}

TEST_CASE("ledger: a block from before the first allocation may be given back") {
  Ledger ledger;
  CHECK(ledger.book(free_of(4)).accepted);
  CHECK(!ledger.book(malloc_of(4)).accepted);
  CHECK(ledger.book(malloc_of(5)).accepted);
  CHECK(ledger.book(free_of(3)).accepted);
}

TEST_CASE("ledger: a block is not made of itself or of a later one") {
  Ledger ledger;
  CHECK(!ledger.book(realloc_of(7, 7, 1)).accepted);
  CHECK(!ledger.book(realloc_of(8, 7, 1)).accepted);
  CHECK(ledger.book(realloc_of(6, 7, 1)).accepted);
}

TEST_CASE("ledger: a refused realloc leaves its block alive, one to 0 ends it") {
  Ledger ledger;
  ledger.book(malloc_of(1));
  CHECK(ledger.book(realloc_of(1, 0, 100)).accepted);
  CHECK(ledger.live().size() == 1);
  CHECK(ledger.totals().failed == 1);
  CHECK(ledger.book(realloc_of(1, 0, 0)).accepted);
  CHECK(ledger.live().size() == 0);
  CHECK(ledger.totals().failed == 1);
}

TEST_CASE("ledger: totals are those counted by hand") {
  Ledger ledger;
  ledger.book(malloc_of(1, 100));
  ledger.book(malloc_of(2, 50));
  ledger.book(realloc_of(1, 3, 10));
  Event other = free_of(2);
  other.thread = 7;
  ledger.book(other);
  const Totals& totals = ledger.totals();
  CHECK(totals.events == 4);
  CHECK(totals.allocations == 3);
  CHECK(totals.allocated_bytes == 160);
  CHECK(totals.peak_live_blocks == 2);
  CHECK(totals.peak_live_bytes == 150);
  CHECK(totals.peak_live_bytes_event == 2);
  CHECK(totals.end_live_blocks == 1);
  CHECK(totals.end_live_bytes == 10);
  CHECK(totals.threads == 2);
  CHECK(totals.by_kind[0] == 2);
}

TEST_CASE("ledger: each thread is counted once, whatever its number") {
  Ledger ledger;
  Tag tag = 0;
  for (int round = 0; round < 2; ++round) {
    for (const std::uint32_t thread : {0u, 63u, 64u, 1023u, 1024u, 1025u, 2048u, 0xffffffffu}) {
      Event event = malloc_of(++tag);
      event.thread = thread;
      ledger.book(event);
    }
  }
  CHECK(ledger.totals().threads == 8);
}

TEST_CASE("writer: what the ledger refuses is not written, and neither is a label that is too long") {
  const int fd = fixture::file_of("");
  Writer writer(fd, {});
  CHECK(writer.add(malloc_of(1)));
  CHECK(!writer.add(malloc_of(1)));
  CHECK(!writer.add(free_of(2)));
  CHECK(!writer.add({.kind = Kind::free, .tag = 2}));  // the block is in the wrong member
  CHECK(!writer.add({.kind = Kind::malloc, .size = 8, .tag = 2, .old_tag = 1}));
  const std::string label(4097, 'x');
  CHECK(!writer.add({.kind = Kind::mark, .label = label}));
  CHECK(writer.add({.kind = Kind::mark, .label = std::string_view(label).substr(1)}));
  writer.finish();
  const auto read = fixture::read_all(fixture::bytes_of(fd));
  CHECK(read.lines.size() == 2);
  CHECK(read.lines[0] == "malloc(8) = <1>");
}
