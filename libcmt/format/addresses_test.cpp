// Checks the address stream: round trips, the cost of common patterns, and damaged streams.

#include "libcmt/format/addresses.h"

#include <doctest/doctest.h>

#include "libcmt/trace/writer/ledger.h"
#include "tests/format-spec/trace_fixture.h"

using namespace cmt;
using namespace cmt::format;
using fixture::Addresses;

namespace {

/// The two sides, block after block of `block_events`, every `keyframe_every`-th a keyframe. Returns the addresses that
/// came back wrong, and tables of keyframes that differ from the running state.
int differences(const std::vector<Event>& events, std::size_t block_events, std::size_t keyframe_every) {
  AddressEncoder encoder;
  AddressDecoder decoder;
  Ledger ledger;
  int wrong = 0;
  for (std::size_t begin = 0; begin < events.size(); begin += block_events) {
    const bool keyframe = begin / block_events % keyframe_every == 0;
    const std::string table = put_live(by_tag(ledger.live()));
    if (keyframe) encoder.reset();
    const auto block = std::span(events).subspan(begin, std::min(block_events, events.size() - begin));
    for (const Event& event : block) {
      const Ledger::Entry entry = ledger.book(event);
      encoder.add(event, entry.old_known ? &entry.old : nullptr);
    }
    const std::string bytes = encoder.finish();
    if (keyframe) wrong += put_live(by_tag(take_live(table))) != table || put_live(by_tag(decoder.live())) != table;
    decoder.start(bytes, keyframe);
    for (const Event& event : block) {
      Event bare = event;
      bare.address = bare.old_address = 0;
      decoder.fill({&bare, 1});
      wrong += bare.address != event.address || bare.old_address != event.old_address;
    }
    wrong += !decoder.at_end();
  }
  return wrong;
}

std::string error_of(std::string_view bytes) {
  try {
    AddressDecoder decoder;
    decoder.start(bytes, true);
    Event event{.kind = Kind::malloc, .size = 8, .tag = 1};
    decoder.fill({&event, 1});
    return "";
  } catch (const WireError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("addresses: reused and random ones come back, and keyframes' tables equal the running state") {
  CHECK(differences(fixture::random_events(4, Addresses::reused, 30000), 1000, 4) == 0);
  CHECK(differences(fixture::random_events(5, Addresses::random, 30000), 1000, 4) == 0);
  CHECK(differences(fixture::random_events(6, Addresses::reused, 30000), 30000, 1) == 0);
}

TEST_CASE("addresses: a trace without them has no stream, and blocks may lack one") {
  CHECK(differences(fixture::random_events(7, Addresses::none, 3000), 100, 4) == 0);
  AddressEncoder encoder;
  encoder.add({.kind = Kind::malloc, .size = 8, .tag = 1}, nullptr);
  CHECK(encoder.finish() == "");
}

TEST_CASE("addresses: more freed blocks of a class than are remembered do no harm") {
  std::vector<Event> events;
  for (const std::uint64_t size : {8, 5000}) {
    const Tag first = events.empty() ? 1 : events.back().old_tag + 1;
    for (Tag i = 0; i < 20000; ++i) {
      events.push_back({.kind = Kind::malloc, .size = size, .tag = first + i, .address = (first + i) * 8192});
    }
    for (Tag i = 0; i < 20000; ++i) {
      events.push_back({.kind = Kind::free, .old_tag = first + i, .old_address = (first + i) * 8192});
    }
  }
  const Tag first = events.back().old_tag + 1;
  for (Tag i = 0; i < 30000; ++i) {
    events.push_back(
        {.kind = Kind::malloc, .size = i % 2 == 0 ? 8u : 5000u, .tag = first + i, .address = (40000 - i) * 8192});
  }
  CHECK(differences(events, 7000, 100) == 0);
}

TEST_CASE("addresses: what is wrong in a keyframe's table is reported") {
  const auto error = [](std::string_view table) -> std::string {
    try {
      return take_live(table), "";
    } catch (const WireError& wrong) {
      return wrong.what();
    }
  };
  CHECK(error(std::string_view("\x01\x05\x08\x20", 4)) == "");
  CHECK(error(std::string_view("\x02\x05\x08\x20\x00\x08\x20", 7)) == "a tag that does not rise");
  CHECK(error(std::string_view("\x01\x05\x08\x20\x00", 5)) == "bytes after the last block");
  CHECK(error("\x02\x05\x08\x20") == "the number of live blocks 2 is above its limit");
}

TEST_CASE("addresses: what is wrong in the stream is reported") {
  CHECK(error_of(std::string_view("\x00\x00\x01", 3)) == "");
  CHECK(error_of("\x04") == "the way to round 4 is above its limit");
  CHECK(error_of("\x01\x0d") == "the common shift 13 is above its limit");
  CHECK(error_of(std::string_view("\x00\x00\x00", 3)) == "no address was freed at that place");
  CHECK(error_of(std::string_view("\x00\x00\x82\x04", 4)) == "a place that is too deep");
  CHECK(error_of(std::string_view("\x00\x00", 2)) == "a number is cut off");
}
