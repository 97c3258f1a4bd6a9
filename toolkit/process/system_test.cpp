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

TEST_CASE("io: traffic of disks, not of calls, and not what was written in vain") {
  const DiskTraffic traffic =
      parse_io("rchar: 1\nwchar: 2\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 3\n");
  CHECK(traffic.read_bytes == 4096);
  CHECK(traffic.written_bytes == 8192);
}

TEST_CASE("pages: their size is a power of two") { CHECK(std::has_single_bit(page_bytes())); }
