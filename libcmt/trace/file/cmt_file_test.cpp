// A .cmt as a whole: round trips, and damage.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <random>

#include "libcmt/format/coding.h"
#include "libcmt/format/sections.h"
#include "tests/format-spec/trace_fixture.h"
#include "tests/sampled_places.h"

using namespace cmt;
using namespace cmt::fixture;

namespace {

Header metadata() {
  Header header;
  header.has_header = true;
  header.metadata = {{"program", "app"}, {"command", "app -x \"y\""}};
  return header;
}

/// Whether `some` is a prefix of `all`.
bool are_first_of(const std::vector<std::string>& some, const std::vector<std::string>& all) {
  return some.size() <= all.size() && std::equal(some.begin(), some.end(), all.begin());
}

/// A small file of several blocks of the stream, with all streams.
struct SmallFile {
  std::vector<Event> events = random_events(7, Addresses::reused, 40);
  std::vector<std::string> lines = fixture::lines(events);
  std::string bytes = written(events, in_blocks_of(10), metadata());
};

}  // namespace

TEST_CASE("cmt file: random events come back, whatever their addresses and the size of blocks") {
  for (const Addresses addresses : {Addresses::none, Addresses::reused, Addresses::random}) {
    for (const std::uint32_t block_events : {1u, 7u, 100u, 262144u}) {
      CAPTURE(block_events);
      const auto events = random_events(block_events, addresses, 3000);
      const WhatWasRead read = read_all(written(events, in_blocks_of(block_events)));
      CHECK(read.error == "");
      CHECK(!read.truncated);
      CHECK(read.lines == lines(events));
    }
  }
}

TEST_CASE("cmt file: with a second thread the writer makes the same bytes") {
  for (const std::uint32_t block_events : {1u, 7u, 100u, 262144u}) {
    const auto events = random_events(block_events, Addresses::random, 3000);
    WriteOptions options = in_blocks_of(block_events);
    const std::string one = written(events, options);
    options.threads = 2;
    CHECK(written(events, options) == one);
  }
}

TEST_CASE("cmt file: what the second thread cannot write is thrown") {
  const int full = open("/dev/full", O_WRONLY);
  WriteOptions options = in_blocks_of(10);
  options.threads = 2;
  Writer writer(full, {}, options);
  const auto events = random_events(3, Addresses::reused, 30);
  CHECK_THROWS_AS((std::for_each(events.begin(), events.end(), [&](const Event& event) { writer.add(event); })),
                  std::system_error);
  close(full);
}

TEST_CASE("cmt file: among the events before the first allocation no keyframe begins") {
  std::mt19937 random(3);
  std::vector<std::string> labels(200, std::string(100, ' '));
  std::vector<Event> events;
  for (std::string& label : labels) {
    for (char& each : label) each = static_cast<char>('a' + random() % 26);
    events.push_back({.kind = Kind::mark, .label = label});
  }
  events.push_back({.size = 8, .tag = 1});
  Reader reader(file_of(written(events, in_blocks_of(10))), "trace");
  REQUIRE(reader.blocks().size() == 21);
  CHECK(std::count_if(reader.blocks().begin(), reader.blocks().end(), [](auto& each) { return each.keyframe; }) == 1);
}

TEST_CASE("cmt file: an empty trace is read as one") {
  const WhatWasRead read = read_all(written({}, {}));
  CHECK(read.error == "");
  CHECK(!read.truncated);
  CHECK(read.lines.empty());
}

TEST_CASE("cmt file: metadata and totals come back, before the first event") {
  const SmallFile file;
  Reader reader(file_of(file.bytes), "app");
  CHECK(reader.header().metadata == metadata().metadata);
  CHECK(reader.header().has_header);
  REQUIRE(reader.totals().has_value());
  CHECK(reader.totals()->events == file.events.size());
}

TEST_CASE("cmt file: streams that are not wanted are left out, and the rest is the same") {
  const SmallFile file;
  ReadOptions options;
  options.addresses = options.times = options.usable = false;
  std::vector<Event> bare = file.events;
  for (Event& event : bare) {
    event.address = event.old_address = 0;
    event.time_ns = event.usable = unknown;
  }
  CHECK(read_all(file.bytes, options).lines == lines(bare));
}

