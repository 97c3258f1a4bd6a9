// Checks the core stream: round trips, unknown kinds, the sizes of common patterns, and damaged streams.

#include "libcmt/format/core.h"

#include <doctest/doctest.h>

#include "tests/format-spec/trace_fixture.h"

using namespace cmt;
using namespace cmt::format;
using fixture::Addresses;

namespace {

std::vector<std::string> decoded(std::string_view bytes, CoreState start, std::size_t count,
                                 std::span<const std::string> pools = {}) {
  CoreDecoder decoder(bytes, start, static_cast<std::uint32_t>(count), pools);
  std::vector<std::string> lines;
  std::array<Event, 7> batch;
  for (std::size_t n; (n = decoder.next(batch)) != 0;) {
    for (std::size_t i = 0; i < n; ++i) lines.push_back(to_line(batch[i]));
  }
  return lines;
}

std::string error_of(std::string_view bytes, std::uint32_t events) {
  try {
    decoded(bytes, {}, events);
    return "";
  } catch (const WireError& error) {
    return error.what();
  }
}

std::vector<Event> without_columns(std::vector<Event> events) {
  for (Event& event : events) {
    event.address = event.old_address = 0;
    event.time_ns = event.usable = unknown;
  }
  return events;
}

}  // namespace

TEST_CASE("core: random events of all kinds come back, block after block") {
  const auto events = without_columns(fixture::random_events(3, Addresses::none, 20000));
  CoreEncoder encoder({.next_tag = fixture::RandomTrace::first_tag});
  for (std::size_t begin = 0; begin < events.size();) {
    const CoreState start = encoder.state();
    encoder.reset(start);
    std::size_t end = begin;
    while (end < events.size() && end - begin < 3000 && !encoder.full()) encoder.add(events[end++]);
    const auto part = std::span(events).subspan(begin, end - begin);
    CHECK(encoder.events() == part.size());
    CHECK(decoded(encoder.finish(), start, part.size(), encoder.pools()) == fixture::lines(part));
    begin = end;
  }
}

TEST_CASE("core: a malloc, a realloc and a free are the bytes of cmt.md") {
  CoreEncoder encoder({.next_tag = 6655});
  encoder.add({.kind = Kind::malloc, .size = 8, .tag = 6655});
  encoder.add({.kind = Kind::realloc, .size = 16, .tag = 6656, .old_tag = 6655});
  encoder.add({.kind = Kind::free, .old_tag = 6656});
  CHECK(encoder.finish() == std::string_view("\x03\x00\x02\x03\x02\x01\x01\x21\x07\x10\x02", 11));
}

TEST_CASE("core: the end of an unknown block may have the tag of the next allocation") {
  const std::vector<Event> events{{.kind = Kind::free, .old_tag = 9},
                                  {.kind = Kind::operator_delete, .old_tag = 9},
                                  {.kind = Kind::free, .old_tag = 10},
                                  {.kind = Kind::malloc, .size = 8, .tag = 20}};
  const CoreState start{.next_tag = 9};
  CoreEncoder encoder(start);
  for (const Event& event : events) encoder.add(event);
  CHECK(decoded(encoder.finish(), start, events.size()) == fixture::lines(events));
}

TEST_CASE("core: a run of pages like the one before is one number, and leaves the tag given last") {
  const Event run{.kind = Kind::touch, .size = 0, .count = 1, .alignment = 4096, .old_tag = 1};
  std::vector<Event> events{{.kind = Kind::malloc, .size = 1 << 20, .tag = 1}, run};
  for (std::uint64_t page = 1; page < 6; ++page) {
    events.push_back(run);
    events.back().size = page * 4096;
  }
  CoreEncoder encoder;
  for (const Event& event : events) encoder.add(event);
  const std::string first = encoder.finish();
  encoder.add(events.back());  // the same page once more: not the next
  events.push_back(events.back());
  CHECK(encoder.finish().size() > first.size() + 5);
  CHECK(encoder.state().named_tag == 1);
  events.push_back({.kind = Kind::malloc, .size = 8, .tag = 2});
  events.push_back({.kind = Kind::free, .old_tag = 2});
  events.push_back(run);
  events.back().size = 6 * 4096;
  for (std::size_t i = events.size() - 3; i < events.size(); ++i) encoder.add(events[i]);
  CHECK(encoder.state().named_tag == 2);
  CHECK(decoded(encoder.finish(), {}, events.size()) == fixture::lines(events));
}

