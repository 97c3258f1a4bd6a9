// Checks which waits of a parent process count as a wait for any child, and how early times may be.

#include <doctest/doctest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

#include "preload/collector/collector.h"

using namespace cmt::collector;

namespace {

const std::string wait4_is = std::to_string(SYS_wait4), waitid_is = std::to_string(SYS_waitid);

}  // namespace

TEST_CASE("parent wait: a wait for any child, clones too, is one") {
  CHECK(is_wait_for_any(wait4_is + " 0xffffffff 0x7ffd 0x40000000 0x0 0x0 0x0 0x7ffd 0x7f09"));
  CHECK(is_wait_for_any(wait4_is + " 0xffffffffffffffff 0x0 0x80000000 0x0 0x0 0x0 0x7ffd 0x7f09"));
  CHECK(is_wait_for_any(waitid_is + " 0x0 0x0 0x7ffd 0x40000004 0x0 0x0 0x7ffd 0x7f09"));
}

TEST_CASE("parent wait: a wait for one child, without clones, or that does not block, is none") {
  CHECK_FALSE(is_wait_for_any(wait4_is + " 0x2a 0x0 0x40000000 0x0 0x0 0x0 0x7ffd 0x7f09"));
  CHECK_FALSE(is_wait_for_any(wait4_is + " 0xffffffff 0x0 0x0 0x0 0x0 0x0 0x7ffd 0x7f09"));
  CHECK_FALSE(is_wait_for_any(wait4_is + " 0xffffffff 0x0 0x40000001 0x0 0x0 0x0 0x7ffd 0x7f09"));
  CHECK_FALSE(is_wait_for_any(waitid_is + " 0x1 0x2a 0x7ffd 0x40000004 0x0 0x0 0x7ffd 0x7f09"));
  CHECK_FALSE(is_wait_for_any("1000 0xffffffff 0x0 0x40000000 0x0 0x0 0x0 0x7ffd 0x7f09"));
  CHECK_FALSE(is_wait_for_any("running"));
  CHECK_FALSE(is_wait_for_any("-1 0x7ffd 0x7f09"));
  CHECK_FALSE(is_wait_for_any(""));
}

TEST_CASE("parent wait: a process that runs or does not exist does not wait") {
  CHECK_FALSE(waits_for_only(getpid(), 1));
  CHECK_FALSE(waits_for_only(0x7fffffff, 1));
}

TEST_CASE("clock: times may be early by the longest step, and by the time from the last step to the end") {
  CHECK(longest_clock_step(100, 5000, 5050) == 100);
  CHECK(longest_clock_step(100, 5000, 5700) == 700);
  CHECK(longest_clock_step(100, 5000, 4000) == 100);  // it was raised after the end
}
