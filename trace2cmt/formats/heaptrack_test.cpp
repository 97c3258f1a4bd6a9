// The parser of heaptrack's logs: the raw form, the interpreted form, and wrong lines.

#include <doctest/doctest.h>

#include "tests/logs/log_fixture.h"

using namespace cmt::trace2cmt;
using fixture::Lines;
using fixture::lines_of;

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

TEST_CASE("heaptrack: what is wrong is said") {
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
