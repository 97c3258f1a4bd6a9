// Tests how --alloc is taken apart, and where packaged allocators are looked for.
#include "cmtreplay/run/allocator.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

using namespace cmt::replay;

namespace fs = std::filesystem;

TEST_CASE("allocator name: a name without settings is all name") {
  CHECK(parse_allocator_name("./my lib, v2:a.so").name == "./my lib, v2:a.so");
  CHECK(parse_allocator_name("./my lib, v2:a.so").settings.empty());
}

TEST_CASE("allocator name: settings follow at commas, and values keep theirs") {
  const AllocatorName name = parse_allocator_name("jemalloc,MALLOC_CONF=a:b,c:d,X_1=");
  CHECK(name.name == "jemalloc");
  CHECK(name.settings == std::vector<std::string>{"MALLOC_CONF=a:b,c:d", "X_1="});
}

TEST_CASE("allocator name: a digit begins no setting") {
  CHECK(parse_allocator_name("a,1=2").name == "a,1=2");
  CHECK(parse_allocator_name("a,").name == "a,");
}

TEST_CASE("allocator name: a file's name keeps what files may be called") {
  CHECK(file_name_of("./lib/my so.so") == "my_so.so");
  CHECK(file_name_of("jemalloc,MALLOC_CONF=a:b") == "jemalloc_MALLOC_CONF_a_b");
}

TEST_CASE("allocator name: a name that is not packaged has no files") { CHECK(!packaged_files("mymalloc")); }

#if defined(__x86_64__)
TEST_CASE("allocator name: scudo is found in the newest compiler") {
  const fs::path root = fs::temp_directory_path() / "cmt_allocator_name_test";
  fs::remove_all(root);
  for (const char* version : {"9", "19", "14"}) {
    const fs::path folder = root / "lib" / ("llvm-" + std::string(version)) / "lib/clang" / version / "lib/linux";
    fs::create_directories(folder);
    std::ofstream(folder / "libclang_rt.scudo_standalone-x86_64.so");
    std::ofstream(folder / "libclang_rt.scudo_standalone-i386.so");
  }
  const auto files = packaged_files("scudo", root).value();
  REQUIRE(files.size() == 3);
  CHECK(files[0].find("llvm-19") != std::string::npos);
  CHECK(files[2].find("llvm-9") != std::string::npos);
  fs::remove_all(root);
}
#endif

TEST_CASE("allocator name: without a compiler there is no scudo") {
  CHECK(packaged_files("scudo", "/nowhere-at-all").value().empty());
}
