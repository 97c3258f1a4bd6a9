// The parser of valgrind's output: calls of C and C++, nested calls, times, and wrong lines.

#include <doctest/doctest.h>

#include "tests/logs/log_fixture.h"

using namespace cmt::logs;
using cmt::fixture::Lines;
using cmt::fixture::lines_of;

namespace {

Lines valgrind_lines(std::string_view log) { return lines_of("valgrind", log); }

}  // namespace

TEST_CASE("valgrind: calls of C and C++ are found") {
  CHECK(valgrind_lines("--12-- malloc(10) = 0x4A6B040\n--12-- calloc(1,8) = 0x10\n--12-- realloc(0x10,20) = 0x20\n"
                       "--12-- memalign(al 64, size 128) = 0x40\n--12-- free(0x20)\n--12-- malloc(9) = 0x0\n"
                       "--12-- _Znwm(4) = 0x30\n--12-- _ZnamRKSt9nothrow_t(4) = 0x50\n--12-- _ZdaPvm(0x50)\n"
                       "--12-- _ZnwmSt11align_val_t(size 64, al 64) = 0x80\n--12-- _ZdlPvmSt11align_val_t(0x80)\n") ==
        Lines{"malloc(10) = 4a6b040", "calloc(1, 8) = 10", "realloc(10, 20) = 20", "memalign(64, 128) = 40", "free(20)",
              "malloc(9) = 0", "operator new(4) = 30", "operator new[](4, nothrow) = 50", "operator delete[](50)",
              "operator new(64, align=64) = 80", "operator delete(80)"});
}

TEST_CASE("valgrind: a call within a realloc is part of it") {
  CHECK(valgrind_lines("--12-- realloc(0x0,20)malloc(20) = 0x10\n--12-- realloc(0x10,0)free(0x10)\n--12--  = 0\n") ==
        Lines{"realloc(0, 20) = 10", "realloc(10, 0) = 0"});
}

TEST_CASE("valgrind: a call without a result in one line with the next one is not given that one's block") {
  const std::string wrong = "? a known call with its result";
  CHECK(valgrind_lines("--12-- aligned_alloc(al 32, size 96)malloc(8) = 0x10\n--12-- posix_memalign(al 64, size 9)\n"
                       "--12-- malloc_usable_size(0x0)free(0x10)\n") ==
        Lines{wrong, "malloc(8) = 10", wrong, "free(10)"});
}

TEST_CASE("valgrind: time stamps are days, hours, minutes and seconds") {
  CHECK(valgrind_lines("--00:00:00:01.500 12-- free(0x0)\n--01:01:01:02.000 12-- free(0x0)") ==
        Lines{"free(0) time=0", "free(0) time=90060500000000"});
}

TEST_CASE("valgrind: what else it says is passed over") {
  CHECK(
      valgrind_lines("==12== Memcheck\n**12** words\n--12-- Reading syms from libc.so\n--12-- REDIR: 0x40 (x:strlen)\n"
                     "--12-- malloc_usable_size(0x10) = 8\n")
          .empty());
}

TEST_CASE("valgrind: what is wrong is said") {
  CHECK(valgrind_lines("hello") == Lines{"? --PID-- or ==PID=="});
  CHECK(valgrind_lines("--99:00:00:01.5-- free(0x10)") == Lines{"? --PID-- or ==PID=="});
  for (const std::string_view call :
       {"malloc(10)", "malloc(10) = x", "malloc(x) = 0x10", "malloc(10 = 0x10", "frob(10)", "calloc(1) = 0x10",
        "free(0x10) = 0x20", "realloc(0x0,20)frob(20) = 0x10"}) {
    CAPTURE(call);
    CHECK(valgrind_lines("--12-- " + std::string(call)) == Lines{"? a known call with its result"});
  }
}

TEST_CASE("valgrind: a second process is an error, unless one is chosen") {
  constexpr std::string_view log = "--1-- free(0x10)\n--2-- free(0x20)";
  CHECK_THROWS_AS(valgrind_lines(log), SeveralProcesses);
  CHECK(lines_of("valgrind", log, ParsedLog(2)) == Lines{"free(20)"});
}
