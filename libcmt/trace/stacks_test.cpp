// Call stacks in a .cmt: they come back wherever reading begins, and damage changes only later ones.

#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>
#include <mutex>

#include "libcmt/format/sections.h"
#include "libcmt/format/stacks/stack_names.h"
#include "tests/format-spec/stack_fixture.h"
#include "tests/sampled_places.h"

using namespace cmt;
using namespace cmt::fixture;

namespace {

ReadOptions with_stacks(unsigned threads = 1) {
  ReadOptions options;
  options.stacks = true;
  options.threads = threads;
  return options;
}

/// Events with stacks, in blocks of 10. Every event that allocates may have a stack; with `releasing_too`, also every
/// event that releases.
struct StackTrace {
  explicit StackTrace(unsigned seed, bool releasing_too = false, std::size_t count = 400,
                      Addresses addresses = Addresses::reused)
      : stacks(seed) {
    const int fd = file_of("");
    Writer writer(fd, {}, in_blocks_of(10));
    writer.use_stacks(stacks.table());
    for (Event& event : events = random_events(seed, addresses, count)) {
      const KindTraits& kind = traits(event.kind);
      const bool makes = kind.allocates || event.kind == Kind::pool_malloc;
      if (makes || (releasing_too && (kind.releases || event.kind == Kind::pool_free))) event.stack = stacks.next();
      writer.add(event);
      texts.push_back(stack_text(stacks.table(), event.stack));
    }
    writer.finish();
    bytes = bytes_of(fd);
  }

  RandomStacks stacks;
  std::vector<Event> events;
  std::vector<std::string> texts;
  std::string bytes;
};

/// The texts of the stacks of all events from here on.
std::vector<std::string> stacks_from_here(Reader& reader) {
  std::vector<std::string> all;
  for (auto events = reader.read(); !events.empty(); events = reader.read()) {
    for (const Event& event : events) all.push_back(stack_text(reader.stacks(), event.stack));
  }
  return all;
}

std::vector<std::string> tail_of(const std::vector<std::string>& all, std::size_t first) {
  return {all.begin() + static_cast<std::ptrdiff_t>(first), all.end()};
}

}  // namespace

TEST_CASE("stacks: they come back, of allocations only and of frees too, with one thread and with several") {
  for (const bool releasing_too : {false, true}) {
    for (const unsigned threads : {1u, 3u}) {
      const StackTrace trace(5, releasing_too);
      Reader reader(file_of(trace.bytes), "app", with_stacks(threads));
      CHECK(reader.header().has_stacks);
      CHECK(stacks_from_here(reader) == trace.texts);
      CHECK(reader.defects() == 0);
    }
  }
}

TEST_CASE("stacks: a reader that does not want them gets the same events without") {
  StackTrace trace(6);
  Reader reader(file_of(trace.bytes), "app");
  CHECK(stacks_from_here(reader) == std::vector<std::string>(trace.events.size(), "?"));
  CHECK(reader.stacks().node_count() == 1);
  for (Event& event : trace.events) event.stack = 0;
  CHECK(read_all(trace.bytes).lines == lines(trace.events));
}

TEST_CASE("stacks: reading can begin anywhere, forwards and backwards, and the numbers are the same") {
  const StackTrace trace(7, true);
  Reader whole(file_of(trace.bytes), "app", with_stacks());
  REQUIRE(whole.read_stacks());
  CHECK(stacks_from_here(whole) == trace.texts);
  for (const bool addresses : {false, true}) {
    ReadOptions options = with_stacks();
    options.addresses = addresses;
    Reader reader(file_of(trace.bytes), "app", options);
    for (const std::size_t event : {395u, 17u, 200u, 201u, 0u, 399u}) {
      CAPTURE(event);
      reader.seek(event);
      CHECK(stacks_from_here(reader) == tail_of(trace.texts, event));
      reader.seek(event);
      for (const Event& each : reader.read()) {
        CHECK(stack_text(whole.stacks(), each.stack) == stack_text(reader.stacks(), each.stack));
      }
    }
  }
}

TEST_CASE("stacks: parts that are read at the same time name them alike") {
  const StackTrace trace(8);
  const std::string path = "stacks_test." + std::to_string(getpid());
  std::ofstream(path, std::ios::binary) << trace.bytes;
  Reader whole(path, with_stacks());
  whole.read_stacks();
  std::mutex mutex;
  std::vector<std::vector<std::string>> parts(trace.events.size());
  ReadOptions options = with_stacks();
  options.addresses = false;
  const std::size_t count = for_each_part(path, options, 3, [&](std::size_t part, std::span<const Event> events) {
    const std::lock_guard lock(mutex);
    for (const Event& event : events) parts[part].push_back(stack_text(whole.stacks(), event.stack));
  });
  std::remove(path.c_str());
  CHECK(count == trace.events.size() / 10);
  std::vector<std::string> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  CHECK(all == trace.texts);
}

