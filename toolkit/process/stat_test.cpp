// Checks stat, status, statm, io and stack pointers, with hostile names of processes among them.

#include "toolkit/process/stat.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <system_error>

#include "cmt/error.h"

using namespace cmt::process;

namespace {

constexpr const char* after_name = " S 12 4711 4711 0 -1 4194304 100 5 7 2 30 40 1 1 20 0 3 0 5555 9 9\n";

}  // namespace

TEST_CASE("stat: the fields are found after the name") {
  const Stat stat = parse_stat(std::string("4711 (cat)") + after_name);
  CHECK(stat.pid == 4711);
  CHECK(stat.name == "cat");
  CHECK(stat.state == 'S');
  CHECK(stat.parent == 12);
  CHECK(stat.minor_faults == 100);
  CHECK(stat.major_faults == 7);
  CHECK(stat.user_ticks == 30);
  CHECK(stat.system_ticks == 40);
  CHECK(stat.threads == 3);
  CHECK(stat.start_ticks == 5555);
  CHECK_FALSE(stat.kernel_thread);
}

TEST_CASE("stat: a name may hold blanks and brackets") {
  CHECK(parse_stat(std::string("1 (a (b) S 3 c)") + after_name).name == "a (b) S 3 c");
}

TEST_CASE("stat: a kernel thread and a zombie are recognised") {
  CHECK(parse_stat("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0\n").kernel_thread);
  CHECK(parse_stat("2 (gone) Z 1 0 0 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 1 0 0\n").zombie());
}

TEST_CASE("stat: any other text is refused") {
  for (const char* wrong : {"", "7", "7 (", "7 (x)", "7 (x) ", "7 (x) S 1 2 3\n"})
    CHECK_THROWS_AS(parse_stat(wrong), cmt::FormatError);
}

TEST_CASE("stat: the own process is there, and one that is gone is a system_error") {
  CHECK(read_stat(getpid()).parent == getppid());
  CHECK_THROWS_AS(read_stat(0x7ffffffe), std::system_error);
}

TEST_CASE("stat: the signal of its end is known if the kernel reports it") {
  CHECK_FALSE(parse_stat("7 (x) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1\n").exit_signal);
  const std::string more =
      "7 (x) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 1 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 17 0\n";
  CHECK(parse_stat(more).exit_signal == 17);
  CHECK(read_stat(getpid()).exit_signal == SIGCHLD);
}

TEST_CASE("status: memory is read in bytes") {
  const Status status = parse_status(
      "Name:\tVmRSS: 9\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nRssAnon:\t 512 kB\nRssFile:\t 256 kB\n"
      "RssShmem:\t 128 kB\nVmSwap:\t 64 kB\nThreads:\t3\nTracerPid:\t77\n");
  CHECK(status.resident_bytes_peak == 2048 * 1024);
  CHECK(status.resident_bytes == 1024 * 1024);
  CHECK(status.resident_file_bytes == 256 * 1024);
  CHECK(status.swapped_bytes == 64 * 1024);
  CHECK(status.tracer == 77);
}

TEST_CASE("status: a kernel thread, which has no memory, reads as zeros") {
  CHECK(parse_status("Name:\tkthreadd\nThreads:\t1\n").resident_bytes_peak == 0);
}

TEST_CASE("status: the own process is resident") { CHECK(read_status(getpid()).resident_bytes_peak > 0); }

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

TEST_CASE("proc: another root can replace /proc") { CHECK(path_of(7, "statm", "/tmp/x") == "/tmp/x/7/statm"); }

TEST_CASE("threads: the stack pointer is the last number but one of a thread that waits") {
  CHECK(parse_stack_pointer("0 0x3 0x7faef9d7a000 0x20000 0x1 0x2 0x0 0x7fff21ca5d98 0x7faef9ef42ad\n") ==
        0x7fff21ca5d98);
  CHECK(parse_stack_pointer("-1 0x7fff21ca5d98 0x7faef9ef42ad\n") == 0x7fff21ca5d98);
}

TEST_CASE("threads: a running one has no stack pointer, nor has any other text") {
  for (const char* text : {"running\n", "", "\n", "7", "7 8\n", "0x 0x1\n", "1 0xg 0x1\n"})
    CHECK_FALSE(parse_stack_pointer(text));
}

TEST_CASE("threads: a stat may contain the stack pointer, and hides it as 0") {
  const std::string before =
      "9 (a) b) S 1 9 9 0 -1 0 100 0 7 0 30 40 0 0 20 0 2 0 77 8192 5 18446744073709551615 1 2 3 ";
  CHECK(parse_stat(before + "4096 6 7\n").stack_pointer == 4096);
  CHECK(parse_stat(before + "0 6 7\n").stack_pointer == 0);
  CHECK(parse_stat(before).stack_pointer == 0);
}

TEST_CASE("io: traffic of calls and of disks, and not discarded writes") {
  const Traffic traffic =
      parse_io("rchar: 1\nwchar: 2\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 3\n");
  CHECK(traffic.read_bytes == 4096);
  CHECK(traffic.written_bytes == 8192);
  CHECK(traffic.read_call_bytes == 1);
  CHECK(traffic.written_call_bytes == 2);
  CHECK_FALSE(parse_io("read_bytes: 4096\n").read_call_bytes);
}
