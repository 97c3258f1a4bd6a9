// A BookedWriter writes the same bytes as a Writer, keyframes included.

#include "libcmt/trace/writer/booked_writer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "libcmt/trace/source.h"
#include "tests/format-spec/trace_fixture.h"

using namespace cmt;

namespace {

enum class Blocks { by_address, by_tag, by_both };

/// A text with frees, reallocs, sized deletes, marks, races, and blocks whose free was lost.
std::string busy_text(Blocks named, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::pair<Tag, std::uint64_t>> live;
  std::string text = "#cmt text=1\n";
  Tag tag = 1000;
  for (int i = 0; i < 20000; ++i) {
    Event event{.thread = static_cast<std::uint32_t>(random() % 3), .time_ns = static_cast<std::uint64_t>(i) * 10};
    const unsigned choice = random() % 100;
    if (choice == 0) {
      text += "mark(\"here\")\n";
      continue;
    }
    const bool ends = live.size() > 300 || (choice < 48 && !live.empty());
    if (ends) {
      std::swap(live[random() % live.size()], live.back());
      event.kind = choice % 8 == 0 ? Kind::operator_delete : Kind::free;
      if (named != Blocks::by_address) event.old_tag = live.back().first;
      if (named != Blocks::by_tag) event.old_address = live.back().second;
      live.pop_back();
      if (choice % 16 == 1) event.kind = Kind::realloc;
    }
    if (!ends || event.kind == Kind::realloc) {
      event.size = random() % 200;
      live.emplace_back(++tag, 0x7f0000000000 + 256 * (random() % 4096));
      if (named != Blocks::by_address) event.tag = tag;
      if (named != Blocks::by_tag) event.address = live.back().second;
    }
    text += to_line(event) + "\n";
  }
  return text + "#cmt end=complete\n";
}

WriteOptions in_small_blocks(unsigned threads) {
  WriteOptions options;
  options.block_events = 64;
  options.threads = threads;
  return options;
}

std::string written_by_writer(const std::string& text) {
  const int fd = fixture::file_of("");
  Reader reader(fixture::file_of(text), "app");
  Writer writer(fd, reader.header(), in_small_blocks(1));
  for (auto events = reader.read(); !events.empty(); events = reader.read()) {
    for (const Event& event : events) CHECK(writer.add(event));
  }
  writer.finish(reader.repairs(), reader.truncated());
  return fixture::bytes_of(fd);
}

std::string written_by_booked_writer(const std::string& text, unsigned threads) {
  const int fd = fixture::file_of("");
  Reader reader(fixture::file_of(text), "app", {.threads = threads});
  const Source& source = *reader.impl().source_;
  REQUIRE(source.knows_blocks());
  BookedWriter writer(fd, reader.header(), in_small_blocks(threads), source);
  for (auto events = reader.read(); !events.empty(); events = reader.read()) writer.add(events);
  writer.finish(reader.repairs(), reader.truncated());
  return fixture::bytes_of(fd);
}

}  // namespace

TEST_CASE("booked writer: it writes what a Writer writes, keyframes included") {
  for (const Blocks named : {Blocks::by_address, Blocks::by_tag, Blocks::by_both}) {
    CAPTURE(static_cast<int>(named));
    const std::string text = busy_text(named, 1 + static_cast<unsigned>(named));
    const std::string expected = written_by_writer(text);
    if (named != Blocks::by_tag) {
      Reader reader(fixture::file_of(expected), "app");
      CHECK(std::count_if(reader.blocks().begin(), reader.blocks().end(), [](auto& each) { return each.keyframe; }) >
            2);
    }
    for (const unsigned threads : {1u, 2u, 5u}) CHECK(written_by_booked_writer(text, threads) == expected);
  }
}