TEST_CASE("cmt file: cut at every length it yields whole blocks and says so, or is refused") {
  const SmallFile file;
  for (std::size_t length = 1; length < file.bytes.size(); length += cmt::fixture::place_step) {
    CAPTURE(length);
    const WhatWasRead read = read_all(std::string_view(file.bytes).substr(0, length));
    REQUIRE((read.truncated || !read.error.empty() || read.defects != 0));
    REQUIRE(read.lines.size() % 10 == 0);
    REQUIRE(are_first_of(read.lines, file.lines));
    if (length >= 200) REQUIRE(read.error == "");
  }
}

TEST_CASE("cmt file: one flipped bit anywhere is noticed, or changes nothing") {
  const SmallFile file;
  std::string bytes = file.bytes;
  for (std::size_t bit = 0; bit < bytes.size() * 8; bit += cmt::fixture::place_step) {
    CAPTURE(bit);
    const char mask = static_cast<char>(1 << bit % 8);
    bytes[bit / 8] ^= mask;
    const WhatWasRead read = read_all(bytes);
    REQUIRE(are_first_of(read.lines, file.lines));
    const bool noticed = read.truncated || !read.error.empty() || read.defects != 0;
    if (!noticed) REQUIRE(read.lines.size() == file.lines.size());
    bytes[bit / 8] ^= mask;
  }
}

TEST_CASE("cmt file: lengths that lie cost no memory") {
  const std::string header = format::put_file_header({});
  format::BlockHeader block;
  block.events = 1 << 20;
  block.streams = {{1, 1 << 28, 8}};
  const std::string frame(8, '\0');
  const std::string lies[] = {
      header + format::put_section(format::SectionType::block, block.put(), 8) + frame,
      header + format::put_section(format::SectionType::block, block.put(), 1 << 28) + frame,
      header + format::put_section(format::SectionType::block, "", 0xffffffff),
      header + format::put_section(format::SectionType::index, "\xff\xff\xff\x07", 0),
      header + format::put_tail(0xffffffffffffffff, 0xfffffffffffffff0),
      header + format::put_tail(0, 0),
      header + format::put_section(format::SectionType::totals, "", 1 << 28) + format::put_tail(0, header.size()),
      header.substr(0, 12) + std::string("\0\0\0\x08", 4),
  };
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  for (const std::string& bytes : lies) {
    const WhatWasRead read = read_all(bytes);
    CHECK(read.lines.empty());
    CHECK((read.truncated || !read.error.empty()));
  }
  rusage after{};
  getrusage(RUSAGE_SELF, &after);
  CHECK(after.ru_maxrss - before.ru_maxrss < 64 * 1024);
}

TEST_CASE("cmt file: a tail that names something else as totals is refused") {
  const std::string header = format::put_file_header({});
  const std::string index = format::put_section(format::SectionType::index, std::string(1, '\0'));
  const auto error = [&](std::string_view middle, std::uint64_t totals) {
    return read_all(header + std::string(middle) + format::put_tail(0, totals)).error;
  };
  CHECK(error(index, header.size()) == "app: offset 0x16: no totals where the tail says");
  CHECK(error("", 10000) == "app: offset 0x16: the totals are after the tail");
  const std::string long_totals = format::put_section(format::SectionType::totals, "", 100);
  CHECK(error(long_totals, header.size()) == "app: offset 0x16: the totals reach beyond the tail");
}

TEST_CASE("cmt file: what breaks off is an error to a strict reader") {
  const SmallFile file;
  ReadOptions options;
  options.strict = true;
  CHECK(read_all(file.bytes.substr(0, file.bytes.size() - 32), options)
            .error.ends_with(": the end of the trace is missing"));
  CHECK(read_all(file.bytes.substr(0, file.bytes.size() - 1), options).error.ends_with(": a section is cut off"));
}

TEST_CASE("text file: cut at every length it yields the lines before, and says so") {
  const auto events = random_events(8, Addresses::none, 12);
  WriteOptions options;
  options.format = Format::text;
  const std::string bytes = written(events, options, metadata());
  for (std::size_t length = 13; length + 1 < bytes.size(); length += cmt::fixture::place_step) {
    CAPTURE(length);
    const WhatWasRead read = read_all(std::string_view(bytes).substr(0, length));
    REQUIRE((read.truncated || !read.error.empty()));
    REQUIRE(are_first_of(read.lines, lines(events)));
  }
  CHECK(!read_all(bytes).truncated);
  CHECK(read_all(bytes).lines == lines(events));
}
