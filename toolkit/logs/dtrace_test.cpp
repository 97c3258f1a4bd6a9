// The parser of DTrace's output: columns, calls, the raw form, and wrong lines.

#include <doctest/doctest.h>

#include "tests/logs/log_fixture.h"

using namespace cmt::logs;
using cmt::fixture::Lines;
using cmt::fixture::lines_of;

namespace {

Lines dtrace_lines(std::string_view log) { return lines_of("dtrace", log); }

}  // namespace

TEST_CASE("dtrace: columns are looked up by name, also where they change") {
  CHECK(dtrace_lines("@record-type:call-trace\ttimestamp-unix-ns\ttid\tresult\tname\targs\n"
                     "call-trace\t100\t7\t81d\tmalloc\t96\n"
                     "@record-type:aspace-sample\ttimestamp-unix-ns\tname\n"
                     "aspace-sample\t100\tmalloc\n"
                     "@record-type:call-trace\targs\tname\ttimestamp-unix-ns\tresult\n"
                     "call-trace\t81d\tfree\t150\t\n") ==
        Lines{"malloc(96) = 81d time=0", "free(81d) thread=1 time=50"});
}

TEST_CASE("dtrace: every call has its arguments, and calls of the system are passed over") {
  const std::string begin = "call-trace\t1\tx\t";
  CHECK(dtrace_lines(begin + "calloc\t2 8\t10\n" + begin + "realloc\t10 340\t20\n" + begin +
                     "posix_memalign\t64 128\t40\n" + begin + "aligned_alloc\t32 64\t60\n" + begin +
                     "reallocarray\t60 2 3\t70\n" + begin + "malloc\t9\t\n" + begin +
                     "mmap\t0 2097152 3 1002 -1 0\t820000000\n" + begin + "munmap\t820000000 4096\t0") ==
        Lines{"calloc(2, 8) = 10 time=0", "realloc(10, 340) = 20 time=0", "posix_memalign(64, 128) = 40 time=0",
              "aligned_alloc(32, 64) = 60 time=0", "reallocarray(60, 2, 3) = 70 time=0", "malloc(9) = 0 time=0"});
}

TEST_CASE("dtrace: the raw form is read over its frames") {
  CHECK(dtrace_lines("\nmalloc(96): 81d 100\t5\t7\t1\n   libc`malloc(x)\n   free(y)+0x4\n\n\nrealloc(81d, 340): 82d "
                     "200\t5\t8\t1 2\n\n"
                     "free(82d) 300\t5\t7\t1\n\n") ==
        Lines{"malloc(96) = 81d time=0", "realloc(81d, 340) = 82d thread=1 time=100", "free(82d) time=200"});
}

TEST_CASE("dtrace: what is wrong is said") {
  CHECK(dtrace_lines("hello") == Lines{"? a record of DTrace"});
  CHECK(dtrace_lines("call-trace\t1\tx\tfrob\t1\t2") == Lines{"? the name of a known call"});
  CHECK(dtrace_lines("call-trace\t1\tx\tmalloc\tx\t2") == Lines{"? the call's arguments"});
  CHECK(dtrace_lines("call-trace\t1\tx\tcalloc\t1\t2") == Lines{"? the call's arguments"});
  CHECK(dtrace_lines("call-trace\t1\tx\tmalloc\t1 2\t2") == Lines{"? the call's arguments"});
  CHECK(dtrace_lines("call-trace\tx\tx\tmalloc\t1\t2") == Lines{"? a time in nanoseconds"});
  CHECK(dtrace_lines("call-trace\t1\tx\tmalloc\t1\txyz") == Lines{"? a result"});
  CHECK(dtrace_lines("call-trace\t1\tx\tmalloc\t1") == Lines{"? a result"});
  CHECK(dtrace_lines("call-trXce\t1\tx\tmalloc\t1\t10") == Lines{"? a record of DTrace"});
  CHECK(dtrace_lines("@record-type:call-trace\ttid\tname\targs\ncall-trbce\t1\tfree\t10") ==
        Lines{"? a record of DTrace"});
  CHECK(dtrace_lines("@record-type:call-trace\ttid\tname\targs\ncall-trace\tx\tfree\t10") ==
        Lines{"? a thread's number"});
}
