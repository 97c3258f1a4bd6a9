// Tests whose memory a mapping is, and the figures of a memory run.
#include "cmtreplay/run/memory_run.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace cmt::replay;
using cmt::process::Mapping;

namespace {

std::uint64_t resident(const std::string& name, const std::string& permissions) {
  Mapping mapping;
  mapping.name = name;
  mapping.permissions = permissions;
  mapping.resident_bytes = 40960;
  mapping.anonymous_bytes = 8192;
  return allocator_memory(std::vector{mapping}, "/usr/libexec/cmt/cmtreplay-worker").resident_bytes;
}

}  // namespace

TEST_CASE("allocator memory: anonymous mappings and the heap count whole") {
  CHECK(resident("", "rw-p") == 40960);
  CHECK(resident("[heap]", "rw-p") == 40960);
  CHECK(resident("[anon:glibc: malloc]", "rw-p") == 40960);
}

TEST_CASE("allocator memory: of a library's file only written pages count") {
  CHECK(resident("/lib/libjemalloc.so.2", "rw-p") == 8192);
}

TEST_CASE("allocator memory: shared memory of its own counts, a shared file does not") {
  CHECK(resident("/dev/shm/pool", "rw-s") == 40960);
  CHECK(resident("/memfd:pool (deleted)", "rw-s") == 40960);
  CHECK(resident("/usr/share/zoneinfo", "r--s") == 0);
}

TEST_CASE("allocator memory: the replay's own does not count") {
  CHECK(resident("/memfd:cmtreplay-slots (deleted)", "rw-s") == 0);
  CHECK(resident("/usr/libexec/cmt/cmtreplay-worker", "rw-p") == 0);
  CHECK(resident("[stack]", "rw-p") == 0);
  CHECK(resident("[vvar]", "r--p") == 0);
}

TEST_CASE("memory run: a peak without the kernel's high-water mark is told as the least that it can be") {
  MemoryRun run{.peak_at_marks_bytes = 4 << 20};
  CHECK(run.peak_text() == ">= 4.00 MiB");
  run.peak_by_high_water_bytes = 5 << 20;
  CHECK(run.peak_text() == "5.00 MiB");
}

TEST_CASE("memory run: the mean is of the states that last until the next event") {
  MemoryRun run{.start_bytes = 0};
  const auto add = [&run](std::uint64_t event, std::uint64_t time_ns, std::uint64_t next_ns, std::uint64_t bytes) {
    run.marks.emplace_back();
    run.marks.back().mark = {.event = event, .live = {}, .time_ns = time_ns, .next_ns = next_ns};
    run.marks.back().memory.resident_bytes = bytes;
  };
  add(1, 100, 200, 1000);
  add(2, 200, cmt::unknown, 50);  // only a mark of events
  add(3, 300, 900, 2000);
  add(4, 900, cmt::unknown, 2000);
  CHECK(run.mean_bytes() == (100 * 1000 + 100 * 1500 + 600 * 2000) / 800);
  run.marks[0].mark.live.bytes = 900;  // each touched byte is one resident byte
  run.marks[2].mark.live.bytes = run.marks[3].mark.live.bytes = 1900;
  run.mean_touched_bytes = (100 * 900 + 100 * 1400 + 600 * 1900) / 800 - 250;  // less between the marks
  CHECK(run.mean_bytes() == (100 * 1000 + 100 * 1500 + 600 * 2000) / 800 - 250);
  run.marks[3].mark.time_ns = cmt::unknown;  // of a trace without times
  CHECK(run.mean_bytes() == (500 + 525 + 1025 + 2000) / 4);
}

TEST_CASE("memory run: fragmentation is not known where not all live blocks were held") {
  MemoryRun run{.peak_live_bytes = 1000, .peak_live_event = 7};
  run.marks.emplace_back();
  run.marks[0].mark.event = 7;
  run.marks[0].memory.resident_bytes = 1500;
  CHECK(run.fragmentation() == 1.5);
  run.holds_all = false;
  CHECK(std::isnan(run.fragmentation()));
}

TEST_CASE("memory run: there is no ratio to live bytes of which none was touched") {
  MemoryRun run{.peak_at_marks_bytes = 3000, .peak_live_bytes = 1000, .peak_live_event = 7, .peak_touched_bytes = 1500};
  run.marks.emplace_back();
  run.marks[0].mark.event = 7;
  run.marks[0].mark.untouched_bytes = 1000;
  run.marks[0].memory.resident_bytes = 1500;
  CHECK(std::isnan(run.fragmentation()));
  CHECK(run.peak_over_peak_live() == 2);
  run.peak_touched_bytes = 0;
  CHECK(std::isnan(run.peak_over_peak_live()));
}
