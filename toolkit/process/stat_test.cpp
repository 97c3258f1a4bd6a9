#include "toolkit/process/stat.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <system_error>

#include "cmt/error.h"

using namespace cmt::process;

namespace {

constexpr const char* after_name = " S 12 4711 4711 0 -1 4194304 100 5 7 2 30 40 1 1 20 0 3 0 5555 9 9\n";

}  // namespace

TEST_CASE("stat: the fields are found behind the name") {
  const Stat stat = parse_stat(std::string("4711 (cat)") + after_name);
  CHECK(stat.pid == 4711);
  CHECK(stat.name == "cat");
  CHECK(stat.state == 'S');
  CHECK(stat.parent == 12);
  CHECK(stat.minor_faults == 100);
  CHECK(stat.major_faults == 7);
  CHECK(stat.user_ticks == 30);
  CHECK(stat.system_ticks == 40);
  CHECK(stat.threads == 3);
  CHECK(stat.start_ticks == 5555);
  CHECK_FALSE(stat.kernel_thread);
}

TEST_CASE("stat: a name may hold blanks and brackets") {
  CHECK(parse_stat(std::string("1 (a (b) S 3 c)") + after_name).name == "a (b) S 3 c");
}

TEST_CASE("stat: a kernel thread and a zombie are told") {
  CHECK(parse_stat("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0\n").kernel_thread);
  CHECK(parse_stat("2 (gone) Z 1 0 0 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0\n").zombie());
}

TEST_CASE("stat: what is no such text is refused") {
  for (const char* wrong : {"", "7", "7 (", "7 (x)", "7 (x) ", "7 (x) S 1 2 3\n"})
    CHECK_THROWS_AS(parse_stat(wrong), cmt::FormatError);
}

TEST_CASE("stat: the own process is there, and one that is gone is a system_error") {
  CHECK(read_stat(getpid()).parent == getppid());
  CHECK_THROWS_AS(read_stat(0x7ffffffe), std::system_error);
}

TEST_CASE("stat: the signal of its end is there where the kernel tells it") {
  CHECK_FALSE(parse_stat("7 (x) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1\n").exit_signal);
  const std::string more =
      "7 (x) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 17 0\n";
  CHECK(parse_stat(more).exit_signal == 17);
  CHECK(read_stat(getpid()).exit_signal == SIGCHLD);
}
