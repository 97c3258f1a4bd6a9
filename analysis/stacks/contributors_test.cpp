// Checks which function each allocation is charged to, and the figures with callees, callers and folded stacks.
#include "analysis/stacks/contributors.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <utility>

#include "analysis/stacks/folded.h"
#include "analysis/stacks/selection.h"

namespace cmt::analysis {
namespace {

/// A table of stacks, and the allocations of a trace with them.
class Sample {
 public:
  explicit Sample(const UseOptions& options = {})
      : complaints_(false, [](const std::string&) {}), counter_(options, complaints_) {
    app_ = stacks_.add_module(module("/opt/app"));
    library_ = stacks_.add_module(module("/lib/libx.so.1"));
  }

  /// A frame with the functions at it, the innermost first. "x:..." is in the library.
  FrameId frame(std::initializer_list<std::string> functions) {
    const bool is_library = functions.begin()->starts_with("x:");
    const FrameId id = stacks_.add_frame({is_library ? library_ : app_, 0x1000 + 16 * stacks_.frame_count(), false});
    std::vector<FrameName> names;
    std::uint32_t line = id * 10;
    for (const std::string& function : functions) {
      names.push_back({.function = function == "?" ? std::string_view() : std::string_view(function),
                       .file = "a.cpp",
                       .line = line++});
    }
    stacks_.set_names(id, names);
    return id;
  }

  /// A stack from its frames, the outermost first.
  StackId stack(std::initializer_list<FrameId> frames) {
    StackId at = 0;
    for (const FrameId frame : frames) at = stacks_.add_node({at, frame});
    return at;
  }

  Tag allocate(std::uint64_t size, StackId stack, std::uint32_t thread = 0) {
    Event event{.kind = Kind::malloc, .thread = thread, .size = size, .tag = ++last_tag_};
    event.stack = stack;
    counter_.count_event(event);
    return last_tag_;
  }
  Tag reallocate(Tag old, std::uint64_t size, StackId stack) {
    Event event{.kind = Kind::realloc, .size = size, .tag = ++last_tag_, .old_tag = old};
    event.stack = stack;
    counter_.count_event(event);
    return last_tag_;
  }
  void free(Tag tag, std::uint32_t thread = 0) {
    counter_.count_event({.kind = Kind::free, .thread = thread, .old_tag = tag});
  }

  void add(const Event& event) { counter_.count_event(event); }
  void mark(std::string_view label) { add({.kind = Kind::mark, .label = label}); }

  const StackTable& stacks() const { return stacks_; }
  Uses finish() { return counter_.finish(); }

 private:
  static Module module(const std::string& path) {
    Module made;
    made.path = path;
    made.bias = 0x1000;
    return made;
  }

