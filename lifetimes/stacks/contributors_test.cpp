#include "lifetimes/stacks/contributors.h"

#include <doctest/doctest.h>

#include <initializer_list>

#include "lifetimes/stacks/folded.h"

namespace cmt::lifetimes {
namespace {

/// A table of stacks, and the allocations of a trace with them.
class Sample {
 public:
  Sample() : complaints_(false, [](const std::string&) {}), counter_(complaints_) {
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

  const StackTable& stacks() const { return stacks_; }
  StackUses finish() { return counter_.finish(); }

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
  StackUseCounter counter_;
  Tag last_tag_ = 0;
};

/// A contributor in a line: "name self-peak/self-bytes/temporary/at-end inclusive-peak/bytes".
std::string line_of(const Contributor& each) {
  const auto number = [](std::uint64_t value) { return std::to_string(value); };
  return each.name + " " + number(each.self.peak.bytes) + "/" + number(each.self.allocated.bytes) + "/" +
         number(each.self.temporary) + "/" + number(each.self.leaked.bytes) + " " + number(each.inclusive.peak.bytes) +
         "/" + number(each.inclusive.allocated.bytes);
}

std::string lines_of(const Contributors& report) {
  std::string text;
  for (const Contributor& each : report.contributors) text += line_of(each) + "\n";
  return text;
}

std::string folded(const Sample& sample, const StackUses& uses, Metric metric) {
  std::string text;
  write_folded(sample.stacks(), uses, metric, [&](const std::string& piece) { text += piece; });
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
  const StackUses uses = sample.finish();
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
  const Contributors skipping = find_contributors(sample.stacks(), uses, {.skipped = "^par|list::"});
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
  const StackUses uses = sample.finish();
  CHECK(lines_of(find_contributors(sample.stacks(), uses, {.by = By::caller, .top = 3})) ==
        "x:grow <- b 20/20/0/20 20/20\n"
        "x:grow <- a 10/10/0/10 10/10\n"
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
  const StackUses uses = sample.finish();
  const Contributors report = find_contributors(sample.stacks(), uses, {});
  CHECK(lines_of(report) == "[unknown] 40/40/0/40 40/40\nf 20/20/0/20 20/20\n[cut] 0/0/0/0 20/20\n");
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
  const StackUses uses = sample.finish();
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
  const StackUses uses = sample.finish();
  CHECK(lines_of(find_contributors(sample.stacks(), uses, {})) ==
        "x:grow 20/20/0/20 20/20\n"
        "init [app] 10/10/0/10 10/10\n"
        "init [libx.so.1] 0/0/0/0 20/20\n"
        "main 0/0/0/0 30/30\n"
        "x:init 0/0/0/0 20/20\n");
}

TEST_CASE("allocation functions are told by their names") {
  for (const char* const name :
       {"malloc", "operator new[](unsigned long)", "std::allocator<char>::allocate(unsigned long)",
        "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >::_M_create(unsigned long&, "
        "unsigned long)",
        "std::_Rb_tree<int, std::pair<int const, f(int)>, std::less<int> >::_M_get_node()",
        "int* std::__1::__libcpp_allocate<int>(unsigned long)", "alloc::alloc::exchange_malloc"}) {
    CAPTURE(name);
    CHECK(is_allocation_function(name));
  }
  for (const char* const name : {"my_malloc", "pool::allocate(int)", "std::vector<int>::reserve(unsigned long)", "",
                                 "<<<((", "f(std::allocator<int>::allocate)"}) {
    CAPTURE(name);
    CHECK(!is_allocation_function(name));
  }
  CHECK(plain_name("std::enable_if<true, int>::type a::(anonymous namespace)::f<(char)60>(int (*)(char)) const") ==
        "a::::f");
}

TEST_CASE("reports are text, JSON and CSV") {
  Sample sample;
  sample.allocate(1, sample.stack({sample.frame({"main"}), sample.frame({"f(int, char)"})}));
  sample.allocate(2, 0);
  Contributors report = find_contributors(sample.stacks(), sample.finish(), {});
  report.name = "app.cmt";
  CHECK(to_csv(report) ==
        "name,allocated_blocks,allocated_bytes,peak_blocks,peak_bytes,leaked_blocks,leaked_bytes,temporary_blocks,"
        "inclusive_allocated_blocks,inclusive_allocated_bytes,inclusive_peak_blocks,inclusive_peak_bytes,"
        "inclusive_leaked_blocks,inclusive_leaked_bytes,inclusive_temporary_blocks,stack\n"
        "[unknown],1,2,1,2,1,2,0,1,2,1,2,1,2,0,\n"
        "\"f(int, char)\",1,1,1,1,1,1,0,1,1,1,1,1,1,0,\"main;f(int, char)\"\n"
        "main,0,0,0,0,0,0,0,1,1,1,1,1,1,0,\"main;f(int, char)\"\n");
  CHECK(
      to_text(report).starts_with("app.cmt: 2 events; 2 blocks, 3 B, of 1 stack\n"
                                  "  peak live: 2 blocks, 3 B, at event 2\n"
                                  "  stack not known: 1 block, 2 B\n"));
  CHECK(output::json_text(report).find("\"schema\": \"cmt.contributors/1\"") != std::string::npos);
}

}  // namespace
}  // namespace cmt::lifetimes
