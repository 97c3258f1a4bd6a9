// Tests on a machine with /proc; tests/cmt/no_proc_test.sh takes it away.
#include "toolkit/process/proc_mount.h"

#include <doctest/doctest.h>

#include <filesystem>

using namespace cmt::process;

TEST_CASE("proc mount: where /proc is mounted, nothing is refused, and the program's own file is found") {
  CHECK(is_proc_mounted());
  need_proc();
  need_proc("/no/such/folder");  // of another machine
  CHECK(std::filesystem::equivalent(own_program(), "/proc/self/exe"));
}