TEST_CASE("core: a pool's event is one number, and a block that has an event of a pool states it") {
  std::vector<Event> events;
  for (std::uint64_t i = 1; i <= 100; ++i) {
    events.push_back({.kind = Kind::pool_malloc, .size = 24, .label = "python", .pool_block = 1000 + i});
    if (i % 2 == 0) events.push_back({.kind = Kind::pool_free, .label = "python", .pool_block = 1000 + i - 1});
  }
  CoreEncoder encoder;
  for (const Event& event : events) encoder.add(event);
  const std::string bytes = encoder.finish();
  CHECK(encoder.pools() == std::vector<std::string>{"python"});
  CHECK(bytes.size() < events.size() + 24);  // with the table of forms, and the first number
  CHECK(decoded(bytes, {}, events.size(), encoder.pools()) == fixture::lines(events));
  CHECK(encoder.state() == CoreState{});
  CHECK_THROWS_AS(decoded(bytes, {}, events.size()), WireError);  // without the names of pools
}

TEST_CASE("core: numbers of 64 bits are kept") {
  const std::uint64_t most = ~std::uint64_t{0};
  const Event events[] = {{.kind = Kind::sample, .size = most},
                          {.kind = Kind::calloc, .size = most, .count = most},
                          {.kind = Kind::malloc, .size = most, .tag = most - 1},
                          {.kind = Kind::free_aligned_sized, .size = most, .alignment = most, .old_tag = most - 1}};
  CoreEncoder encoder;
  for (const Event& event : events) encoder.add(event);
  CHECK(decoded(encoder.finish(), {}, 4) == fixture::lines(events));
}

namespace {

constexpr auto all_traits_but_names = 255u - cmt_names;

/// A core stream of three events: a malloc of 8 bytes, an event of kind 40 with these traits and further operands, and
/// a free of tag 1. The first operand of the unknown event is `first`, the others are `rest`.
std::string with_unknown_kind(unsigned traits, unsigned further, std::uint64_t first, std::string_view rest) {
  std::string bytes;
  // Three forms: malloc (2 bits), kind 40 (2 bits), free by distance (1 bit). Codes reversed: 01, 11 and 0.
  for (const unsigned value : {3u, 0u, 2u, 8u + 512u, traits, further, 2u, 1u, 1u}) put_varint(bytes, value);
  put_varint(bytes, 8 << 2 | 1);
  put_varint(bytes, first << 2 | 3);
  bytes += rest;
  return bytes;
}

/// The same; the free is of the block `distance` tags before the next.
std::vector<std::string> read_with_unknown_kind(unsigned traits, unsigned further, std::uint64_t first,
                                                std::string_view rest, unsigned distance) {
  std::string bytes = with_unknown_kind(traits, further, first, rest);
  put_varint(bytes, distance << 1);
  return decoded(bytes, {}, 3);
}

}  // namespace