  StackTable stacks_;
  ModuleId app_, library_;
  command::Complaints complaints_;
  UseCounter counter_;
  Tag last_tag_ = 0;
};

/// A contributor in a line: "name self-peak/self-bytes/temporary/at-end inclusive-peak/bytes".
std::string line_of(const Contributor& each) {
  const auto number = [](std::uint64_t value) { return std::to_string(value); };
  return each.name + " " + number(each.self.peak.bytes) + "/" + number(each.self.allocated.bytes) + "/" +
         number(each.self.temporary) + "/" + number(each.self.leaked.bytes) + " " + number(each.inclusive.peak.bytes) +
         "/" + number(each.inclusive.allocated.bytes);
}

std::string lines_of(const std::vector<Caller>& callers, std::size_t level) {
  std::string text;
  for (const Caller& each : callers) {
    text += std::string(2 * level, ' ') + each.name + " " + std::to_string(each.use.peak.bytes) + "/" +
            std::to_string(each.use.allocated.bytes) + "\n" + lines_of(each.callers, level + 1);
  }
  return text;
}

std::string lines_of(const Contributors& report) {
  std::string text;
  for (const Contributor& each : report.contributors) text += line_of(each) + "\n" + lines_of(each.callers, 1);
  return text;
}

std::string folded(const Sample& sample, const Uses& uses, Metric metric, const std::string& hidden = {}) {
  std::string text;
  write_folded(sample.stacks(), uses, metric, hidden, [&](const std::string& piece) { text += piece; });
  return text;
}

TEST_CASE("an allocation is charged to the innermost function that is no allocation function") {
  Sample sample;
  const FrameId main = sample.frame({"main"}), parse = sample.frame({"parse"});
  const FrameId in_list = sample.frame({"operator new(unsigned long)"});
  const FrameId push =
      sample.frame({"std::__new_allocator<int>::allocate(unsigned long, void const*)", "list::push(int)", "fill"});
  const StackId of_parse = sample.stack({main, parse});
  sample.allocate(100, of_parse);
  sample.free(sample.allocate(50, sample.stack({main, parse, in_list})));
  sample.allocate(8, sample.stack({main, push}));
  const Uses uses = sample.finish();
  CHECK(uses.peak_event == 2);
  const Contributors report = find_contributors(sample.stacks(), uses, {});
  CHECK(lines_of(report) ==
        "parse 150/150/1/100 150/150\n"
        "fill 0/0/0/0 0/8\n"
        "list::push(int) 0/8/0/8 0/8\n"
        "main 0/0/0/0 150/158\n");
  CHECK(report.stacks == 3);
  CHECK(report.contributors[0].stack.size() == 2);
  CHECK(report.contributors[0].stack[0].function == "parse");
  CHECK(report.contributors[0].stack[1].library == "app");
  CHECK(report.contributors[2].stack.size() == 4);
  CHECK(find_contributors(sample.stacks(), uses, {.metric = Metric::temporary, .top = 1}).left_out == 3);
  CHECK(find_contributors(sample.stacks(), uses, {.inclusive = true}).contributors[0].name == "main");
  const Contributors skipping = find_contributors(sample.stacks(), uses, {.charges = {.skipped = "^par|list::"}});
  CHECK(skipping.contributors[0].name == "main");
  CHECK(skipping.contributors[0].self.peak.bytes == 150);
  CHECK(skipping.contributors[1].name == "fill");
}

TEST_CASE("a recursive function is counted once in each stack") {
  Sample sample;
  const FrameId main = sample.frame({"main"}), walk = sample.frame({"walk"}), leaf = sample.frame({"leaf"});
  sample.allocate(10, sample.stack({main, walk, walk, walk, leaf}));
  sample.allocate(1, sample.stack({main, walk, leaf, walk}));
  CHECK(lines_of(find_contributors(sample.stacks(), sample.finish(), {})) ==
        "leaf 10/10/0/10 11/11\n"
        "walk 1/1/0/1 11/11\n"
        "main 0/0/0/0 11/11\n");
}

TEST_CASE("stacks are put together by function and caller, by line and by library") {
  Sample sample;
  const FrameId main = sample.frame({"main"}), a = sample.frame({"a"}), b = sample.frame({"b"});
  const FrameId grow = sample.frame({"x:grow"}), bare = sample.frame({"?"});
  sample.allocate(10, sample.stack({main, a, grow}));
  sample.allocate(20, sample.stack({main, b, grow}));
  sample.allocate(5, sample.stack({bare}));
  const Uses uses = sample.finish();
  CHECK(lines_of(find_contributors(sample.stacks(), uses, {.by = By::caller, .top = 2})) ==
        "x:grow 30/30/0/30 30/30\n"
        "  b 20/20\n"
        "    main 20/20\n"
        "  a 10/10\n"
        "    main 10/10\n"
        "app+0x50 5/5/0/5 5/5\n");
  CHECK(lines_of(find_contributors(sample.stacks(), uses, {.by = By::library})) ==
        "libx.so.1 30/30/0/30 30/30\n"
        "app 5/5/0/5 35/35\n");
  CHECK(lines_of(find_contributors(sample.stacks(), uses, {.by = By::line, .top = 2})) ==
        "a.cpp:40 30/30/0/30 30/30\n"
        "a.cpp:50 5/5/0/5 5/5\n");
}

TEST_CASE("a realloc ends the old block and is an allocation of the new size") {
  Sample sample;
  const StackId first = sample.stack({sample.frame({"first"})}), second = sample.stack({sample.frame({"second"})});
  const Tag block = sample.allocate(10, first);
  sample.allocate(3, first, 7);
  const Tag larger = sample.reallocate(block, 100, second);
  sample.free(larger, 3);  // by another thread: not temporary
  CHECK(lines_of(find_contributors(sample.stacks(), sample.finish(), {})) ==
        "second 100/100/0/0 100/100\n"
        "first 3/13/0/3 3/13\n");
}

TEST_CASE("stacks that are cut or not known are said to be so") {
  Sample sample;
  const FrameId f = sample.frame({"f"});
  sample.allocate(10, 0);
  sample.allocate(20, sample.stack({0, f}));
  sample.allocate(30, sample.stack({sample.frame({"malloc"})}));
  const Uses uses = sample.finish();
  const Contributors report = find_contributors(sample.stacks(), uses, {});
  CHECK(lines_of(report) ==
        "malloc 30/30/0/30 30/30\nf 20/20/0/20 20/20\n[unknown] 10/10/0/10 10/10\n[cut] 0/0/0/0 20/20\n");
  CHECK(report.of_unknown_stacks.allocated.bytes == 10);
  CHECK(folded(sample, uses, Metric::bytes) == "[cut];f 20\n[unknown] 10\nmalloc 30\n");
}

TEST_CASE("folded stacks have a line for each stack of functions, with names made harmless") {
  Sample sample;
  const FrameId main = sample.frame({"main"}), again = sample.frame({"main"});
  const FrameId odd = sample.frame({"inner\n", "rust<[u8; 4]>"});
  sample.free(sample.allocate(7, sample.stack({main, odd})));
  sample.allocate(1, sample.stack({main}));
  sample.allocate(2, sample.stack({again}));
  const Uses uses = sample.finish();
  CHECK(folded(sample, uses, Metric::bytes) == "main 3\nmain;rust<[u8: 4]>;inner? 7\n");
  CHECK(folded(sample, uses, Metric::temporary) == "main;rust<[u8: 4]>;inner? 1\n");
  CHECK(folded(sample, uses, Metric::live) == "main 3\n");
}

TEST_CASE("a recursion of 200,000 frames takes neither time nor stack that grow with its square") {
  Sample sample;
  const FrameId f = sample.frame({"f"});
  StackTable& stacks = const_cast<StackTable&>(sample.stacks());
  StackId at = 0;
  for (int i = 0; i < 200'000; ++i) {
    at = stacks.add_node({at, f});
    sample.allocate(1, at);
  }
  CHECK(lines_of(find_contributors(sample.stacks(), sample.finish(), {})) ==
        "f 200000/200000/0/200000 200000/200000\n");
}

TEST_CASE("of a deep stack a text has both ends") {
  Sample sample;
  StackId at = 0;
  std::vector<FrameId> frames;
  for (int i = 0; i < 60; ++i) frames.push_back(sample.frame({"f" + std::to_string(i)}));
  for (const FrameId frame : frames) at = const_cast<StackTable&>(sample.stacks()).add_node({at, frame});
  sample.allocate(1, at);
  const std::string text = to_text(find_contributors(sample.stacks(), sample.finish(), {.top = 1}));
  CHECK(text.find("\n  f20 at a.cpp:210 in app\n  ... 10 more ...\n  f9 at a.cpp:100 in app\n") != std::string::npos);
  CHECK(text.ends_with("  f0 at a.cpp:10 in app\n"));
}

TEST_CASE("a report of many functions in a deep stack does not grow with its square") {
  Sample sample;
  StackId at = 0;
  std::vector<FrameId> frames;
  for (int i = 0; i < 5000; ++i) frames.push_back(sample.frame({"f" + std::to_string(i)}));
  for (const FrameId frame : frames) at = const_cast<StackTable&>(sample.stacks()).add_node({at, frame});
  sample.allocate(1, at);
  const Contributors report = find_contributors(sample.stacks(), sample.finish(), {});
  REQUIRE(report.contributors.size() == 5000);
  std::size_t lines = 0;
  for (const Contributor& each : report.contributors) lines += each.stack.size();
  CHECK(lines == 5000 * 50);
  const Contributor& first = report.contributors.front();
  CHECK(first.stack_left_out == 4950);
  CHECK(first.stack[39].function == "f4960");
  CHECK(first.stack[40].function == "f9");
  CHECK(first.stack[49].function == "f0");
  CHECK(to_csv(report).find(";f9;...;f4960;") != std::string::npos);
}

TEST_CASE("what a terminal obeys in a name is neither in a text nor in CSV") {
  Sample sample;
  sample.allocate(1, sample.stack({sample.frame({"a\x1b[31m\n\tb;c"})}));
  const Contributors report = find_contributors(sample.stacks(), sample.finish(), {});
  for (const std::string& text : {to_text(report), to_csv(report)}) {
    CHECK(text.find_first_of("\x1b\t") == std::string::npos);
    CHECK(text.find("a [31m  b;c") != std::string::npos);
  }
  CHECK(to_csv(report).find("a?[31m??b:c") != std::string::npos);
}

TEST_CASE("functions of the same name in different libraries are different ones") {
  Sample sample;
  const FrameId main = sample.frame({"main"}), here = sample.frame({"init"}), there = sample.frame({"x:init", "init"});
  sample.allocate(10, sample.stack({main, here}));
  sample.allocate(20, sample.stack({main, there, sample.frame({"x:grow", "init"})}));
  const Uses uses = sample.finish();
  CHECK(lines_of(find_contributors(sample.stacks(), uses, {})) ==
        "x:grow 20/20/0/20 20/20\n"
        "init [app] 10/10/0/10 10/10\n"
        "init [libx.so.1] 0/0/0/0 20/20\n"
        "main 0/0/0/0 30/30\n"
        "x:init 0/0/0/0 20/20\n");
}

TEST_CASE("stacks are chosen by focus and ignore, and functions hidden") {
  Sample sample;
  const FrameId main = sample.frame({"main"}), load = sample.frame({"load"}), save = sample.frame({"save"});
  const FrameId grow = sample.frame({"x:grow"}), wrap = sample.frame({"wrap"});
  sample.allocate(10, sample.stack({main, load, wrap, grow}));
  sample.allocate(20, sample.stack({main, save, grow}));
  sample.allocate(40, sample.stack({main, wrap}));
  sample.allocate(80, 0);
  const Uses uses = sample.finish();
  const auto chosen = [&](const std::string& focus, const std::string& ignored) {
    return lines_of(find_contributors(sample.stacks(), select_stacks(uses, sample.stacks(), focus, ignored), {}));
  };
  CHECK(chosen("^load$", "") ==
        "x:grow 10/10/0/10 10/10\n"
        "load 0/0/0/0 10/10\n"
        "main 0/0/0/0 10/10\n"
        "wrap 0/0/0/0 10/10\n");
  CHECK(chosen("libx", "load").starts_with("x:grow 20/20/0/20 20/20\nmain 0/0/0/0 20/20\n"));
  CHECK(chosen("", "main") == "[unknown] 80/80/0/80 80/80\n");
  CHECK(chosen("nobody", "").empty());
  CHECK(lines_of(find_contributors(sample.stacks(), uses, {.hidden = "wrap|grow", .top = 4})) ==
        "[unknown] 80/80/0/80 80/80\n"
        "main 40/40/0/40 70/70\n"
        "save 20/20/0/20 20/20\n"
        "load 10/10/0/10 10/10\n");
  CHECK(folded(sample, uses, Metric::bytes, "^(main|wrap)$") == "[unknown] 120\nload;x:grow 10\nsave;x:grow 20\n");
  const Contributors large = find_contributors(sample.stacks(), uses, {.min = 0.25});
  CHECK(lines_of(large) == "[unknown] 80/80/0/80 80/80\nwrap 40/40/0/40 50/50\n");
  CHECK(large.left_out == 4);
}

TEST_CASE("a tree of callers leaves out what is small, and ends where stacks do not") {
  Sample sample;
  const FrameId main = sample.frame({"main"}), a = sample.frame({"a"}), f = sample.frame({"f"});
  sample.allocate(1, sample.stack({main, f}));
  sample.allocate(99, sample.stack({main, a, f}));
  CHECK(lines_of(find_contributors(sample.stacks(), sample.finish(), {.by = By::caller, .min = 0.02, .top = 1})) ==
        "f 100/100/0/100 100/100\n"
        "  a 99/99\n"
        "    main 99/99\n");

  Sample deep;
  const FrameId walk = deep.frame({"walk"});
  StackId at = 0;
  for (int i = 0; i < 100'000; ++i) {
    at = const_cast<StackTable&>(deep.stacks()).add_node({at, walk});
    if (i % 10 == 0) deep.allocate(1, at);
  }
  const Contributors report = find_contributors(deep.stacks(), deep.finish(), {.by = By::caller});
  std::size_t levels = 0;
  for (const std::vector<Caller>* callers = &report.contributors.at(0).callers; !callers->empty(); ++levels)
    callers = &callers->front().callers;
  CHECK(levels == caller_levels_max);
}

TEST_CASE("allocations are put together by thread, size and phase") {
  const auto lines_by = [](By by) {
    Sample sample(UseOptions{.by = by});
    sample.add({.kind = Kind::thread_name, .thread = 7, .label = "worker"});
    const Tag first = sample.allocate(64, 0);
    sample.mark("load");
    sample.allocate(70, 0, 7);
    sample.free(first, 7);
    sample.mark("run");
    sample.allocate(1000, 0, 7);
    sample.mark("load");
    sample.allocate(1, 0);
    const Contributors report =
        find_contributors(sample.stacks(), sample.finish(), {.by = by, .metric = Metric::bytes});
    CHECK(to_text(report).find("with callees") == std::string::npos);
    return lines_of(report);
  };
  CHECK(lines_by(By::thread) ==
        "thread 7 (worker) 1070/1070/0/1070 1070/1070\n"
        "thread 0 1/65/0/1 1/65\n");
  Sample sample(UseOptions{.by = By::thread});
  const Tag first = sample.allocate(64, 0), second = sample.allocate(64, 0, 5);
  sample.free(first, 7);
  sample.free(second, 5);
  const Contributors report = find_contributors(sample.stacks(), sample.finish(), {.by = By::thread});
  REQUIRE(report.contributors.size() == 3);
  for (const Contributor& each : report.contributors) {
    CHECK(each.self.freed == (each.name == "thread 0" ? 0 : 1));
    CHECK(each.self.freed_of_others == (each.name == "thread 7" ? 1 : 0));
  }
  CHECK(report.total.freed == 2);
  CHECK(to_text(report).find("\nthread 7") != std::string::npos);
  CHECK(lines_by(By::size) ==
        "896 - 1,023 bytes 1000/1000/0/1000 1000/1000\n"
        "64 - 79 bytes 70/134/0/70 70/134\n"
        "1 byte 1/1/0/1 1/1\n");
  CHECK(lines_by(By::phase) ==
        "run 1000/1000/0/1000 1000/1000\n"
        "load 71/71/0/71 71/71\n"
        "[before the first mark] 0/64/0/0 0/64\n");
}

TEST_CASE("reallocs that move their block count what they copy at most") {
  Sample sample;
  const StackId f = sample.stack({sample.frame({"f"})});
  std::uint64_t last = 0;
  const auto put = [&](Tag tag, std::uint64_t size, std::uint64_t address) {
    Event event{.kind = tag == 1 ? Kind::malloc : Kind::realloc, .size = size, .tag = tag, .old_tag = tag - 1};
    event.stack = f;
    event.address = address;
    event.old_address = std::exchange(last, address);
    sample.add(event);
  };
  put(1, 100, 0x1000);
  put(2, 200, 0x2000);  // moves 100 bytes
  put(3, 300, 0x2000);
  put(4, 50, 0x3000);  // moves 50 bytes
  const Contributors report = find_contributors(sample.stacks(), sample.finish(), {.metric = Metric::reallocated});
  CHECK(report.total.reallocated == 3);
  CHECK(report.total.moved == 2);
  CHECK(report.total.moved_bytes == 150);
  CHECK(to_text(report).find("copied at most") != std::string::npos);
  Sample without_addresses;
  without_addresses.reallocate(without_addresses.allocate(10, 0), 20, 0);
  CHECK(find_contributors(without_addresses.stacks(), without_addresses.finish(), {}).total.moved == unknown);
}

TEST_CASE("lifetimes, ends by other threads and reallocs are counted where the block was made") {
  Sample sample;
  const StackId f = sample.stack({sample.frame({"f"})}), g = sample.stack({sample.frame({"g"})});
  const Tag moved = sample.allocate(10, f);
  sample.free(sample.reallocate(moved, 20, g), 3);
  std::vector<Tag> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(sample.allocate(1, f));
  for (const Tag block : blocks) sample.free(block);
  const Uses uses = sample.finish();
  const Contributors report = find_contributors(sample.stacks(), uses, {.metric = Metric::short_lived});
  const Contributor& of_f = report.contributors.at(0);
  CHECK(of_f.name == "f");
  CHECK(of_f.self.short_lived == 101);  // up to 1,000 events
  CHECK(of_f.self.reallocated == 0);
  CHECK(lifetime_quantile(of_f.lifetimes, 0.001) == 1);
  CHECK(lifetime_quantile(of_f.lifetimes, 0.5) == 100);  // the longest, though its class ends later
  const Contributor& of_g = report.contributors.at(1);
  CHECK(of_g.self.reallocated == 1);
  CHECK(of_g.self.other_thread == 1);
  CHECK(!lifetime_quantile({}, 0.5));
}

TEST_CASE("of a slice, flows are those within it, and what is live was made before, too") {
  Sample sample(UseOptions{.slice = trace::SliceRange::parse("@from:@to")});
  const StackId f = sample.stack({sample.frame({"f"})}), g = sample.stack({sample.frame({"g"})});
  const Tag old = sample.allocate(100, f);
  sample.allocate(1000, g);
  sample.mark("from");
  sample.allocate(10, f);
  sample.free(sample.allocate(5, g));
  sample.free(old);
  sample.mark("to");
  sample.allocate(7777, g);
  const Contributors report = find_contributors(sample.stacks(), sample.finish(), {.metric = Metric::growth});
  CHECK(report.events == 5);
  CHECK(report.peak_event == 5);
  CHECK(lines_of(report) ==
        "g 1005/5/1/1000 1005/5\n"
        "f 110/10/0/10 110/10\n");
  CHECK(report.contributors[1].self.growth == -90);
  CHECK(report.total.growth == -90);
  CHECK(to_text(report).find("  -90 B  ") != std::string::npos);
}

TEST_CASE("where nothing grows, the report has no largest stack of it") {
  Sample sample;
  const StackId f = sample.stack({sample.frame({"f"})});
  sample.free(sample.allocate(10, f));
  const Contributors none = find_contributors(sample.stacks(), sample.finish(), {.metric = Metric::growth});
  CHECK(to_text(none).ends_with("\nnothing grows\n"));
  Sample grown;
  grown.allocate(10, grown.stack({grown.frame({"f"})}));
  const Contributors some = find_contributors(grown.stacks(), grown.finish(), {.metric = Metric::growth});
  CHECK(to_text(some).find("nothing grows") == std::string::npos);
}

TEST_CASE("reports are text, JSON and CSV") {
  Sample sample;
  sample.allocate(1, sample.stack({sample.frame({"main"}), sample.frame({"f(int, char)"})}));
  sample.allocate(2, 0);
  Contributors report = find_contributors(sample.stacks(), sample.finish(), {});
  report.name = "app.cmt";
  const auto titles = [](const std::string& prefix) {
    std::string text;
    for (const char* const title : {"allocated_blocks", "allocated_bytes", "peak_blocks", "peak_bytes", "leaked_blocks",
                                    "leaked_bytes", "temporary_blocks", "short_lived_blocks", "other_thread_blocks",
                                    "reallocated_blocks", "growth_bytes", "untouched_bytes"})
      text += "," + prefix + title;
    return text;
  };
  CHECK(to_csv(report) ==
        "name" + titles("") + titles("inclusive_") +
            ",lifetime_p50,lifetime_p90,lifetime_p99,stack,freed_blocks,freed_other_thread_blocks,"
            "moved_blocks,moved_bytes,untouched_unknown_bytes\n"
            "[unknown],1,2,1,2,1,2,0,0,0,0,2,,1,2,1,2,1,2,0,0,0,0,2,,,,,,,,,,\n"
            "\"f(int, char)\",1,1,1,1,1,1,0,0,0,0,1,,1,1,1,1,1,1,0,0,0,0,1,,,,,\"main;f(int, char)\",,,,,\n"
            "main,0,0,0,0,0,0,0,0,0,0,0,,1,1,1,1,1,1,0,0,0,0,1,,,,,\"main;f(int, char)\",,,,,\n");
  CHECK(
      to_text(report).starts_with("app.cmt: 2 events; 2 blocks, 3 B, of 1 stack\n"
                                  "  peak live: 2 blocks, 3 B, at event 2\n"
                                  "  stack not known: 1 block, 2 B\n"));
  CHECK(output::json_text(report).find("\"schema\": \"cmt.contributors/1\"") != std::string::npos);
}

}  // namespace
}  // namespace cmt::analysis
