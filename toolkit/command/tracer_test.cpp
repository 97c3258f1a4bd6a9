#include "toolkit/command/tracer.h"

#include <doctest/doctest.h>
#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

using namespace cmt::command;

namespace {

/// An executable file with a head of the class, and no interpreter.
struct Program {
  explicit Program(unsigned char elf_class) {
    Elf64_Ehdr head{};
    std::memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = elf_class;
    const int fd = mkstemp(path.data());
    REQUIRE(write(fd, &head, sizeof head) == sizeof head);
    fchmod(fd, 0755);
    close(fd);
  }
  ~Program() { unlink(path.c_str()); }
  std::string path = "/tmp/tracer.XXXXXX";
};

}  // namespace

TEST_CASE("tracer: a program that the dynamic loader does not load is told of") {
  const Program is_static(ELFCLASS64), is_old(ELFCLASS32);
  CHECK(why_not_recordable(is_static.path) == is_static.path + " is linked statically: nothing can be recorded");
  CHECK(why_not_recordable(is_old.path) == is_old.path + " is a 32-bit program: nothing can be recorded");
  CHECK(why_not_recordable("/proc/self/exe").empty());
  CHECK(why_not_recordable("sh").empty());
  CHECK(why_not_recordable("/nonexistent").empty());
}

TEST_CASE("tracer: a program of another user's rights is told of") {
  const Program program(ELFCLASS64);
  if (getuid() != 0) {
    MESSAGE("skipped: only root may give a file away");
    return;
  }
  REQUIRE(chown(program.path.c_str(), 65534, 65534) == 0);
  REQUIRE(chmod(program.path.c_str(), 04755) == 0);
  CHECK(why_not_recordable(program.path) == program.path + " runs with another user's rights: nothing can be recorded");
  REQUIRE(chmod(program.path.c_str(), 02755) == 0);
  CHECK(why_not_recordable(program.path) == program.path + " runs with another user's rights: nothing can be recorded");
}