TEST_CASE("stacks: a writer that gets its table in the middle writes the stacks from there on") {
  const StackTrace trace(9);
  const int fd = file_of("");
  Writer writer(fd, {});
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    if (i == 123) writer.use_stacks(trace.stacks.table());
    writer.add(trace.events[i]);
  }
  writer.finish();
  Reader reader(file_of(bytes_of(fd)), "app", with_stacks());
  CHECK(!reader.header().has_stacks);
  std::vector<std::string> wanted(123, "?");
  wanted.insert(wanted.end(), trace.texts.begin() + 123, trace.texts.end());
  CHECK(stacks_from_here(reader) == wanted);
}

TEST_CASE("stacks: modules that went are so for a reader of the blocks behind") {
  StackTable table;
  const ModuleId module = table.add_module({.path = "/lib/a.so", .begin = 0x1000, .end = 0x2000, .loaded_ns = 5});
  const StackId stack = table.add_node({0, table.add_frame({module, 0x1234})});
  const int fd = file_of("");
  Writer writer(fd, {}, in_blocks_of(1));
  writer.use_stacks(table);
  writer.add({.kind = Kind::malloc, .tag = 1, .stack = stack});
  table.set_unloaded(module, 77);
  const ModuleId again = table.add_module({.path = "/lib/a.so", .begin = 0x1000, .end = 0x2000, .loaded_ns = 5});
  table.set_unloaded(again, 77);  // so that it equals the first
  const StackId other = table.add_node({0, table.add_frame({again, 0x1234})});
  writer.add({.kind = Kind::malloc, .tag = 2, .stack = other});
  writer.finish();
  Reader reader(file_of(bytes_of(fd)), "app", with_stacks());
  REQUIRE(reader.read().size() == 1);
  CHECK(reader.stacks().module(1).unloaded_ns == unknown);
  REQUIRE(reader.read().size() == 1);
  CHECK(reader.stacks().module(1).unloaded_ns == 77);
  CHECK(reader.stacks().module(2) == reader.stacks().module(1));
  CHECK(reader.stacks().node_count() == 3);
}

TEST_CASE("stacks: deep ones that take turns cost no more than what is new") {
  StackTable table;
  const FrameId frame = table.add_frame({0, 1});
  StackId deep[2];
  for (StackId& each : deep) {
    each = table.add_node({0, table.add_frame({0, 10 + static_cast<std::uint64_t>(&each - deep)})});
    for (int i = 0; i < 10000; ++i) each = table.add_node({each, frame});
  }
  const int fd = file_of("");
  Writer writer(fd, {});
  writer.use_stacks(table);
  for (Tag tag = 1; tag <= 1000; ++tag) {
    writer.add({.kind = Kind::malloc, .tag = tag, .stack = table.add_node({deep[tag % 2], table.add_frame({0, tag})})});
  }
  writer.finish();
  const std::string bytes = bytes_of(fd);
  CHECK(bytes.size() < 20000);
  Reader reader(file_of(bytes), "app", with_stacks());
  std::size_t events = 0;
  for (auto read = reader.read(); !read.empty(); read = reader.read()) {
    for (const Event& event : read) CHECK(reader.stacks().node(event.stack).parent > 10000 * (events++ % 2));
  }
  CHECK(events == 1000);
}

TEST_CASE("stacks: a damaged file yields what is whole before the damage, with the stacks as they were") {
  const StackTrace trace(10, true, 100);
  std::string bytes = trace.bytes;
  for (std::size_t bit = 0; bit < bytes.size() * 8; bit += 29 * cmt::fixture::place_step) {
    CAPTURE(bit);
    const char mask = static_cast<char>(1 << bit % 8);
    bytes[bit / 8] ^= mask;
    std::vector<std::string> texts;
    bool noticed = false;
    try {
      Reader reader(file_of(bytes), "app", with_stacks());
      for (auto events = reader.read(); !events.empty(); events = reader.read()) {
        for (const Event& event : events) texts.push_back(stack_text(reader.stacks(), event.stack));
      }
      noticed = reader.truncated() || reader.defects() != 0;
    } catch (const FormatError&) {
      noticed = true;
    }
    REQUIRE(texts.size() <= trace.texts.size());
    REQUIRE(std::equal(texts.begin(), texts.end(), trace.texts.begin()));
    if (!noticed) REQUIRE(texts.size() == trace.texts.size());
    bytes[bit / 8] ^= mask;
  }
}

