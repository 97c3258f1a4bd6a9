// The parsers of formats in which each line is an event by itself: android, logalloc, mtrace, rep.

#include <doctest/doctest.h>

#include "tests/logs/log_fixture.h"

using namespace cmt::logs;
using cmt::fixture::Lines;
using cmt::fixture::lines_of;

TEST_CASE("android: a record with times is taken at its end, a free at its start") {
  CHECK(lines_of(
            "android",
            "1: malloc 0x10 8 100 150\n2: calloc 0x20 2 8 160 170\n1: free 0x10 300 400\n2: thread_done 0x0 500 600") ==
        Lines{"malloc(8) = 10 time=50", "calloc(2, 8) = 20 thread=1 time=70", "free(10) time=200",
              "thread_exit() thread=1 time=400"});
  CHECK(lines_of("android", "1: malloc 0x10 8 100 150\n1: thread_done 0x0 290") ==
        Lines{"malloc(8) = 10 time=50", "thread_exit() time=190"});
}

TEST_CASE("android: what is wrong is said") {
  for (const std::string_view line :
       {"hello", "1: frob 0x10", "x: free 0x10", "1: malloc 0x10", "1: malloc 0x10 x", "1: free x",
        "1: malloc 0x10 1 2", "1: malloc 0x10 1 2 3 4", "1: realloc 0x10 8", "1: calloc 0x10 1 2 3 4 5"}) {
    CAPTURE(line);
    CHECK(lines_of("android", line) == Lines{"? TID: CALL ADDRESS and its numbers"});
  }
}

TEST_CASE("logalloc: lines are of a process, and mostly of a thread") {
  CHECK(lines_of("logalloc",
                 "1 1 malloc(32)=0x10\n1 2 realloc(0x10,64)=0x20\n1 2 free(0x20)\n1 1 free((nil))\n"
                 "1 1 jemalloc_stats()\n1 1 malloc(9)=(nil)\n1 free(0x0)") ==
        Lines{"malloc(32) = 10", "realloc(10, 64) = 20 thread=1", "free(20) thread=1", "free(0)", "malloc(9) = 0",
              "free(0)"});
}

TEST_CASE("logalloc: munged pointers are names in decimal") {
  CHECK(lines_of("logalloc", "1 1 malloc(42)=#1\n1 1 malloc(24)=#12\n1 2 free(#1)\n1 1 realloc(#12,64)=#12") ==
        Lines{"malloc(42) = 1", "malloc(24) = c", "free(1) thread=1", "realloc(c, 64) = c"});
}

TEST_CASE("logalloc: a munged pointer among addresses is damage") {
  CHECK(lines_of("logalloc", "1 1 malloc(42)=0x10\n1 1 free(#7)\n1 1 free(0x10)") ==
        Lines{"malloc(42) = 10", "? an address, as in the lines before", "free(10)"});
}

TEST_CASE("logalloc: what is wrong is said") {
  for (const std::string_view line : {"hello", "malloc(1)=0x10", "1 x malloc(1)=0x10", "1 2 3 malloc(1)=0x10"}) {
    CAPTURE(line);
    CHECK(lines_of("logalloc", line) == Lines{"? PID TID CALL(ARGUMENTS)"});
  }
  for (const std::string_view call : {"frob(1)=0x10", "malloc(1)", "malloc(1)=x", "malloc(1=0x10", "free(0x10)=0x20"}) {
    CAPTURE(call);
    CHECK(lines_of("logalloc", "1 1 " + std::string(call)) == Lines{"? a known call with its result behind '='"});
  }
  CHECK_THROWS_AS(lines_of("logalloc", "1 1 free(0x10)\n2 2 free(0x10)"), SeveralProcesses);
}

TEST_CASE("mtrace: a caller may be missing or hold blanks, and a realloc is two lines") {
  CHECK(lines_of("mtrace",
                 "= Start\n@ ./my prog:(f - g)[0x40] + 0x10 0x20\n@ a:[0x40] < 0x10\n@ a:[0x40] > 0x30 0x40\n"
                 "- 0x30\n+ (nil) 0x99\n@ a:[0x40] ! 0x50 0x60\n= End\n") ==
        Lines{"malloc(32) = 10", "realloc(10, 64) = 30", "free(30)", "malloc(153) = 0", "realloc(50, 96) = 0"});
}

TEST_CASE("mtrace: what is wrong is said, and half a realloc is none") {
  for (const std::string_view line : {"hello", "+ 0x10", "- x", "+ 0x10 x", "* 0x10 0x20", "-"}) {
    CAPTURE(line);
    CHECK(lines_of("mtrace", line) == Lines{"? +, -, <, > or ! with an address"});
  }
  CHECK(lines_of("mtrace", "> 0x10 0x20") == Lines{"? '<' before '>'"});
  CHECK(lines_of("mtrace", "< 0x10\n- 0x20") == Lines{"? '>' behind '<'", "free(20)"});
  CHECK(lines_of("mtrace", "< 0x10\n< 0x20\n> 0x30 0x40") == Lines{"? '>' behind '<'", "realloc(20, 64) = 30"});
  CHECK(lines_of("mtrace", "< 0x10") == Lines{"? '>' behind '<'"});
}

TEST_CASE("rep: a header of numbers, and blocks that have names only") {
  CHECK(lines_of("rep", "20000\n2\n4\n1\na 0 512\nr 0 640\nr 0 0\nf 0\nf -1\n") ==
        Lines{"malloc(512) = 1", "realloc(1, 640) = 1", "realloc(1, 0) = 0", "free(1)", "free(0)"});
  CHECK(lines_of("rep", "a 0 512\nf 0") == Lines{"malloc(512) = 1", "free(1)"});
}

TEST_CASE("rep: what is wrong is said") {
  for (const std::string_view line : {"x 0 1", "a 0", "a x 1", "f", "f 0 1", "a 0 1 2", "hello"}) {
    CAPTURE(line);
    CHECK(lines_of("rep", line) == Lines{"? a ID SIZE, r ID SIZE or f ID"});
  }
}
