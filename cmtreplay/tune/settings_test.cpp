#include "cmtreplay/tune/settings.h"

#include <doctest/doctest.h>

#include "cmtreplay/tune/understood.h"

using namespace cmt::replay;

TEST_CASE("settings: a candidate's name is one that --alloc takes, with its environment") {
  const std::vector<Candidate> singles = single_choices("libc", "libc");
  REQUIRE(singles.size() > 4);
  CHECK(singles.front().name() == "libc,GLIBC_TUNABLES=glibc.malloc.arena_max=1");
  CHECK(singles.front().title() == "libc arena_max=1");
  const Candidate both = joined(singles[3], singles[0]);
  CHECK(both.title() == "libc arena_max=1 mmap_threshold=65536 trim_threshold=131072");
  const AllocatorName parsed = parse_allocator_name(both.name());
  CHECK(parsed.name == "libc");
  CHECK(parsed.settings == both.environment());
  CHECK(parsed.settings == std::vector<std::string>{"GLIBC_TUNABLES=glibc.malloc.arena_max=1:glibc.malloc.mmap_"
                                                    "threshold=65536:glibc.malloc.trim_threshold=131072"});
}

TEST_CASE("settings: a list of jemalloc's is read back from an allocator's name") {
  const std::vector<Candidate> singles = single_choices("jemalloc", "jemalloc");
  const Candidate both = joined(singles[0], singles[5]);
  CHECK(parse_allocator_name(both.name()).settings == both.environment());
  const std::vector<SettingPart> parts = parts_of(both.environment());
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].key == "narenas");
  CHECK(parts[0].value == "1");
  CHECK(parts[1].text == "dirty_decay_ms:0");
}

TEST_CASE("settings: two values of one setting, and two allocators, cannot be joined") {
  const std::vector<Candidate> singles = single_choices("libc", "libc"),
                               others = single_choices("tcmalloc", "tcmalloc");
  CHECK_FALSE(can_join(singles[0], singles[1]));
  CHECK_FALSE(can_join(singles[0], others[0]));
}

TEST_CASE("settings: every row of the table has its values, its version and its documentation") {
  for (const TunedSetting& row : tuned_settings()) {
    CAPTURE(row.keys);
    CHECK_FALSE(row.values.empty());
    CHECK_FALSE(row.since.empty());
    CHECK_FALSE(row.source.empty());
    for (const Candidate& single : single_choices("a", std::string(row.kind))) CHECK(single.environment().size() == 1);
  }
}

TEST_CASE("settings: the three lines quote what their readers would change") {
  const SettingLines lines = setting_lines("/opt/a b.so", {"A=1 $x%\"", "B=2"}, "PROGRAM");
  CHECK(lines.env == "env 'LD_PRELOAD=/opt/a b.so' 'A=1 $x%\"' B=2 PROGRAM");
  CHECK(lines.systemd == R"(Environment="LD_PRELOAD=/opt/a b.so" "A=1 $x%%\"" "B=2")");
  CHECK(lines.dockerfile == R"(ENV LD_PRELOAD="/opt/a b.so" A="1 \$x%\"" B="2")");
  CHECK(setting_lines("", {}, "PROGRAM").env.empty());
}

TEST_CASE("settings: older variables of glibc are known by the tunables that they set") {
  const std::vector<SettingPart> parts = parts_of({"MALLOC_ARENA_MAX=2", "MALLOC_TOP_PAD_=0", "MALLOC_OTHER=1"});
  CHECK(parts[0].key == "glibc.malloc.arena_max");
  CHECK(parts[1].key == "glibc.malloc.top_pad");
  CHECK(parts[2].key == "MALLOC_OTHER");
}
