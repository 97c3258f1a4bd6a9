#include "cmtwatch/working_set/mapping_filter.h"

#include <doctest/doctest.h>

#include "toolkit/process/system.h"

using namespace cmt::watch;
using cmt::process::Mapping;

namespace {

Mapping mapping(const char* permissions, const char* name, unsigned pages = 2) {
  return {
      .begin = 0x10000, .end = 0x10000 + pages * cmt::process::page_bytes(), .permissions = permissions, .name = name};
}

MappingFilter of(const char* kinds) { return {.kinds = parse_mapping_kinds(kinds).value(), .permissions = {}}; }

}  // namespace

TEST_CASE("mapping filter: kinds add up") {
  CHECK(of("heap").takes(mapping("rw-p", "[heap]")));
  CHECK_FALSE(of("heap").takes(mapping("rw-p", "")));
  const MappingFilter both = of("heap,anonymous");
  CHECK(both.takes(mapping("rw-p", "")));
  CHECK(both.takes(mapping("rw-p", "[anon:arena]")));
  CHECK(both.takes(mapping("rw-p", "[heap]")));
  CHECK_FALSE(both.takes(mapping("r--p", "/usr/lib/libc.so.6")));
  CHECK(of("file").takes(mapping("rw-s", "/memfd:x (deleted)")));
  CHECK(of("stack").takes(mapping("rw-p", "[stack]")));
  CHECK_FALSE(of("heap,anonymous,file,stack").takes(mapping("r-xp", "[vdso]")));
  CHECK(MappingFilter().takes(mapping("r-xp", "[vdso]")));
}

TEST_CASE("mapping filter: all permissions are needed") {
  const MappingFilter filter{.kinds = {}, .permissions = "rw"};
  CHECK(filter.takes(mapping("rw-p", "")));
  CHECK_FALSE(filter.takes(mapping("r--p", "")));
  CHECK_FALSE(MappingFilter{.kinds = {}, .permissions = "x"}.takes(mapping("rw-p", "")));
}

TEST_CASE("mapping filter: longer is longer, not as long") {
  const MappingFilter filter{.kinds = {}, .permissions = {}, .longer_than = 2};
  CHECK(filter.takes(mapping("rw-p", "", 3)));
  CHECK_FALSE(filter.takes(mapping("rw-p", "", 2)));
}

TEST_CASE("mapping filter: what is no kind is refused") {
  for (const char* const text : {"", "heap,", ",heap", "heaps", "heap,,file"}) CHECK_FALSE(parse_mapping_kinds(text));
}
