#include "libcmt/format/core.h"

#include <doctest/doctest.h>

#include "libcmt/trace/trace_fixture.h"

using namespace cmt;
using namespace cmt::format;
using fixture::Addresses;

namespace {

std::vector<std::string> decoded(std::string_view bytes, CoreState start, std::size_t count) {
  CoreDecoder decoder(bytes, start, static_cast<std::uint32_t>(count));
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
    CHECK(decoded(encoder.finish(), start, part.size()) == fixture::lines(part));
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
