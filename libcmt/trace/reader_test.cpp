// The Reader: it enters a trace in the middle, reads with several threads, and names the places of events.

#include <doctest/doctest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <random>

#include "cmt/reader.h"
#include "libcmt/format/sections.h"
#include "libcmt/format/zstd.h"
#include "libcmt/trace/source.h"
#include "tests/format-spec/trace_fixture.h"

using namespace cmt;
using namespace cmt::fixture;

namespace {

/// A .cmt with blocks of 10 events, and keyframes by the writer's own rule.
struct Trace {
  std::vector<Event> events = random_events(11, Addresses::reused, 1005);
  std::string bytes = written(events, in_blocks_of(10));
};

/// Few live blocks at random addresses: a keyframe is cheap, and due every 16 blocks.
std::vector<Event> churn(std::size_t count) {
  std::vector<Event> events;
  std::mt19937_64 random(13);
  std::vector<std::uint64_t> addresses(1);
  for (Tag tag = 1; events.size() < count; ++tag) {
    addresses.push_back(random() >> 20 | 1);
    events.push_back({.kind = Kind::malloc, .size = tag % 50, .tag = tag, .address = addresses[tag]});
    if (tag > 3) events.push_back({.kind = Kind::free, .old_tag = tag - 3, .old_address = addresses[tag - 3]});
  }
  return events;
}

std::vector<std::string> rest_of(Reader& reader) {
  std::vector<std::string> rest;
  for (auto events = reader.read(); !events.empty(); events = reader.read()) {
    for (const Event& event : events) rest.push_back(to_line(event));
  }
  return rest;
}

std::vector<std::string> from(const std::vector<Event>& events, std::size_t first) {
  return lines(std::span(events).subspan(first));
}

/// A file with a name, which the destructor removes.
class NamedFile {
 public:
  explicit NamedFile(std::string_view bytes) : path_("reader_test." + std::to_string(getpid())) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~NamedFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

TEST_CASE("reader: a .cmt is entered at any event, forwards and backwards, addresses included") {
  const Trace trace;
  Reader reader(file_of(trace.bytes), "app");
  for (const std::size_t event : {500u, 0u, 9u, 10u, 1004u, 333u}) {
    CAPTURE(event);
    reader.seek(event);
    CHECK(rest_of(reader) == from(trace.events, event));
  }
  reader.seek(1005);
  CHECK(reader.read().empty());
  reader.seek(77);
  reader.read();
  CHECK(reader.first_event() == 77);
}

TEST_CASE("reader: without addresses only the event's own block is read") {
  Trace trace;
  ReadOptions options;
  options.addresses = false;
  Reader blocks(file_of(trace.bytes), "app");
  REQUIRE(blocks.blocks().size() == 101);
  trace.bytes[blocks.blocks()[50].offset + 30] ^= 1;  // so that all blocks from the 50th on would be refused
  Reader reader(file_of(trace.bytes), "app", options);
  reader.seek(605);
  CHECK(to_line(reader.read()[0]).substr(0, 4) == to_line(trace.events[605]).substr(0, 4));
  reader.seek(505);
  CHECK_THROWS_AS(reader.read(), FormatError);
}

TEST_CASE("reader: keyframes let addresses begin in the middle") {
  const auto events = churn(20000);
  const std::string bytes = written(events, in_blocks_of(100));
  Reader reader(file_of(bytes), "app");
  std::uint64_t keyframe = 0;
  for (const BlockStart& block : reader.blocks()) {
    if (block.keyframe) keyframe = block.first_event;
  }
  REQUIRE(keyframe > 1000);
  reader.seek(keyframe + 5);
  CHECK(rest_of(reader) == from(events, keyframe + 5));
  CHECK(reader.bytes_read() > 0);
}

TEST_CASE("reader: what cannot seek is read forwards, and refuses to go back") {
  const auto events = random_events(11, Addresses::none, 1005);
  WriteOptions options;
  options.format = Format::text;
  Reader reader(file_of(written(events, options)), "app");
  CHECK(reader.blocks().empty());
  reader.seek(700);
  CHECK(to_line(reader.read()[0]) == to_line(events[700]));
  CHECK_THROWS_WITH_AS(reader.seek(0), "app: cannot be read backwards: only a whole .cmt can, from a file",
                       FormatError);
}

TEST_CASE("reader: an index that lies is an error of the format, wherever it is used") {
  const Trace trace;
  const std::size_t tail_offset = trace.bytes.size() - format::tail_size;
  const format::Tail tail = format::take_tail(std::string_view(trace.bytes).substr(tail_offset + 12, 16));
  const std::string_view index_section = std::string_view(trace.bytes).substr(tail.index_offset);
  const auto entries =
      format::take_index(format::take_section_header(index_section, format::take_section_start(index_section)));
  REQUIRE(entries.size() > 60);
  const auto with_index = [&](const std::vector<BlockStart>& index) {
    const std::string section = format::put_section(format::SectionType::index, format::put_index(index));
    const std::string totals = trace.bytes.substr(tail.totals_offset, tail_offset - tail.totals_offset);
    return trace.bytes.substr(0, tail.index_offset) + section + totals +
           format::put_tail(tail.index_offset, tail.index_offset + section.size());
  };
  const auto check = [&](const auto& change) {
    auto index = entries;
    change(index);
    const NamedFile file(with_index(index));
    const auto seek = [&] {
      Reader reader(file.path(), {.addresses = false});
      for (std::size_t event = 0; event < trace.events.size(); event += 5) {
        reader.seek(event);
        if (reader.read()[0].size != trace.events[event].size) throw std::logic_error("another event");
      }
    };
    CHECK_THROWS_AS(seek(), FormatError);
    const auto visit = [](std::size_t, std::span<const Event>) {};
    CHECK_THROWS_AS(for_each_part(file.path(), {.addresses = false}, 3, visit), FormatError);
  };
  check([](auto& index) { index[30].offset += 1; });
  check([](auto& index) { index[30].offset = std::uint64_t{1} << 62; });
  check([](auto& index) { index.back().offset += 1 << 20; });
  check([](auto& index) { index[30].first_event += 1; });
  check([](auto& index) { index[30].next_tag += 1; });
  check([](auto& index) { index[30].time_ns += 1; });
  check([](auto& index) { std::swap(index[30], index[31]); });
  check([](auto& index) { std::swap(index[30].offset, index[31].offset); });
  check([](auto& index) { index.front().first_event = 1; });
  check([](auto& index) { index.push_back(index.back()); });
  check([](auto& index) {
    for (BlockStart& block : index) block.keyframe = true;
  });
}

TEST_CASE("reader: several threads hand out the same, errors included") {
  const Trace trace;
  ReadOptions options;
  options.threads = 4;
  CHECK(read_all(trace.bytes, options).lines == lines(trace.events));
  std::string damaged = trace.bytes;
  damaged[damaged.size() / 2] ^= 1;
  const WhatWasRead one = read_all(damaged), several = read_all(damaged, options);
  CHECK(one.error == several.error);
  CHECK(one.lines == several.lines);
  const std::string cut = trace.bytes.substr(0, trace.bytes.size() / 2);
  CHECK(read_all(cut, options).lines == read_all(cut).lines);
  CHECK(read_all(cut, options).truncated);
}

TEST_CASE("reader: an event's place is its line, or its number") {
  const std::string text = "# a comment\nmalloc(8) = 10<1>\n\nfree(10<1>)\nmark(\"x\")\n";
  Reader lines(file_of(text), "app");
  REQUIRE(lines.read().size() == 3);
  CHECK(lines.place(0) == "app:2");
  CHECK(lines.place(1) == "app:4");
  CHECK(lines.place(2) == "app:5");
  const Trace trace;
  Reader numbers(file_of(trace.bytes), "app");
  numbers.seek(15);
  numbers.read();
  CHECK(numbers.place(1) == "app: event 17");
}

TEST_CASE("reader: parts are visited on several threads, each whole and in order") {
  const auto events = churn(20000);
  const NamedFile file(written(events, in_blocks_of(100)));
  for (const bool addresses : {false, true}) {
    ReadOptions options;
    options.addresses = addresses;
    std::vector<std::vector<std::string>> parts(202);
    const std::size_t count = for_each_part(file.path(), options, 4, [&](std::size_t part, auto batch) {
      for (const Event& event : batch) parts[part].push_back(to_line(event));
    });
    CHECK((addresses ? count > 5 && count < 20 : count >= 200));
    std::vector<std::string> all;
    for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
    CHECK(all.size() == events.size());
    if (addresses) CHECK(all == lines(events));
  }
}

TEST_CASE("reader: what is thrown while parts are visited is thrown on") {
  const Trace trace;
  const NamedFile file(trace.bytes);
  const auto visit = [](std::size_t, auto) { throw std::logic_error("enough"); };
  CHECK_THROWS_AS(for_each_part(file.path(), {}, 4, visit), std::logic_error);
}

TEST_CASE("reader: read in two steps, a core stream that cannot be opened is an error, and leaves no block open") {
  const std::string table("\1\0\0", 3);  // a form with a code of no bits
  const std::string frame(format::Compressor(3).compress(table));
  format::BlockHeader header;
  header.events = 10;
  header.streams = {{static_cast<std::uint64_t>(format::StreamId::core), table.size(), frame.size()}};
  const std::string block =
      format::put_section(format::SectionType::block, header.put(), static_cast<std::uint32_t>(frame.size())) + frame;
  Reader reader(file_of(format::put_file_header({}) + block), "app");
  ReadStep step;
  std::vector<Event> events(300);
  CHECK_THROWS_AS(reader.impl().read_core(step, events), FormatError);
  reader.impl().read_core(step, events);
  CHECK(step.block == nullptr);
  CHECK(step.count == 0);
}

TEST_CASE("reader: read in two steps, the second one batch behind, the events are the same") {
  const auto events = random_events(17, Addresses::reused, 20'000);
  const std::string bytes = written(events, in_blocks_of(1000));
  Reader reader(file_of(bytes), "app");
  Source& source = *reader.impl().source_;
  REQUIRE(source.reads_in_steps());
  struct Batch {
    std::vector<Event> events = std::vector<Event>(300);
    ReadStep step{};
  };
  std::array<Batch, 3> batches;
  std::vector<std::string> read;
  const auto complete = [&](Batch& batch) {
    source.complete(batch.step, batch.events);
    for (std::size_t i = 0; i < batch.step.count; ++i) read.push_back(to_line(batch.events[i]));
  };
  bool more = true;
  for (std::size_t i = 0; more; ++i) {
    Batch& batch = batches[i % 3];
    reader.impl().read_core(batch.step, batch.events);
    more = batch.step.block != nullptr;
    if (i != 0) complete(batches[(i - 1) % 3]);
    if (!more) complete(batch);
  }
  CHECK(read == lines(events));
}