TEST_CASE("core: an event of an unknown kind does what its description says to blocks and tags") {
  using Lines = std::vector<std::string>;
  // Nothing, with two operands and a label; or naming block 1, which lives on.
  CHECK(read_with_unknown_kind(cmt_labels, 2, 7, "\x81\x01\x05label", 1) ==
        Lines{"malloc(8) = <1>", "unknown_kind()", "free(<1>)"});
  CHECK(read_with_unknown_kind(cmt_names | cmt_sizes, 0, 1, "\x20", 1) ==
        Lines{"malloc(8) = <1>", "unknown_kind()", "free(<1>)"});
  // It makes block 2, of 3 times 4 bytes, or aligned to 4.
  CHECK(read_with_unknown_kind(cmt_allocates | cmt_sizes, 1, 12, "\x05", 2) ==
        Lines{"malloc(8) = <1>", "malloc(12) = <2>", "free(<1>)"});
  CHECK(read_with_unknown_kind(cmt_allocates | cmt_sizes | cmt_counts, 0, 4, "\x03", 1) ==
        Lines{"malloc(8) = <1>", "calloc(3, 4) = <2>", "free(<2>)"});
  CHECK(read_with_unknown_kind(cmt_allocates | cmt_sizes | cmt_aligns, 0, 12, "\x04", 1) ==
        Lines{"malloc(8) = <1>", "aligned_alloc(4, 12) = <2>", "free(<2>)"});
  // It makes block 2 and names block 1, which lives on.
  CHECK(read_with_unknown_kind(cmt_allocates | cmt_names | cmt_sizes, 0, 1, "\x0c", 2) ==
        Lines{"malloc(8) = <1>", "malloc(12) = <2>", "free(<1>)"});
  // It ends block 1, or makes block 2 of it.
  CHECK(read_with_unknown_kind(cmt_releases | cmt_sizes, 0, 1, "\x08", 0) ==
        Lines{"malloc(8) = <1>", "free(<1>)", "free(0)"});
  CHECK(read_with_unknown_kind(cmt_allocates | cmt_releases | cmt_sizes, 0, 1, "\x0c", 1) ==
        Lines{"malloc(8) = <1>", "realloc(<1>, 12) = <2>", "free(<2>)"});
}

TEST_CASE("core: unknown kinds are counted, and a block that one names is the one named last") {
  std::string bytes = with_unknown_kind(cmt_names, 0, 1, "");
  bytes += "\x02";
  CoreDecoder decoder(bytes, {}, 3);
  std::array<Event, 3> events;
  CHECK(decoder.next(std::span(events).first(2)) == 2);
  CHECK(decoder.unknown_kinds() == 1);
  CHECK(decoder.state().named_tag == 1);
  CHECK(decoder.state().next_tag == 2);
  CHECK(events[1].kind == Kind::unknown_kind);
  CHECK(events[1].old_tag == 0);
  CHECK(!events[1].ends_block());
}

TEST_CASE("core: an event of an unknown kind that is cut off anywhere is reported") {
  std::string bytes = with_unknown_kind(all_traits_but_names, 16, 1, std::string(19, '\x01') + "\x05label");
  CHECK(decoded(bytes, {}, 2).size() == 2);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    CAPTURE(length);
    const std::string error = error_of(bytes.substr(0, length), 2);
    CHECK((error == "a number is cut off" || error == "cut off"));
  }
  CHECK(error_of(with_unknown_kind(cmt_labels, 0, 4097, std::string(4097, 'x')), 2) == "a label above its limit");
  CHECK(error_of(with_unknown_kind(0, 0, 1, ""), 2) == "a code that no form has");
}

TEST_CASE("core: what is wrong in it is reported") {
  const std::string malloc_table("\x01\x00\x01", 3);
  CHECK(error_of(malloc_table + "\x02", 1) == "");
  CHECK(error_of(malloc_table + "\x01", 1) == "a code that no form has");
  CHECK(error_of(malloc_table + "\x02\x02", 1) == "bytes after the last event");
  CHECK(error_of(malloc_table, 1) == "a number is cut off");
  CHECK(error_of("\x01\x17\x01\x0a"
                 "four",
                 1) == "cut off");
  CHECK(error_of("\x01\x17\x01\x82\x40", 1) == "a label above its limit");
  CHECK(error_of("\x01\x19\x01\x80\x80\x80\x80\x20", 1) == "a thread above its limit");
  CHECK(error_of("\x01\x80\x01\x01\x02\x07", 1) == "a code that no form has");
  CHECK(error_of("\x01\x14\x01\x02", 1) == "a code that no form has");
}
