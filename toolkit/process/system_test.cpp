// Checks the figures of meminfo and diskstats, and the size of pages.

#include "toolkit/process/system.h"

#include <doctest/doctest.h>

#include <bit>

using namespace cmt::process;

TEST_CASE("meminfo: figures are bytes, and one that is missing is nothing") {
  const SystemMemory memory =
      parse_meminfo("MemTotal:       1000 kB\nSwapCached:        7 kB\nCached:         20 kB\n");
  CHECK(memory.total == 1000 * 1024);
  CHECK(memory.cached == 20 * 1024);
  CHECK(memory.swap_cached == 7 * 1024);
  CHECK_FALSE(memory.available.has_value());
}

TEST_CASE("meminfo: this machine has memory") { CHECK(read_meminfo().total.value_or(0) > 0); }

TEST_CASE("pages: their size is a power of two") { CHECK(std::has_single_bit(page_bytes())); }

TEST_CASE("disks: a device's traffic is bytes, of sectors of 512") {
  const auto disks = parse_diskstats(
      "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
      " 259       1 nvme0n1p1 11 2 30 4 5 6 70 8 0 90 91\n");
  REQUIRE(disks.size() == 2);
  CHECK(disks[0].name == "loop0");
  CHECK(disks[0].reads == 0);
  CHECK(disks[1].name == "nvme0n1p1");
  CHECK(disks[1].reads == 11);
  CHECK(disks[1].read_bytes == 30 * 512);
  CHECK(disks[1].writes == 5);
  CHECK(disks[1].written_bytes == 70 * 512);
  CHECK(disks[1].busy_ms == 90);
}

TEST_CASE("disks: lines that are no device are left out") {
  CHECK(parse_diskstats("").empty());
  CHECK(parse_diskstats("\n8 0 sda 1 2 3\n8 0\nsurprise\n").empty());
}
