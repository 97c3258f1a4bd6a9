#include "toolkit/process/threads.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>

using namespace cmt::process;

TEST_CASE("threads: the stack pointer is the last number but one of a thread that waits") {
  CHECK(parse_stack_pointer("0 0x3 0x7faef9d7a000 0x20000 0x1 0x2 0x0 0x7fff21ca5d98 0x7faef9ef42ad\n") ==
        0x7fff21ca5d98);
  CHECK(parse_stack_pointer("-1 0x7fff21ca5d98 0x7faef9ef42ad\n") == 0x7fff21ca5d98);
}

TEST_CASE("threads: one that runs tells no stack pointer, and no other text does") {
  for (const char* text : {"running\n", "", "\n", "7", "7 8\n", "0x 0x1\n", "1 0xg 0x1\n"})
    CHECK_FALSE(parse_stack_pointer(text));
}

TEST_CASE("threads: a stat may tell the stack pointer, and hides it as 0") {
  const std::string before =
      "9 (a) b) S 1 9 9 0 -1 0 100 0 7 0 30 40 0 0 20 0 2 0 77 8192 5 18446744073709551615 1 2 3 ";
  CHECK(parse_stack_pointer_of_stat(before + "4096 6 7\n") == 4096);
  CHECK_FALSE(parse_stack_pointer_of_stat(before + "0 6 7\n"));
  CHECK_FALSE(parse_stack_pointer_of_stat(before));
  CHECK_FALSE(parse_stack_pointer_of_stat("9 (a) S 1\n"));
  CHECK_FALSE(parse_stack_pointer_of_stat(""));
}

TEST_CASE("threads: a process is its own first thread; one that is gone has none") {
  const auto threads = read_threads(getpid());
  CHECK(std::count(threads.begin(), threads.end(), getpid()) == 1);
  CHECK(read_threads(0x7ffffffe).empty());
}
