// The size of zero-initialised data is found in a made-up file, and is 0 if the file or the mapping does not fit.
#include "cmtwatch/recording/zero_data.h"

#include <doctest/doctest.h>
#include <elf.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "toolkit/process/system.h"

using cmt::process::Mapping;
using cmt::watch::zero_data_bytes;

namespace {

const std::uint64_t page_size = cmt::process::page_bytes();

/// A made-up /proc with process 7, which has mapped /lib.so: a page of code, and then a page of data. Half of that page
/// is in the file; in memory the data go on for three and a half pages.
class MappedLibrary {
 public:
  MappedLibrary() {
    REQUIRE(mkdtemp(root_.data()) != nullptr);
    std::filesystem::create_directories(root_ + "/7/root");
    Elf64_Ehdr header{};
    std::copy_n(ELFMAG, SELFMAG, header.e_ident);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_phoff = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phnum = 2;
    Elf64_Phdr segments[2]{};
    segments[0].p_type = segments[1].p_type = PT_LOAD;
    segments[0].p_filesz = segments[0].p_memsz = page_size;
    segments[1].p_offset = page_size;
    segments[1].p_vaddr = 2 * page_size;
    segments[1].p_filesz = page_size / 2;
    segments[1].p_memsz = 4 * page_size;
    std::ofstream file(root_ + "/7/root/lib.so", std::ios::binary);
    file.write(reinterpret_cast<const char*>(&header), sizeof header);
    file.write(reinterpret_cast<const char*>(segments), sizeof segments);
  }
  ~MappedLibrary() { std::filesystem::remove_all(root_); }
  MappedLibrary(const MappedLibrary&) = delete;
  MappedLibrary& operator=(const MappedLibrary&) = delete;

  std::uint64_t bytes_behind(const Mapping& before, const Mapping& mapping) const {
    return zero_data_bytes(before, mapping, 7, root_);
  }

 private:
  std::string root_ = "/tmp/zero_data.XXXXXX";
};

Mapping mapped(std::uint64_t first_page, std::uint64_t end_page, const char* permissions, const char* name) {
  return {.begin = first_page * page_size, .end = end_page * page_size, .permissions = permissions, .name = name};
}

}  // namespace

TEST_CASE("zero data: a mapping that is joined with anonymous memory is a library's only as far as the file says") {
  const MappedLibrary library;
  Mapping data = mapped(102, 103, "rw-p", "/lib.so");
  data.offset = page_size;
  CHECK(library.bytes_behind(data, mapped(103, 106, "rw-p", "")) == 3 * page_size);
  CHECK(library.bytes_behind(data, mapped(103, 9999, "rw-p", "")) == 3 * page_size);
  CHECK(library.bytes_behind(data, mapped(103, 104, "rw-p", "[heap]")) == page_size);
}

TEST_CASE("zero data: nothing is a library's that does not lie behind its data, is shared or has a name") {
  const MappedLibrary library;
  Mapping data = mapped(102, 103, "rw-p", "/lib.so");
  data.offset = page_size;
  CHECK(library.bytes_behind(data, mapped(104, 106, "rw-p", "")) == 0);
  CHECK(library.bytes_behind(data, mapped(103, 106, "rw-s", "")) == 0);
  CHECK(library.bytes_behind(data, mapped(103, 106, "rw-p", "[stack]")) == 0);
  CHECK(library.bytes_behind(mapped(100, 101, "r-xp", "/lib.so"), mapped(101, 102, "rw-p", "")) == 0);
}

TEST_CASE("zero data: of a file that is not there, or has been deleted, nothing is known") {
  const MappedLibrary library;
  for (const char* const name : {"/other.so", "/lib.so (deleted)"}) {
    Mapping data = mapped(102, 103, "rw-p", name);
    data.offset = page_size;
    CHECK(library.bytes_behind(data, mapped(103, 106, "rw-p", "")) == 0);
  }
}
