// Checks files of kept events against the full recording: live blocks, stacks, touched pages, bounds and full disks.

#include "preload/collector/flight/flight_sink.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "cmt/text.h"
#include "libcmt/trace/writer/ledger.h"
#include "preload/collector/flight/full_disk_fixture.h"
#include "preload/collector/flight/live_at_begin.h"
#include "tests/format-spec/trace_fixture.h"

using namespace cmt;
using namespace cmt::collector;
using namespace cmt::fixture;

namespace {

/// A recording of random events, of which the last ones are kept.
struct Recording {
  explicit Recording(FlightLimits limits, unsigned seed = 7)
      : random(seed), sink(output, header(), ledger, "/tmp", limits) {
    const ModuleId python = stacks.add_module({.path = std::string(python_module_path)});
    for (FrameId frame = 1; frame <= 50; ++frame) {
      const bool is_line = frame % 2 == 0;
      stacks.add_frame({.module = is_line ? python : 0, .address = 0x1000 * frame});
      const FrameName name{.function = "f", .file = "a.py", .line = frame};
      if (is_line) stacks.set_names(frame, {&name, 1});
      stacks.add_node({frame / 3, frame});
    }
  }

  static Header header() {
    Header header;
    header.has_header = true;
    header.metadata = {{"program", "app"}};
    return header;
  }

  void add(Event event) {
    if (has_stacks && traits(event.kind).allocates) event.stack = static_cast<StackId>(random() % 51);
    if (has_stacks && event.kind == Kind::free) event.stack = static_cast<StackId>(random() % 51);
    const Ledger::Entry entry = ledger.book(event);
    REQUIRE(entry.accepted);
    sink.add_event({event, entry.old});
    all.push_back(event);
    if (all.size() % 100 == 0) sink.note_clock(all.size() * event_ns, repairs);
  }

  void use_stacks() {
    has_stacks = true;
    sink.use_stacks(stacks);
  }

  /// A file of what is kept now.
  std::string write(FlightSpan& span) {
    const int fd = file_of("");
    Output file(fd);
    span = sink.write(file, {}, false);
    CHECK(file.offset() == span.bytes);
    return bytes_of(fd);
  }

  static constexpr std::uint64_t event_ns = 1'000'000;

  std::mt19937 random;
  Repairs repairs;
  bool has_stacks = false;
  StackTable stacks;
  Ledger ledger;
  Output output{-1};
  FlightSink sink;
  std::vector<Event> all;
};

/// The frames of a stack, innermost first.
std::string frames_of(const StackTable& stacks, StackId stack) {
  std::string text;
  for (; stack != 0; stack = stacks.node(stack).parent) {
    const FrameId frame = stacks.node(stack).frame;
    text += " " + std::to_string(stacks.frame(frame).address);
    for (const FrameName& name : stacks.names(frame)) text += ":" + std::to_string(name.line);
  }
  return text;
}

std::string line_of(Event event, const StackTable& stacks) {
  const std::string frames = frames_of(stacks, event.stack);
  event.stack = 0;
  return to_line(event) + frames;
}

/// The events of a file, and its totals checked against them.
std::vector<std::string> lines_of(const std::string& bytes) {
  ReadOptions options;
  options.strict = options.stacks = true;
  Reader reader(file_of(bytes), "kept.cmt", options);
  Ledger ledger;
  std::vector<std::string> read;
  for (auto events = reader.read(); !events.empty(); events = reader.read()) {
    for (const Event& event : events) {
      CHECK(ledger.book(event).accepted);
      read.push_back(line_of(event, reader.stacks()));
    }
  }
  REQUIRE(reader.totals());
  const Totals& stated = *reader.totals();
  CHECK(stated.events == ledger.totals().events);
  CHECK(stated.allocations == ledger.totals().allocations);
  CHECK(stated.allocated_bytes == ledger.totals().allocated_bytes);
  CHECK(stated.peak_live_bytes == ledger.totals().peak_live_bytes);
  CHECK(stated.peak_live_bytes_event == ledger.totals().peak_live_bytes_event);
  CHECK(stated.peak_live_blocks == ledger.totals().peak_live_blocks);
  CHECK(stated.end_live_bytes == ledger.totals().end_live_bytes);
  CHECK(stated.end_live_blocks == ledger.totals().end_live_blocks);
  CHECK(stated.threads == ledger.totals().threads);
  CHECK(stated.failed == ledger.totals().failed);
  CHECK(stated.by_kind == ledger.totals().by_kind);
  return read;
}

/// The content that a file must have: allocations of the blocks that were live after so many events, a mark, and the
/// later events. Without the touched pages of the live blocks.
std::vector<std::string> expected(const Recording& recording, std::uint64_t dropped) {
  std::map<Tag, Event> live;
  std::vector<std::string> lines;
  Event last;
  last.time_ns = unknown;
  for (std::size_t i = 0; i < dropped; ++i) {
    Event made = recording.all[i];
    last.thread = made.thread;
    if (made.time_ns != unknown) last.time_ns = made.time_ns;
    if (made.ends_block()) live.erase(made.old_tag);
    if (made.tag == 0) continue;
    if (traits(made.kind).releases)
      made = {.kind = Kind::malloc,
              .thread = made.thread,
              .size = made.bytes(),
              .tag = made.tag,
              .address = made.address,
              .time_ns = made.time_ns,
              .usable = made.usable,
              .stack = made.stack};
    live[made.tag] = made;
  }
  for (const auto& [tag, made] : live) lines.push_back(line_of(made, recording.stacks));
  const std::string label = "slice " + std::to_string(dropped) + ":";
  if (dropped != 0)
    lines.push_back(to_line({.kind = Kind::mark, .thread = last.thread, .time_ns = last.time_ns, .label = label}));
  for (std::size_t i = dropped; i < recording.all.size(); ++i)
    lines.push_back(line_of(recording.all[i], recording.stacks));
  return lines;
}

bool is_page_line(const std::string& line) { return line.starts_with("touch") || line.starts_with("resident"); }

/// Leaves out touches before the mark: the fixture reports random pages, also ones that no block has.
void drop_early_touches(std::vector<std::string>& lines) {
  const auto mark =
      std::find_if(lines.begin(), lines.end(), [](const auto& line) { return line.starts_with("mark(\"slice "); });
  if (mark != lines.end()) lines.erase(std::remove_if(lines.begin(), mark, is_page_line), mark);
}

}  // namespace

