// The parser of ltrace's output: pids, unfinished and nested calls, arguments, threads, and processes.

#include <doctest/doctest.h>

#include "tests/logs/log_fixture.h"

using namespace cmt::logs;
using cmt::fixture::Lines;
using cmt::fixture::lines_of;

namespace {

Lines ltrace_lines(std::string_view log) { return lines_of("ltrace", log); }

}  // namespace

TEST_CASE("ltrace: calls are found with and without a pid, a program, a time and a caller") {
  CHECK(ltrace_lines("malloc(10) = 0x55\n12 free(0x55) = <void>") == Lines{"malloc(10) = 55", "free(55) thread=1"});
  CHECK(
      ltrace_lines(
          "[pid 12] prog->malloc(10)      = 0x55\n[pid 12] prog->free(nil) = <void>\n[pid 12] free((nil)) = <void>") ==
      Lines{"malloc(10) = 55", "free(0)", "free(0)"});
  CHECK(ltrace_lines("12 [0x401136] prog->malloc(10) = nil") == Lines{"malloc(10) = 0"});
  CHECK(ltrace_lines("12 1700000000.000001 prog->free(0) = <void>\n12 1700000000.000003 prog->free(0x10) = <void>") ==
        Lines{"free(0) time=0", "free(10) time=2000"});
  CHECK(ltrace_lines("12 14:02:01 free(0) = <void>\n12 14:02:01.250000 free(0) = <void>") ==
        Lines{"free(0) time=0", "free(0) time=250000000"});
  CHECK(
      ltrace_lines("12 0.000000 free(0) = <void>\n12 0.000002 free(0) = <void>\n12 0.000003 free(0) = <void>").back() ==
      "free(0) time=5000");
}

TEST_CASE("ltrace: an unfinished allocation is taken where it returns, a free where it begins") {
  CHECK(ltrace_lines("1 p->malloc(40 <unfinished ...>\n"
                     "2 p->free(0x20 <unfinished ...>\n"
                     "1 <... malloc resumed> )      = 0x20\n"
                     "2 <... free resumed> )        = <void>\n") == Lines{"free(20) thread=1", "malloc(40) = 20"});
}

TEST_CASE("ltrace: a call without return yet is unfinished") {
  CHECK(ltrace_lines("1 p->malloc(41 <no return ...>\n2 +++ exited (status 0) +++\n1 <... malloc resumed> ) = 0x20") ==
        Lines{"thread_exit() thread=1", "malloc(41) = 20"});
}

TEST_CASE("ltrace: a call within another of the same thread is part of that one") {
  CHECK(ltrace_lines("q->_Znam(40, 4 <unfinished ...>\n"
                     "lib->_Znwm(40, 4 <unfinished ...>\n"
                     "lib->malloc(40)               = 0x20\n"
                     "<... _Znwm resumed> )         = 0x20\n"
                     "<... _Znam resumed> )         = 0x20\n"
                     "q->_ZdlPvm(0x20, 40, 0 <unfinished ...>\n"
                     "lib->free(0x20)               = <void>\n"
                     "<... _ZdlPvm resumed> )       = 0\n") ==
        Lines{"operator new[](40) = 20", "operator delete(20, 40)"});
}

TEST_CASE("ltrace: a call of something else hides nothing") {
  CHECK(
      ltrace_lines(
          "p->strdup(\"x\" <unfinished ...>\nlibc->malloc(2) = 0x20\n<... strdup resumed> ) = 0x20\nputs(\"(\") = 1") ==
      Lines{"malloc(2) = 20"});
}

TEST_CASE("ltrace: a thread's end is an event, signals are not") {
  CHECK(ltrace_lines("1 --- SIGCHLD (Child exited) ---\n1 +++ exited (status 0) +++\n+++ exited (status 0) +++") ==
        Lines{"thread_exit()"});
}

TEST_CASE("ltrace: -x names the library after the function, and -T has a duration after the result") {
  CHECK(ltrace_lines("malloc@libc.so.6(100)         = 0x10\n12 0.5 __libc_free@libc.so.6(0x10) = <void> <0.000092>") ==
        Lines{"malloc(100) = 10", "free(10) thread=1 time=0"});
  CHECK(ltrace_lines("malloc(100 <unfinished ...>\nmalloc@libc.so.6(100)         = 0x10 <0.000914>\n"
                     "<... malloc resumed> )         = 0x10 <0.000914>\n") == Lines{"malloc(100) = 10"});
}

TEST_CASE("ltrace: -C names operators with their types") {
  CHECK(ltrace_lines("[0x55f0] p->operator new(unsigned long)(4, 0x7f, 0x7f, 0x55 <unfinished ...>\n"
                     "[0x7f6f] libstdc++.so.6->malloc(4)  = 0x20\n"
                     "[0x55f0] <... operator new(unsigned long) resumed> ) = 0x20\n"
                     "operator new[](unsigned long)@libstdc++.so.6(160, 4, 0, 0) = 0x30\n"
                     "operator new(unsigned long, std::nothrow_t const&)(9, 4, 0, 0) = 0x40\n"
                     "operator new[](unsigned long, std::align_val_t)(64, 128, 0, 0) = 0x80\n"
                     "p->operator delete(void*, unsigned long)(0x20, 4, 0, 0) = 0\n"
                     "p->operator delete[](void*)(0x30, 4, 0, 0) = 0\n"
                     "p->operator delete[](void*, unsigned long, std::align_val_t)(0x80, 64, 128, 0) = 0\n") ==
        Lines{"operator new(4) = 20", "operator new[](160) = 30", "operator new(9, nothrow) = 40",
              "operator new[](64, align=128) = 80", "operator delete(20, 4)", "operator delete[](30)",
              "operator delete[](80, 64, align=128)"});
}