TEST_CASE("stacks: of a cut file, those of all whole blocks come back") {
  const StackTrace trace(11, true, 100);
  for (std::size_t length = 200; length < trace.bytes.size(); length += 7 * cmt::fixture::place_step) {
    CAPTURE(length);
    Reader reader(file_of(std::string_view(trace.bytes).substr(0, length)), "app", with_stacks());
    const std::vector<std::string> texts = stacks_from_here(reader);
    REQUIRE(reader.truncated());
    REQUIRE(texts.size() % 10 == 0);
    REQUIRE(std::equal(texts.begin(), texts.end(), trace.texts.begin()));
  }
}

TEST_CASE("stacks: text, .cmt and text again are the same") {
  const StackTrace trace(12, true, 400, Addresses::none);
  const auto to_form = [](std::string_view bytes, Format format) {
    Reader reader(file_of(bytes), "app", with_stacks());
    const int fd = file_of("");
    Writer writer(fd, reader.header(), {.format = format, .block_events = 10});
    writer.use_stacks(reader.stacks());
    for (auto events = reader.read(); !events.empty(); events = reader.read()) {
      for (const Event& event : events) writer.add(event);
    }
    writer.finish();
    CHECK(reader.defects() == 0);
    return bytes_of(fd);
  };
  const std::string text = to_form(trace.bytes, Format::text);
  CHECK(to_form(text, Format::text) == text);
  CHECK(to_form(to_form(text, Format::cmt), Format::text) == text);
  Reader reader(file_of(text), "app", with_stacks());
  CHECK(reader.header().has_stacks);
  CHECK(stacks_from_here(reader) == trace.texts);
}

TEST_CASE("stacks: a text's definitions are checked, and what is not defined is left out") {
  const auto messages = [](const std::string& text) {
    const WhatWasRead read = read_all(text + "malloc(8) = 10<1> stack=2\n", with_stacks());
    CHECK(read.lines.size() == 1);
    return read.messages.empty() ? "" : read.messages.front();
  };
  const std::string frame = "#module 1 begin=10 path=a\n#frame 1 module=1 address=11\n";
  CHECK(messages(frame + "#node 2 parent=0 frame=1\n") == "");
  CHECK(messages("") == "app:1: the stack 2 is not defined: left out");
  CHECK(messages("#node 2 parent=0 frame=1\n") ==
        "app:1: expected frame=, the number of a frame that is defined: #node 2 parent=0 frame=1");
  CHECK(messages("#frame 1 module=1 address=11\n") ==
        "app:1: expected module=, the number of a module that is defined: #frame 1 module=1 address=11");
  CHECK(messages(frame + "#node 2 parent=7 frame=1\n") ==
        "app:3: expected parent=, the number of a node that is defined, or 0: #node 2 parent=7 frame=1");
  CHECK(messages(frame + "#node 1 parent=0 frame=1\n#node 2 parent=1 frame=0\n")
            .ends_with("which only the outermost may have: #node 2 parent=1 frame=0"));
  CHECK(messages(frame + "#frame 1 module=0 address=12\n").find("a number that no frame has yet") != std::string::npos);
  CHECK(messages(frame + "#frame 2 module=0\n").find("expected address=") != std::string::npos);
  CHECK(messages(frame + "#module 2 begin=1\n").find("expected path=") != std::string::npos);
  CHECK(messages(frame + "#module 1 path=b\n").find("a number that no module has yet") != std::string::npos);
  CHECK(messages(frame + "#frame 3 module=x\n").find("expected fields") != std::string::npos);
  CHECK(messages(frame + "#name 9 function=f\n").find("the number of a frame that is defined") != std::string::npos);
  CHECK(messages(frame + "#name 1 line=5\n").find("expected function=") != std::string::npos);
  CHECK(messages(frame + "#unloaded 1\n").find("expected time=") != std::string::npos);
  CHECK(messages(frame + "#unloaded 3 time=4\n").find("the number of a module that is defined") != std::string::npos);
  CHECK(messages("# a remark\n#frame of mind\n#node 2 parent=0 frame=0\n") == "");
}

