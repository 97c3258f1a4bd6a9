#include "toolkit/process/status.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <system_error>

#include "toolkit/process/proc_file.h"

using namespace cmt::process;

TEST_CASE("status: memory is read in bytes") {
  const Status status = parse_status(
      "Name:\tVmRSS: 9\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nRssAnon:\t 512 kB\nRssFile:\t 256 kB\n"
      "RssShmem:\t 128 kB\nVmSwap:\t 64 kB\nThreads:\t3\nTracerPid:\t77\nSigBlk:\tfffffffe7ffbfeff\n");
  CHECK(status.resident_bytes_peak == 2048 * 1024);
  CHECK(status.resident_bytes == 1024 * 1024);
  CHECK(status.resident_anonymous_bytes == 512 * 1024);
  CHECK(status.resident_file_bytes == 256 * 1024);
  CHECK(status.resident_shared_bytes == 128 * 1024);
  CHECK(status.swapped_bytes == 64 * 1024);
  CHECK(status.threads == 3);
  CHECK(status.tracer == 77);
  CHECK(status.blocked_signals == 0xfffffffe7ffbfeff);
}

TEST_CASE("status: a kernel thread, which has no memory, reads as zeros") {
  CHECK(parse_status("Name:\tkthreadd\nThreads:\t1\n").resident_bytes == 0);
}

TEST_CASE("status: the own process is resident") { CHECK(read_status(getpid()).resident_bytes > 0); }

TEST_CASE("statm: size, resident and shared pages are read") {
  const Statm statm = parse_statm("1000 200 30 4 0 50 0\n");
  CHECK(statm.size_pages == 1000);
  CHECK(statm.resident_pages == 200);
  CHECK(statm.shared_pages == 30);
}

TEST_CASE("statm: a text that is cut reads as zeros from there") { CHECK(parse_statm("7").resident_pages == 0); }

TEST_CASE("proc: a process that is gone is a system_error with the path") {
  CHECK_THROWS_AS(read_status(0x7ffffffe), std::system_error);
  CHECK_THROWS_AS(write_file(path_of(0x7ffffffe, "clear_refs"), "1"), std::system_error);
}

TEST_CASE("proc: another root can stand in for /proc") { CHECK(path_of(7, "statm", "/tmp/x") == "/tmp/x/7/statm"); }