TEST_CASE("keep: all is kept while it fits, as a trace of its own") {
  Recording recording({.bytes = 1 << 20});
  RandomTrace trace(3, Addresses::reused);
  for (int i = 0; i < 3000; ++i) recording.add(trace.next());
  FlightSpan span;
  const auto lines = lines_of(recording.write(span));
  CHECK(span.dropped_events == 0);
  CHECK(span.events == 3000);
  CHECK(lines == expected(recording, 0));
}

TEST_CASE("keep: of many events the last ones are kept, with the blocks that were live before") {
  for (const bool has_stacks : {false, true}) {
    for (const Addresses addresses : {Addresses::reused, Addresses::random, Addresses::none}) {
      Recording recording({.bytes = 128 << 10});
      if (has_stacks) recording.use_stacks();
      RandomTrace trace(5, addresses);
      std::uint64_t dropped = 0;
      for (int part = 0; part < 4; ++part) {
        for (int i = 0; i < 8000; ++i) recording.add(trace.next());
        FlightSpan span;
        auto lines = lines_of(recording.write(span));
        drop_early_touches(lines);
        CHECK(span.dropped_events >= dropped);
        dropped = span.dropped_events;
        CHECK(span.dropped_events + span.events == recording.all.size());
        CHECK(lines == expected(recording, dropped));
      }
      CHECK(dropped > 8000);
    }
  }
}

TEST_CASE("keep: a bound of time keeps at least so long, and little more") {
  Recording recording({.ns = 4000 * Recording::event_ns, .bytes = 1 << 30});
  RandomTrace trace(5, Addresses::reused);
  for (int i = 0; i < 40000; ++i) recording.add(trace.next());
  FlightSpan span;
  lines_of(recording.write(span));
  CHECK(span.to_ns == 40000 * Recording::event_ns);
  CHECK(span.to_ns - span.from_ns >= 4000 * Recording::event_ns);
  CHECK(span.to_ns - span.from_ns <= 5200 * Recording::event_ns);
}

TEST_CASE("keep: memory and file stay bounded, whatever comes") {
  Recording recording({.bytes = 512 << 10});
  RandomTrace trace(5, Addresses::random);
  std::uint64_t most = 0;
  for (int i = 0; i < 150000; ++i) {
    Event event = trace.next();
    recording.add(event);
    if (i % 1000 == 0) {
      FlightSpan span = recording.sink.span();
      most = std::max(most, span.events);
    }
  }
  CHECK(most < 120000);
}

TEST_CASE("keep: a disk that is full for a while costs nothing, nor does a file that it does not take") {
  for (const bool has_stacks : {false, true}) {
    Recording recording({.bytes = 1 << 20});
    if (has_stacks) recording.use_stacks();
    RandomTrace trace(5, Addresses::random);
    FlightSpan span;
    for (int i = 0; i < 20000; ++i) recording.add(trace.next());
    const int fd = file_of("");
    {
      const FullDisk full(1000);
      for (int i = 0; i < 20000; ++i) recording.add(trace.next());
      Output file(fd);
      CHECK_THROWS_AS(recording.sink.write(file, {}, false), std::system_error);
      for (int i = 0; i < 100; ++i) recording.add(trace.next());
    }
    CHECK(lines_of(recording.write(span)) == expected(recording, 0));
    for (int i = 0; i < 20000; ++i) recording.add(trace.next());
    CHECK(lines_of(recording.write(span)) == expected(recording, 0));
    CHECK(span.events == 60100);
  }
}

