// Checks the sections of a .cmt: round trips, limits and checksums.

#include "libcmt/format/sections.h"

#include <doctest/doctest.h>

#include "libcmt/format/coding.h"

using namespace cmt;
using namespace cmt::format;

TEST_CASE("sections: the checksum is that of zlib") { CHECK(crc32("123456789") == 0xcbf43926); }

TEST_CASE("sections: a block header comes back") {
  BlockHeader block;
  block.first_event = 1ull << 40;
  block.events = 1 << 20;
  block.core = {.next_tag = ~0ull, .named_tag = 7, .thread = 0xffffffff};
  block.time_ns = 99;
  block.keyframe = true;
  block.streams = {{1, 1000, 100}, {40, 1 << 28, 1 << 28}};
  const BlockHeader back = BlockHeader::take(block.put());
  CHECK(back.put() == block.put());
  CHECK(back.core.next_tag == ~0ull);
  CHECK(back.streams.size() == 2);
}

TEST_CASE("sections: an index comes back, and its first entry is counted from 0") {
  const std::vector<BlockStart> blocks{{.next_tag = 1, .offset = 22, .keyframe = true},
                                       {.first_event = 50, .next_tag = 30, .time_ns = 7, .offset = 900}};
  const std::string bytes = put_index(blocks);
  CHECK(bytes == std::string_view("\x02\x2d\x00\x01\x00\xdc\x0d\x32\x1d\x07", 10));
  CHECK(put_index(take_index(bytes)) == bytes);
}

TEST_CASE("sections: totals come back, and bytes may follow") {
  Totals totals;
  totals.events = 5;
  totals.peak_live_bytes_event = ~0ull;
  totals.truncated = true;
  totals.by_kind[24] = 3;
  CHECK(put_totals(take_totals(put_totals(totals))) == put_totals(totals));
  totals.by_kind[63] = 4;
  totals.stretches = {{.elapsed_ns = 20'000'000, .ran_ns = 7, .waited_ns = 300, .held_ns = 1, .busy_ns = 99}, {}};
  CHECK(put_totals(take_totals(put_totals(totals) + "more")) == put_totals(totals));
}

TEST_CASE("sections: stretches come back with any repairs, and a number of them above the limit is refused") {
  Totals totals;
  totals.stretches = {{.elapsed_ns = 5, .ran_ns = 4}};
  for (const auto& repairs : {Repairs{}, Repairs{.other = 3}, Repairs{.by_kind = {0, 2}, .other = 1}}) {
    totals.repairs = repairs;
    const Totals back = take_totals(put_totals(totals));
    CHECK(back.stretches == totals.stretches);
    CHECK(back.repairs.total() == repairs.total());
  }
  totals = Totals();
  CHECK_THROWS_AS(take_totals(put_totals(totals) + "RUNS\xff\xff\xff\x7f"), WireError);
}

TEST_CASE("sections: the tail is 32 bytes, and known by its start") {
  const std::string tail = put_tail(5, 6);
  CHECK(tail.size() == 32);
  CHECK(is_tail(tail));
  CHECK(!is_tail(tail.substr(1)));
  CHECK(!is_tail(put_section(SectionType::index, std::string(16, ' '))));
  const Tail back = take_tail(take_section_header(tail, take_section_start(tail)));
  CHECK(back.index_offset == 5);
  CHECK(back.totals_offset == 6);
}

TEST_CASE("sections: a flipped bit of a section's start or header is a wrong checksum, with its offset") {
  std::string section = put_section(SectionType::index, "header");
  section[14] ^= 1;
  try {
    take_section_header(section, take_section_start(section));
    FAIL("no error");
  } catch (const WireError& error) {
    CHECK(error.offset() == 18);
    CHECK(std::string(error.what()) == "the checksum of a section is wrong");
  }
}

TEST_CASE("kinds: one without a name has its number, whatever is named in between") {
  const std::string_view later = cmt::name(static_cast<cmt::Kind>(cmt::kind_limit - 1));
  const std::string last = "kind_" + std::to_string(cmt::kind_limit - 1);
  CHECK(cmt::name(static_cast<cmt::Kind>(40)) == "kind_40");
  CHECK(later == last);
}
