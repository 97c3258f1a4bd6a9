// The parser of kdump's output: columns, times, other records, processes, and wrong lines.

#include <doctest/doctest.h>

#include "tests/logs/log_fixture.h"

using namespace cmt::logs;
using cmt::fixture::Lines;
using cmt::fixture::lines_of;

namespace {

Lines kdump_lines(std::string_view log) { return lines_of("kdump", log); }

}  // namespace

TEST_CASE("kdump: malloc, realloc and free are found behind a pid that fills its column or not") {
  CHECK(kdump_lines(" 61039 make     USER  0x800607420 = malloc(26)\n"
                    "061039 make     USER  0x800607440 = realloc(0x800607420, 17)\n"
                    "  61039 make     USER  free(0x800607440)\n"
                    " 61039 make     USER  free(0x0)\n"
                    " 61039 make     USER  0x0 = malloc(99)") == Lines{"malloc(26) = 800607420",
                                                                       "realloc(800607420, 17) = 800607440",
                                                                       "free(800607440)", "free(0)", "malloc(99) = 0"});
}

TEST_CASE("kdump: a command's name may hold blanks, digits and points, and stand beside a thread and times") {
  CHECK(kdump_lines("61039 Web Content USER  free(0x10)") == Lines{"free(10)"});
  CHECK(kdump_lines("61039 python3.11 USER  free(0x10)") == Lines{"free(10)"});
  CHECK(kdump_lines("61039 7 USER  free(0x10)") == Lines{"free(10)"});
  CHECK(kdump_lines("61039 100123 7 USER  free(0x10)\n61039 100124 7 1.000000 USER  free(0x10)") ==
        Lines{"free(10)", "free(10) thread=1 time=0"});
  CHECK(kdump_lines("61039/100123 Web Content USER  free(0x10)\n61039/100124 a b USER  free(0x10)") ==
        Lines{"free(10)", "free(10) thread=1"});
}

TEST_CASE("kdump: times are absolute, elapsed or relative, and relative ones add up over all records") {
  CHECK(kdump_lines("1 a 1536334807.907404 USER  free(0x0)\n1 a 1536334807.907406 USER  free(0x0)") ==
        Lines{"free(0) time=0", "free(0) time=2000"});
  CHECK(kdump_lines("1 a 1536334807.907404 0.5000001 0.100000 USER  free(0x0)\n"
                    "1 a 1536334807.907406123 0.5000001 0.100000 USER  free(0x0)") ==
        Lines{"free(0) time=0", "free(0) time=2123"});
  CHECK(kdump_lines("1 a 0.500000 0.100000 USER  free(0x0)\n1 a 0.700000 0.200000 USER  free(0x0)") ==
        Lines{"free(0) time=0", "free(0) time=200000000"});
  CHECK(kdump_lines("1 a 0.500000 USER  free(0x0)\n1 a 0.000001 RET   getpid 1\n1 a 0.000002 USER  free(0x0)") ==
        Lines{"free(0) time=0", "free(0) time=3000"});
}

TEST_CASE("kdump: what is about something else is passed over") {
  CHECK(kdump_lines(
            "1 a USER  malloc_init()\n1 a USER  RTLD: init 0x10\n1 a CALL  getpid\n1 a GIO   fd 1 wrote 2 bytes\n\n")
            .empty());
}

TEST_CASE("kdump: what is wrong is said") {
  CHECK(kdump_lines("hello") == Lines{"? a record of kdump"});
  CHECK(kdump_lines("make USER  free(0x10)") == Lines{"? a pid and a command before USER"});
  for (const std::string_view body :
       {"free(10)", "free(0x10", "0x10 = malloc()", "0x10 = malloc(26) ?", "0x10 = realloc(0x10)", "0x10 = calloc(26)",
        "24 00 01", "0x = malloc(1)", "0x11111111111111111 = malloc(1)", "0x10 = malloc(99999999999999999999)"}) {
    CAPTURE(body);
    CHECK(kdump_lines("1 a USER  " + std::string(body)) == Lines{"? malloc, realloc or free behind USER"});
  }
}

TEST_CASE("kdump: a second process is an error, unless one is chosen") {
  constexpr std::string_view log = "1 a USER  free(0x10)\n2 b USER  free(0x20)\n1 a USER  free(0x30)";
  CHECK_THROWS_WITH(kdump_lines(log), "processes 1 and 2 are in this log");
  CHECK(lines_of("kdump", log, ParsedLog(2)) == Lines{"free(20)"});
  CHECK(lines_of("kdump", log, ParsedLog(3)).empty());
  CHECK(lines_of("kdump", log, ParsedLog::of_processes()).empty());
}
