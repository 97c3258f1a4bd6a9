#include "cmtwatch/recording/breakdown.h"

#include <doctest/doctest.h>

using namespace cmt::watch;
using cmt::process::Mapping;

namespace {

Mapping mapping(std::uint64_t begin, std::uint64_t end, const char* permissions, const char* name,
                std::uint64_t resident) {
  Mapping made;
  made.begin = begin, made.end = end, made.permissions = permissions, made.name = name, made.resident_bytes = resident;
  return made;
}

std::string only_name(const std::vector<Mapping>& mappings) { return parts_of(mappings).back().name; }

}  // namespace

TEST_CASE("breakdown: stacks, heap, anonymous and sockets are told by name") {
  CHECK(only_name({mapping(1, 2, "rw-p", "[stack]", 1)}) == "stacks");
  CHECK(only_name({mapping(1, 2, "rw-p", "[heap]", 1)}) == "heap");
  CHECK(only_name({mapping(1, 2, "rw-p", "", 1)}) == "anonymous");
  CHECK(only_name({mapping(1, 2, "rw-s", "socket:[77]", 1)}) == "sockets");
}

TEST_CASE("breakdown: data behind a library's last mapping is the library's") {
  const Mapping code = mapping(0x1000, 0x2000, "r-xp", "/lib/a.so", 1);
  const Mapping data = mapping(0x2000, 0x3000, "rw-p", "/lib/a.so", 1);
  CHECK(only_name({code, data, mapping(0x3000, 0x4000, "rw-p", "", 1)}) == "/lib/a.so");
  CHECK(only_name({code, data, mapping(0x3800, 0x4000, "rw-p", "", 1)}) == "anonymous");
  CHECK(only_name({code, data, mapping(0x3000, 0x4000, "r--p", "", 1)}) == "anonymous");
}

TEST_CASE("breakdown: data behind a file without code is nobody's") {
  CHECK(only_name({mapping(0x1000, 0x2000, "r--p", "/usr/share/locale", 1), mapping(0x2000, 0x3000, "rw-p", "", 1)}) ==
        "anonymous");
}

TEST_CASE("breakdown: an unnamed mapping behind a guard is taken for a thread's stack") {
  CHECK(only_name({mapping(0x1000, 0x2000, "---p", "", 0), mapping(0x2000, 0x802000, "rw-p", "", 1)}) ==
        "thread stacks (guessed)");
  CHECK(only_name({mapping(0x1000, 0x4001000, "---p", "", 0), mapping(0x4001000, 0x4802000, "rw-p", "", 1)}) ==
        "anonymous");
}

TEST_CASE("breakdown: the largest files are named, and the others are added up") {
  const Breakdown breakdown = break_down({{mapping(1, 2, "r--p", "/a", 10), mapping(3, 4, "r--p", "/b", 30)},
                                          {mapping(1, 2, "r--p", "/a", 25), mapping(5, 6, "rw-p", "[heap]", 1)},
                                          {mapping(1, 2, "r--p", "/c", 2), mapping(1, 2, "r--p", "/d", 3)}},
                                         2);
  REQUIRE(breakdown.parts.size() == 4);
  CHECK(breakdown.parts[0].name == "heap");
  CHECK(breakdown.parts[1].name == "/a");
  CHECK(breakdown.parts[1].resident_bytes == 35);
  CHECK(breakdown.parts[2].name == "/b");
  CHECK(breakdown.parts[3].name == "others");
  CHECK(breakdown.parts[3].resident_bytes == 5);
  CHECK(breakdown.sum.resident_bytes == 71);
  CHECK(breakdown.sum.mappings == 6);
}

TEST_CASE("breakdown: nothing has no parts") { CHECK(break_down({}).parts.empty()); }