namespace {

/// A trace of one stack of two frames, the inner one with an inlined function; names are set at the end.
std::string file_with_names(const WriteOptions& options) {
  StackTable table;
  const ModuleId module = table.add_module({.path = "/bin/app", .begin = 0x1000, .end = 0x2000});
  const FrameId outer = table.add_frame({module, 0x1100}), inner = table.add_frame({module, 0x1200});
  const StackId stack = table.add_node({table.add_node({0, outer}), inner});
  const int fd = file_of("");
  Writer writer(fd, {}, options);
  writer.use_stacks(table);
  writer.add({.kind = Kind::malloc, .tag = 1, .stack = stack});
  table.set_unloaded(module, 33);
  table.set_names(outer, std::vector<FrameName>{{"main", "app.c", 12}});
  table.set_names(inner, std::vector<FrameName>{{"operator\"\" _x", "app.h", 3}, {"main", "app.c", 7}, {"?", "", 0}});
  writer.finish();
  return bytes_of(fd);
}

std::string names_text(const StackTable& stacks) {
  std::string text;
  for (FrameId frame = 1; frame < stacks.frame_count(); ++frame) {
    for (const FrameName& name : stacks.names(frame)) {
      text += std::to_string(stacks.frame(frame).address) + " " + std::string(name.function) + " " +
              std::string(name.file) + " " + std::to_string(name.line) + "; ";
    }
  }
  return text;
}

}  // namespace

