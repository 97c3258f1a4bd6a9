// The bytes at the peak of which a trace does not say whether they were written.
#include "cmtreplay/plan/unknown_writes.h"

#include <doctest/doctest.h>

using cmt::Event;
using cmt::Kind;
using cmt::replay::UnknownWrites;

namespace {

/// Counts events one after the other; each allocation makes a new peak.
struct Counted {
  explicit Counted(std::uint64_t touched_min) { writes.set_touched_min(touched_min); }
  void malloc(cmt::Tag tag, std::uint64_t bytes) {
    writes.count({.kind = Kind::malloc, .size = bytes, .tag = tag});
    writes.note_peak();
  }
  void free(cmt::Tag tag) { writes.count({.kind = Kind::free, .old_tag = tag}); }
  void pages(Kind kind, cmt::Tag tag, std::uint64_t first, std::uint64_t pages) {
    writes.count({.kind = kind, .size = first * 4096, .count = pages, .alignment = 4096, .old_tag = tag});
  }

  UnknownWrites writes;
};

}  // namespace

TEST_CASE("unknown writes: whole pages of blocks below the least size are not known, but for the first") {
  Counted counted(65536);
  counted.malloc(1, 8191);
  CHECK(counted.writes.bytes_at_peak() == 0);
  counted.malloc(2, 8192);
  counted.malloc(3, 49152);
  CHECK(counted.writes.bytes_at_peak() == 4096 + 45056);
  counted.free(3);
  CHECK(counted.writes.bytes_at_peak() == 4096 + 45056);
  counted.malloc(4, 65536);
  CHECK(counted.writes.bytes_at_peak() == 4096);
}

TEST_CASE("unknown writes: pages that are reported as resident at an allocation are known, and at an end are not") {
  Counted counted(65536);
  counted.malloc(1, 81920);
  counted.pages(Kind::resident, 1, 0, 3);
  counted.malloc(2, 81920);
  counted.pages(Kind::touch, 2, 0, 1);
  CHECK(counted.writes.bytes_at_peak() == 0);
  counted.pages(Kind::resident, 2, 1, 19);
  CHECK(counted.writes.bytes_at_peak() == 19 * 4096);
  counted.malloc(3, 65536);
  counted.pages(Kind::resident, 3, 0, 4);
  CHECK(counted.writes.bytes_at_peak() == 19 * 4096);
  counted.pages(Kind::resident, 1, 0, 20);
  CHECK(counted.writes.bytes_at_peak() == 19 * 4096 + 81920);
  counted.free(2);
  counted.malloc(4, 1);
  CHECK(counted.writes.bytes_at_peak() == 81920);
}

TEST_CASE("unknown writes: without touched pages all blocks are unknown") {
  Counted counted(0);
  counted.malloc(1, 1 << 20);
  CHECK(counted.writes.bytes_at_peak() == (1 << 20) - 4096);
}
