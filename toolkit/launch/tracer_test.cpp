// Checks the reasons why programs cannot be recorded, on ELF files that the test makes.

#include "toolkit/launch/tracer.h"

#include "toolkit/launch/program_file.h"

#include <doctest/doctest.h>
#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

using namespace cmt::launch;

namespace {

/// A function that a program defines or uses.
struct Symbol {
  const char* name;
  bool is_defined = true;
  bool is_exported = true;
};

void append(std::string& bytes, const auto& part) { bytes.append(reinterpret_cast<const char*>(&part), sizeof part); }

/// An executable file with a head of the class, a loader's path, and a symbol.
struct Program {
  explicit Program(unsigned char elf_class, const std::string& interpreter = "", Symbol symbol = {""},
                   unsigned short machine = EM_X86_64) {
    constexpr std::uint64_t segments_at = sizeof(Elf64_Ehdr), sections_at = segments_at + sizeof(Elf64_Phdr),
                            symbols_at = sections_at + 2 * sizeof(Elf64_Shdr),
                            names_at = symbols_at + sizeof(Elf64_Sym);
    const std::string names = std::string(1, '\0') + symbol.name + '\0';
    Elf64_Ehdr head{};
    std::memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = elf_class;
    head.e_ident[EI_DATA] = ELFDATA2LSB;
    head.e_machine = machine;
    head.e_phoff = segments_at;
    head.e_phnum = interpreter.empty() ? 0 : 1;
    head.e_shoff = sections_at;
    head.e_shnum = 2;
    Elf64_Phdr segment{};
    segment.p_type = PT_INTERP;
    segment.p_offset = names_at + names.size();
    segment.p_filesz = interpreter.size() + 1;
    Elf64_Shdr symbols{}, texts{};
    symbols.sh_type = symbol.is_exported ? SHT_DYNSYM : SHT_SYMTAB;
    symbols.sh_offset = symbols_at;
    symbols.sh_size = sizeof(Elf64_Sym);
    symbols.sh_link = 1;
    texts.sh_type = SHT_STRTAB;
    texts.sh_offset = names_at;
    texts.sh_size = names.size();
    Elf64_Sym entry{};
    entry.st_name = 1;
    entry.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    entry.st_shndx = symbol.is_defined ? 1 : SHN_UNDEF;
    std::string bytes;
    append(bytes, head);
    append(bytes, segment);
    append(bytes, symbols);
    append(bytes, texts);
    append(bytes, entry);
    bytes += names + interpreter + '\0';
    const int fd = mkstemp(path.data());
    REQUIRE(write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    fchmod(fd, 0755);
    close(fd);
  }
  ~Program() { unlink(path.c_str()); }
  std::string path = "/tmp/tracer.XXXXXX";
};

}  // namespace

TEST_CASE("tracer: a statically linked program is reported") {
  const Program is_static(ELFCLASS64), is_old(ELFCLASS32);
  CHECK(why_not_recordable(is_static.path) ==
        is_static.path + " is linked statically: nothing can be recorded; link it without -static");
  CHECK(why_not_recordable(is_old.path) ==
        is_old.path + " is a 32-bit program: nothing can be recorded; build it for 64 bits");
  CHECK(why_not_recordable("/bin/sh").empty());
  CHECK(why_not_recordable("sh").empty());
  CHECK(why_not_recordable("/nonexistent").empty());
}

TEST_CASE("tracer: programs for the loaders of glibc and of musl are started with the tracer") {
  const Program musl(ELFCLASS64, "/lib/ld-musl-x86_64.so.1"), glibc(ELFCLASS64, "/lib64/ld-linux-x86-64.so.2");
  for (const std::string& path : {musl.path, glibc.path}) {
    CHECK(why_not_recordable(path).empty());
    CHECK(!is_broken_by_tracer(path));
  }
  const std::string loader = read_program_file("/bin/sh").interpreter;
  CHECK(read_program_file(loader).is_for_us);
  CHECK(why_not_recordable(loader).empty());
  CHECK(obstacle_of(loader).empty());
  CHECK(!is_broken_by_tracer("/nonexistent"));
}

TEST_CASE("tracer: an allocator in the program is reported") {
  const std::string loader = "/lib64/ld-linux-x86-64.so.2";
  const Program own(ELFCLASS64, loader, {"malloc"}), uses(ELFCLASS64, loader, {"malloc", false}),
      inside(ELFCLASS64, loader, {"_rjem_malloc", true, false}), hidden(ELFCLASS64, loader, {"malloc", true, false});
  CHECK(why_not_recordable(own.path) ==
        own.path +
            " has a malloc of its own, which is recorded only if it calls the next malloc; "
            "if it does not, link its allocator as a shared library");
  CHECK(
      why_not_recordable(inside.path) ==
      inside.path +
          " has an allocator inside (_rjem_malloc): only what it asks of the C library is recorded; build it without");
  CHECK(why_not_recordable(uses.path).empty());
  CHECK(why_not_recordable(hidden.path).empty());
}

TEST_CASE("tracer: a program with a sanitizer is reported, and is not started with the tracer") {
  const std::string loader = "/lib64/ld-linux-x86-64.so.2";
  const Program shared(ELFCLASS64, loader, {"__asan_init", false}), inside(ELFCLASS64, loader, {"__tsan_init"});
  CHECK(why_not_recordable(shared.path) == shared.path +
                                               " is built with a sanitizer, whose malloc hides the tracer: nothing can "
                                               "be recorded; build it without -fsanitize=address");
  CHECK(why_not_recordable(inside.path).ends_with("build it without -fsanitize=thread"));
  CHECK(is_broken_by_tracer(shared.path));
  CHECK(is_broken_by_tracer(inside.path));
}

TEST_CASE("tracer: a program for another processor is reported") {
  const Program other(ELFCLASS64, "/lib/ld-linux.so.1", {""}, EM_S390);
  CHECK(why_not_recordable(other.path) == other.path + " is for another processor: nothing can be recorded");
}

TEST_CASE("tracer: a file that is cut anywhere gives as much as can be read") {
  const Program whole(ELFCLASS64, "/lib64/ld-linux-x86-64.so.2", {"malloc"});
  for (auto bytes = static_cast<off_t>(std::filesystem::file_size(whole.path)); bytes-- > 0;) {
    REQUIRE(truncate(whole.path.c_str(), bytes) == 0);
    why_not_recordable(whole.path);  // reads nothing beyond the end
  }
  CHECK(why_not_recordable(whole.path).empty());
}

TEST_CASE("tracer: a program with another user's rights is reported") {
  const Program program(ELFCLASS64);
  if (getuid() != 0) {
    MESSAGE("skipped: only root may give a file away");
    return;
  }
  REQUIRE(chown(program.path.c_str(), 65534, 65534) == 0);
  REQUIRE(chmod(program.path.c_str(), 04755) == 0);
  CHECK(why_not_recordable(program.path) ==
        program.path + " runs with another user's rights: nothing can be recorded, unless that user runs it");
  REQUIRE(chmod(program.path.c_str(), 02755) == 0);
  CHECK(why_not_recordable(program.path) ==
        program.path + " runs with another user's rights: nothing can be recorded, unless that user runs it");
}
