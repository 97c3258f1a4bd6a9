// The parser of heaptrack's logs: the raw form, the interpreted form, and wrong lines.

#include <doctest/doctest.h>

#include "tests/logs/log_fixture.h"

using namespace cmt::logs;
using cmt::fixture::Lines;
using cmt::fixture::lines_of;

namespace {

Lines heaptrack_lines(std::string_view log) { return lines_of("heaptrack", log); }

}  // namespace

TEST_CASE("heaptrack: the raw form has addresses, times and samples") {
  CHECK(heaptrack_lines(
            "v 10400 3\nx 4 /bin\nX ./prog\nI 2000 5e298d\nm 1 -\nt 7f 0\n+ 18 9 55a4\nc 1f\n- 55a4\nR 3ef\nS "
            "leak:x\n") ==
        Lines{"malloc(24) = 55a4 time=0", "free(55a4) time=31000000", "sample(8249344) time=31000000"});
}

TEST_CASE("heaptrack: the interpreted form ends the newest block of a number") {
  CHECK(heaptrack_lines("v 10400 3\ns 4 main\ni 55 4\na 18 9\n+ 0\n+ 0\na 5 9\n+ 1\n- 0\n- 0\n- 1\n") ==
        Lines{"malloc(24) = 1 time=0", "malloc(24) = 2 time=0", "malloc(5) = 3 time=0", "free(2) time=0",
              "free(1) time=0", "free(3) time=0"});
}

TEST_CASE("heaptrack: a free of a number of which none lives names no other block") {
  CHECK(heaptrack_lines("a 18 9\n- 0\n+ 0\n") == Lines{"free(1) time=0", "malloc(24) = 2 time=0"});
}

TEST_CASE("heaptrack: the format of a log decides how its texts are written") {
  const auto module_and_function = [](std::string_view log) {
    cmt::StackTable stacks;
    ParsedLog parsed;
    parsed.use_stacks(stacks);
    REQUIRE(lines_of("heaptrack", log, parsed).size() == 1);
    return stacks.module(1).path + ": " + std::string(stacks.names(1)[0].function);
  };
  constexpr std::string_view rest = "i 55 1 2\nt 1 0\na 18 1\n+ 0\n";
  const std::string plain = "s /opt/my app\ns f(int, char)\n" + std::string(rest);
  CHECK(module_and_function("v 10150 2\n" + plain) == "/opt/my app: f(int, char)");
  CHECK(module_and_function("v 10000 1\n" + plain) == "/opt/my app: f(int, char)");
  CHECK(module_and_function("v 10200\n" + plain) == "/opt/my app: f(int, char)");
  CHECK(module_and_function("v 10500 3\ns b /opt/my app\ns c f(int, char)\n" + std::string(rest)) ==
        "/opt/my app: f(int, char)");
}

TEST_CASE("heaptrack: a module of format 2 may have blanks in its path, and a last word that is a number") {
  const auto modules = [](std::string_view log) {
    cmt::StackTable stacks;
    ParsedLog parsed;
    parsed.use_stacks(stacks);
    REQUIRE(lines_of("heaptrack", log, parsed).empty());
    std::string all;
    for (cmt::ModuleId id = 1; id < stacks.module_count(); ++id) {
      const cmt::Module& module = stacks.module(id);
      all += module.path + " " + std::to_string(module.begin) + "-" + std::to_string(module.end) + "\n";
    }
    return all;
  };
  CHECK(modules(
            "v 10100 2\nx /opt/my app\nm -\nm x 10 0 4 8 8\nm /lib/a b.so 100 0 10\nm /lib/new add 200 0 10\nc 1\n") ==
        "/opt/my app 16-32\n/lib/a b.so 256-272\n/lib/new add 512-528\n");
  CHECK(modules("v 10400 3\nx b /opt/my app\nm 1 -\nm 1 x 10 0 4 8 8\nm b /lib/a b.so 100 0 10\nm 4 vdso 0\nc 1\n") ==
        "/opt/my app 16-32\n/lib/a b.so 256-272\n");
}

TEST_CASE("heaptrack: format 0 states no number, and has addresses in the interpreted form") {
  CHECK(heaptrack_lines("v 100\ns main\ni 55 0 1\nt 1 0\n+ 18 1 55a4\n- 55a4\n") ==
        Lines{"malloc(24) = 55a4 time=0", "free(55a4) time=0"});
}

TEST_CASE("heaptrack: an unknown format is refused") {
  CHECK_THROWS_WITH_AS(heaptrack_lines("v 20000 4\n+ 18 1 55a4\n"),
                       "format 4 of heaptrack 2.0.0; this reader knows formats 0 to 3", UnknownFormat);
}

TEST_CASE("heaptrack: a module or a part of a stack that is wrong is said, and the numbers after it stay right") {
  cmt::StackTable stacks;
  ParsedLog parsed;
  parsed.use_stacks(stacks);
  const std::string wrong = "? a module or a part of a call stack";
  CHECK(lines_of("heaptrack",
                 "v 10400 3\ns 9 short\ns 4 main\ni 55\ni 55 9\ni 55 0 9\ni 55 0 2 2\ni 56 0 2\nt 9 0\nt 5 9\n"
                 "t 5 0\nm 4\nm 2 /a 10 0\na 18 3\n+ 0\n",
                 parsed) ==
        Lines{wrong, wrong, wrong, wrong, wrong, wrong, wrong, wrong, wrong, "malloc(24) = 1 time=0 stack=1"});
  CHECK(stacks.names(stacks.frame_count() - 1)[0].function == "main");
}

TEST_CASE("heaptrack: what is wrong is said") {
  CHECK(heaptrack_lines("v x") == Lines{"? v VERSION FORMAT"});
  CHECK(heaptrack_lines("v 10400 x") == Lines{"? v VERSION FORMAT"});
  CHECK(heaptrack_lines("v 10400 3\nx /bin/prog") == Lines{"? x LENGTH PROGRAM"});
  CHECK(heaptrack_lines("+ xyz") == Lines{"? + and hexadecimal numbers"});
  CHECK(heaptrack_lines("+ 10 x 10") == Lines{"? + SIZE STACK ADDRESS"});
  CHECK(heaptrack_lines("+ 10 1") == Lines{"? + SIZE STACK ADDRESS"});
  CHECK(heaptrack_lines("+ 1") == Lines{"? + and a number that an 'a' line gave"});
  CHECK(heaptrack_lines("a 1 1\n- 1") == Lines{"? - and a number that an 'a' line gave"});
  CHECK(heaptrack_lines("- x") == Lines{"? - and a hexadecimal number"});
  CHECK(heaptrack_lines("a x") == Lines{"? a SIZE STACK"});
  CHECK(heaptrack_lines("c x") == Lines{"? c MILLISECONDS"});
  CHECK(heaptrack_lines("c 10000000000") == Lines{"? c MILLISECONDS"});
  CHECK(heaptrack_lines("R x") == Lines{"? R PAGES"});
  CHECK(heaptrack_lines("I 0 1") == Lines{"? I PAGE_SIZE PAGES"});
  CHECK(heaptrack_lines("Z 1") == Lines{"? a record of heaptrack"});
}