TEST_CASE("stacks: names of frames come back, at once from a file and at the end from a pipe") {
  const std::string all = "4352 main app.c 12; 4608 operator\"\" _x app.h 3; 4608 main app.c 7; 4608 ?  0; ";
  for (const Format format : {Format::cmt, Format::text}) {
    const std::string bytes = file_with_names({.format = format});
    CAPTURE(bytes);
    Reader reader(file_of(bytes), "app", with_stacks());
    REQUIRE(reader.read().size() == 1);
    if (format == Format::cmt) CHECK(names_text(reader.stacks()) == all);
    CHECK(reader.read().empty());
    CHECK(names_text(reader.stacks()) == all);
    CHECK(reader.stacks().module(1).unloaded_ns == 33);
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    REQUIRE(write(ends[1], bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    close(ends[1]);
    Reader piped(ends[0], "pipe", with_stacks(3));
    CHECK(stacks_from_here(piped).size() == 1);
    CHECK(names_text(piped.stacks()) == all);
    CHECK(piped.stacks().module(1).unloaded_ns == 33);
  }
}

TEST_CASE("stacks: damaged names cost no event") {
  std::string bytes = file_with_names({});
  const std::size_t names = bytes.find("NAME");
  bytes[names + 30] ^= 1;
  Reader reader(file_of(bytes), "app", with_stacks());
  CHECK(reader.read().size() == 1);
  CHECK_THROWS_AS(reader.read(), FormatError);
  CHECK(read_all(bytes).lines.size() == 1);
  CHECK(read_all(bytes).error == "");
}

namespace {

/// A trace in blocks of two events: each of `lines` lines of Python, called by native code, allocates once. The names
/// of the native code, and the last one of the first line, are set at the end.
std::string file_with_python(std::uint32_t lines, std::string_view first_renamed = {}) {
  StackTable table;
  const ModuleId native = table.add_module({.path = "/bin/python", .begin = 0x1000, .end = 0x2000});
  const ModuleId python = table.add_module({.path = std::string(python_module_path)});
  const FrameId loop = table.add_frame({native, 0x1100});
  const StackId outer = table.add_node({0, loop});
  const int fd = file_of("");
  Writer writer(fd, {}, in_blocks_of(2));
  writer.use_stacks(table);
  for (std::uint32_t line = 1; line <= lines; ++line) {
    const FrameId frame = table.add_frame({python, line + 1, true});
    const std::string function = "f" + std::to_string(line / 2);
    table.set_names(frame, std::vector<FrameName>{{function, "/app/a.py", line}});
    writer.add({.kind = Kind::malloc, .size = 8, .tag = line, .stack = table.add_node({outer, frame})});
  }
  table.set_names(loop, std::vector<FrameName>{{"loop", "ceval.c", 9}});
  if (!first_renamed.empty()) table.set_names(loop + 1, std::vector<FrameName>{{first_renamed, "", 0}});
  writer.finish();
  return bytes_of(fd);
}

constexpr std::string_view python_names = "2 f0 /app/a.py 1; 3 f1 /app/a.py 2; 4 f1 /app/a.py 3; 5 f2 /app/a.py 4; ";

}  // namespace

TEST_CASE("stacks: a trace without an end has the names of an interpreter's lines, and of no native code") {
  const std::string bytes = file_with_python(4), cut = bytes.substr(0, bytes.find("NAME"));
  for (const unsigned threads : {1u, 3u}) {
    Reader whole(file_of(bytes), "app", with_stacks(threads)), reader(file_of(cut), "app", with_stacks(threads));
    stacks_from_here(whole);
    CHECK(names_text(whole.stacks()) == "4352 loop ceval.c 9; " + std::string(python_names));
    stacks_from_here(reader);
    CHECK(reader.truncated());
    CHECK(names_text(reader.stacks()) == python_names);
  }
}

TEST_CASE("stacks: where only the section of names is damaged, an interpreter's lines have names in any block") {
  std::string bytes = file_with_python(4);
  bytes[bytes.find("NAME") + 30] ^= 1;
  Reader reader(file_of(bytes), "app", with_stacks());
  reader.seek(2);
  CHECK(reader.read().size() == 2);
  CHECK(names_text(reader.stacks()) == python_names);
  Reader all(file_of(bytes), "app", with_stacks());
  CHECK(all.read_stacks());
  CHECK(names_text(all.stacks()) == python_names);
}

TEST_CASE("stacks: the names of an interpreter's lines survive text") {
  const std::string bytes = file_with_python(5);
  const auto to_form = [](std::string_view trace, Format format) {
    Reader reader(file_of(trace), "app", with_stacks());
    const int fd = file_of("");
    Writer writer(fd, reader.header(), {.format = format, .block_events = 2});
    writer.use_stacks(reader.stacks());
    for (auto events = reader.read(); !events.empty(); events = reader.read()) {
      for (const Event& event : events) writer.add(event);
    }
    writer.finish();
    return bytes_of(fd);
  };
  CHECK(to_form(to_form(bytes, Format::text), Format::cmt) == bytes);
}

TEST_CASE("stacks: where the section of names is there too, it counts") {
  const std::string bytes = file_with_python(3, "renamed");
  Reader whole(file_of(bytes), "app", with_stacks());
  stacks_from_here(whole);
  CHECK(names_text(whole.stacks()).find("2 renamed  0; 3 f1 /app/a.py 2; ") != std::string::npos);
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  REQUIRE(write(ends[1], bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  close(ends[1]);
  Reader piped(ends[0], "pipe", with_stacks());
  REQUIRE(piped.read().size() == 2);
  CHECK(names_text(piped.stacks()) == "2 f0 /app/a.py 1; 3 f1 /app/a.py 2; ");
  stacks_from_here(piped);
  CHECK(names_text(piped.stacks()) == names_text(whole.stacks()));
}

TEST_CASE("stacks: a stream of names that are of no frame is refused") {
  StackTable table;
  table.add_frame({0, 5});
  const std::string name("\1\1\0\0\1f\0\0\2", 9);  // a function "f" at frame 1, line 1
  format::take_frame_names(name, table);
  CHECK(names_text(table) == "5 f  1; ");
  CHECK_THROWS_AS(format::take_frame_names("\2" + name.substr(1), table), format::WireError);
  CHECK_THROWS_AS(format::take_frame_names(name.substr(0, 8), table), format::WireError);
}

TEST_CASE("stacks: a name may follow thousands of frames without, and no step in the section is above its size") {
  StackTable table;
  const ModuleId native = table.add_module({.path = "/bin/python", .begin = 0x1000, .end = 0x9000});
  const ModuleId python = table.add_module({.path = std::string(python_module_path)});
  StackId stack = 0;
  for (std::uint32_t i = 0; i < 5000; ++i) stack = table.add_node({stack, table.add_frame({native, 0x1000 + i})});
  const FrameId line = table.add_frame({python, 2, true});
  table.set_names(line, std::vector<FrameName>{{"f", "a.py", 1}});
  format::StackEncoder encoder;
  encoder.use(table);
  encoder.add(Kind::malloc, table.add_node({stack, line}));
  StackTable read = table, read_stream = table;
  for (StackTable* each : {&read, &read_stream}) each->set_names(line, {});
  format::take_frame_names(format::put_frame_names(encoder), read_stream);
  CHECK(names_text(read_stream) == "2 f a.py 1; ");
  encoder.finish_definitions();
  CHECK(format::put_frame_names(encoder).empty());
  const std::string section = format::put_names(encoder);
  format::take_names(section, read);
  CHECK(names_text(read) == "2 f a.py 1; ");
  CHECK(section.size() < 300);
  format::Cursor cursor(section);
  cursor.varint();
  for (std::uint64_t frame = 0; frame != line;) {
    const std::uint64_t step = cursor.varint();
    REQUIRE(step <= section.size());
    frame += step;
    REQUIRE(cursor.varint() == (frame == line ? 1 : 0));
  }
}