TEST_CASE("ltrace: functions that are no calls of the allocator are counted, whatever their names") {
  const auto count = [](std::string_view line) {
    ParsedLog log;
    find_log_format("ltrace")->make_parser()->parse(line, log);
    return log.expected().empty() && log.events().empty() ? list_kinds(log.left_out()) : "not understood";
  };
  CHECK(count("p->puts(\"a (b) = c\") = 1") == "1 puts");
  CHECK(count("p->putchar(')', 0) = 41") == "1 putchar");
  CHECK(count("p->std::vector<int>::push_back(int const&)(0x7f, 0x7f, 0, 0) = 0") ==
        "1 std::vector<int>::push_back(int const&)");
  CHECK(count("p->(anonymous namespace)::Pool::operator->() const(0x7f, 0, 0, 0) = 0") ==
        "1 (anonymous namespace)::Pool::operator->() const");
  CHECK(count("operator new(void*)(0x7f, 0, 0, 0) = 0") == "1 operator new(void*)");
  CHECK(count("p->f(int)(3, 4 <unfinished ...>") == "1 f(int)");
  CHECK(count("hello world (again)") == "not understood");
}

TEST_CASE("ltrace: an operator new that throws is refused, and hides no later call") {
  constexpr std::string_view thrown =
      "p->_Znam(0x4000000000000000, 1, 0, 0 <unfinished ...>\nlib->_Znwm(0x4000000000000000, 1, 0, 0 <unfinished ...>\n"
      "lib->malloc(4611686018427387904)      = 0\nlib->malloc(136)       = 0x90\nlib->free(0x90) = <void>\n";
  CHECK(ltrace_lines(std::string(thrown) + "p->malloc(5) = 0x20\n") ==
        Lines{"operator new[](4611686018427387904) = 0", "malloc(136) = 90", "free(90)", "malloc(5) = 20"});
  CHECK(ltrace_lines("p->_ZnamRKSt9nothrow_t(0x4000000000000000, 1, 0, 0 <unfinished ...>\n" + std::string(thrown) +
                     "<... _ZnamRKSt9nothrow_t resumed> ) = 0\np->malloc(5) = 0x20\n") ==
        Lines{"operator new[](4611686018427387904, nothrow) = 0", "malloc(5) = 20"});
  CHECK(ltrace_lines("p->_Znwm(64, 1, 0, 0 <unfinished ...>\nlib->malloc(64)      = 0\nlib->malloc(64)      = 0x20\n"
                     "<... _Znwm resumed> ) = 0x20\n") == Lines{"operator new(64) = 20"});
}

TEST_CASE("ltrace: every call of the family has its arguments") {
  CHECK(ltrace_lines(
            "a->calloc(3, 8) = 0x10\na->realloc(0x10, 0) = 0\na->reallocarray(0, 5, 16, 7) = 0x10\n"
            "a->memalign(64, 128, 0x7f, 9) = 0x40\na->aligned_alloc(32, 96, 0, 5) = 0x60\na->valloc(1, 2) = 0x1000\n"
            "a->pvalloc(1) = 0x2000\na->posix_memalign(0x7ff, 3, 100, 3) = 22\n"
            "a->_ZnwmSt11align_val_t(64, 128) = 0x80\na->_ZdlPvSt11align_val_t(0x80, 128) = 0\n"
            "a->aligned_alloc(64, -64, 0, 0) = 0") ==
        Lines{"calloc(3, 8) = 10", "realloc(10, 0) = 0", "reallocarray(0, 5, 16) = 10", "memalign(64, 128) = 40",
              "aligned_alloc(32, 96) = 60", "valloc(1) = 1000", "pvalloc(1) = 2000", "posix_memalign(3, 100) = 0",
              "operator new(64, align=128) = 80", "operator delete(80, align=128)",
              "aligned_alloc(64, 18446744073709551552) = 0"});
}

TEST_CASE("ltrace: --pid chooses a thread") {
  CHECK(lines_of("ltrace", "1 a->free(0x10) = <void>\n2 a->free(0x20) = <void>", ParsedLog(2)) == Lines{"free(20)"});
}

TEST_CASE("ltrace: what is wrong is said") {
  CHECK(ltrace_lines("hello") == Lines{"? a call"});
  CHECK(ltrace_lines("a->malloc(x) = 0x10") == Lines{"? numbers for arguments"});
  CHECK(ltrace_lines("a->calloc(3) = 0x10") == Lines{"? numbers for arguments"});
  CHECK(ltrace_lines("a->malloc(10)") == Lines{"? '=' and the result"});
  CHECK(ltrace_lines("a->malloc(10) = x") == Lines{"? '=' and the result"});
  CHECK(ltrace_lines("<... malloc resumed> ) = 0x10") == Lines{"? a call that was begun by this thread"});
  CHECK(ltrace_lines("1 malloc(1 <unfinished ...>\n2 <... malloc resumed> ) = 0x10") ==
        Lines{"? a call that was begun by this thread"});
  CHECK(ltrace_lines("a->posix_memalign(0x7ff, 256, 100) = 0") ==
        Lines{"? a block: ltrace does not show that of posix_memalign"});
}
