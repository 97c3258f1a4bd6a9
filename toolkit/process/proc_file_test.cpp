// Checks files that are read again through a held folder, also after their process has ended, and that /proc is found.
// tests/cmt/no_proc_test.sh takes /proc away.

#include "toolkit/process/proc_file.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "toolkit/process/proc_mount.h"

using namespace cmt::process;

TEST_CASE("proc file: a process's folder, held open, is read again and again") {
  const ProcessFolder folder(getpid());
  std::string buffer;
  CHECK(folder.read("comm", buffer).size() > 1);
  const int fd = folder.open("statm");
  CHECK(read_again(fd, buffer).find('\n') != std::string_view::npos);
  CHECK(read_again(fd, buffer).find('\n') != std::string_view::npos);
  close(fd);
}

TEST_CASE("proc file: a folder outlives its process and says so") {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  const ProcessFolder folder(child);
  waitpid(child, nullptr, 0);
  std::string buffer;
  CHECK_THROWS_AS(folder.read("statm", buffer), std::system_error);
}

TEST_CASE("proc file: a process that is not there is a system_error") {
  CHECK_THROWS_AS(ProcessFolder(0x7ffffffe), std::system_error);
}

TEST_CASE("proc mount: where /proc is mounted, nothing is refused, and the program's own file is found") {
  CHECK(is_proc_mounted());
  need_proc();
  need_proc("/no/such/folder");  // of another machine
  CHECK(std::filesystem::equivalent(own_program(), "/proc/self/exe"));
}