TEST_CASE("keep: a disk that stays full has the oldest events dropped") {
  for (const rlim_t disk_bytes : {rlim_t{0}, rlim_t{200'000}}) {
    Recording recording({.bytes = 1 << 30, .block_events = 1000, .memory_bytes = 128 << 10});
    std::uint64_t least = 1 << 30;
    {
      const FullDisk full(disk_bytes);
      for (Tag tag = 1000; recording.all.size() < 200000; ++tag) {
        const std::uint64_t address = 16 * recording.random(), size = recording.random() % 100000;
        recording.add({.size = size, .tag = tag, .address = address});
        if (tag % 1000 != 0) recording.add({.kind = Kind::free, .old_tag = tag, .old_address = address});
        if (recording.all.size() > 100000) least = std::min(least, recording.sink.span().events);
      }
    }
    FlightSpan span;
    const auto lines = lines_of(recording.write(span));
    CHECK(lines == expected(recording, span.dropped_events));
    CHECK(span.dropped_events > 100000);
    CHECK(least > 10000);
    CHECK(span.dropped_events + span.events == recording.all.size());
  }
}

TEST_CASE("keep: a recording without any event is a whole trace") {
  Recording recording({.bytes = 1 << 20});
  FlightSpan span;
  CHECK(lines_of(recording.write(span)).empty());
  CHECK(span.events == 0);
}

TEST_CASE("keep: events before the first allocation are kept too") {
  Recording recording({.bytes = 1 << 20});
  recording.add({.kind = Kind::thread_start, .thread = 1});
  FlightSpan span;
  CHECK(lines_of(recording.write(span)) == expected(recording, 0));
  recording.add({.size = 5, .tag = 1000, .address = 0x5000});
  CHECK(lines_of(recording.write(span)) == expected(recording, 0));
}

TEST_CASE("keep: pages that were touched before the begin follow their block's allocation") {
  Recording recording({.ns = 1000 * Recording::event_ns, .bytes = 1 << 30});
  recording.add({.size = 100000, .tag = 1000, .address = 0x10000, .time_ns = 5});
  recording.add(
      {.kind = Kind::resident, .size = 0, .count = 1, .alignment = 4096, .old_tag = 1000, .old_address = 0x10000});
  recording.add(
      {.kind = Kind::touch, .size = 8192, .count = 2, .alignment = 4096, .old_tag = 1000, .old_address = 0x10000});
  recording.add({.size = 70000, .tag = 1001, .address = 0x90000});
  recording.add(
      {.kind = Kind::touch, .size = 0, .count = 0, .alignment = 4096, .old_tag = 1001, .old_address = 0x90000});
  recording.add({.kind = Kind::free, .old_tag = 1001, .old_address = 0x90000});
  for (Tag tag = 1002; recording.all.size() < 5000; ++tag) {
    recording.add({.size = 16, .tag = tag, .address = 0x200000});
    recording.add({.kind = Kind::free, .old_tag = tag, .old_address = 0x200000});
    if (tag == 1200)
      recording.add(
          {.kind = Kind::touch, .size = 16384, .count = 1, .alignment = 4096, .old_tag = 1000, .old_address = 0x10000});
  }
  FlightSpan span;
  const auto lines = lines_of(recording.write(span));
  REQUIRE(span.dropped_events > 1000);
  CHECK(span.live_events == 5);
  CHECK(lines[0] == "malloc(100000) = 10000<1000> time=5");
  CHECK(lines[1] == "resident(10000<1000>, 4096, 1, 0) time=5");
  CHECK(lines[2] == "touch(10000<1000>, 4096, 3, 8192) time=5");
  CHECK(lines[3].starts_with("malloc(16) = 200000<"));  // the one of the moment
  CHECK(lines[4].starts_with("mark(\"slice "));
}

TEST_CASE("keep: repairs are those of what is kept") {
  Recording recording({.ns = 1000 * Recording::event_ns, .bytes = 1 << 30});
  for (Tag tag = 1000; recording.all.size() < 5000; ++tag) {
    recording.add({.size = 16, .tag = tag, .address = 0x200000});
    recording.add({.kind = Kind::free, .old_tag = tag, .old_address = 0x200000});
    if (recording.all.size() % 100 == 0) recording.repairs.add(Repair::order_race);
  }
  const int fd = file_of("");
  Output file(fd);
  const FlightSpan span = recording.sink.write(file, recording.repairs, true);
  Reader reader(file_of(bytes_of(fd)), "kept.cmt");
  REQUIRE(reader.totals());
  CHECK(reader.totals()->repairs[Repair::order_race] <= span.events / 100 + 1);
  CHECK(reader.totals()->repairs[Repair::order_race] + 1 >= span.events / 100);
  CHECK(reader.totals()->truncated);
}
