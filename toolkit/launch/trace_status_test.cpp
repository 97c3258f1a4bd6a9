// Checks the lines of a status file, the sums over traces, and the messages about losses.

#include "toolkit/launch/trace_status.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "libcmt/trace/files.h"

using namespace cmt::launch;

namespace {

/// A folder, and CMTTRACE_STATUS a file in it.
struct StatusFile {
  StatusFile() {
    REQUIRE(mkdtemp(folder.data()) != nullptr);
    status = folder + "/status";
    setenv("CMTTRACE_STATUS", status.c_str(), 1);
  }
  ~StatusFile() {
    unsetenv("CMTTRACE_STATUS");
    std::filesystem::remove_all(folder);
  }
  void add(const std::string& line) const { std::ofstream(status, std::ios::app) << line << '\n'; }

  std::string folder = "/tmp/traces.XXXXXX", status;
};

}  // namespace

TEST_CASE_FIXTURE(StatusFile, "traces: the status file reports begins and ends, from its size on") {
  add("pid=1 begun=1 path=/before");
  const TraceStatusFile traces("/%n");
  CHECK(traces.begun().empty());
  add("pid=7 begun=1 path=/a b.cmt");
  add("pid=8 begun=1 path=/c begun=1 path=d");
  add("of nobody");
  add("pid=7 events=3 drain_cpu_ns=4 cpu_ns=55 failed=0 path=/a b.cmt");
  const auto begun = traces.begun();
  add("pid=8 events=3 unseen=7 time_step_ns=5 stopped=max-bytes recorded_ns=9 stacks_unknown=3 stacks_cut=4 "
      "lines_named=50 lines_unplaced=6 lines_nameless=1 bypasses=2 bypass=/x.so cpu_ns=55 failed=28 pool_unseen=6 "
      "pool_replaced=8 pools_refused=9 path=/c");
  const BegunTrace last = traces.begun()[1];
  CHECK((last.error == 28 && last.unseen == 7 && last.stopped == "max-bytes" && last.recorded_ns == 9 &&
         last.time_step_ns == 5));
  CHECK((last.bypasses == 2 && last.bypass == "/x.so" && last.stacks_unknown == 3 && last.stacks_cut == 4));
  CHECK((last.pool_unseen == 6 && last.pool_replaced == 8 && last.pools_refused == 9));
  CHECK((last.lines_named == 50 && last.lines_unplaced == 6 && last.lines_nameless == 1));
  add("pid=9 refused=1 path=");
  CHECK((traces.read().refused == 1 && traces.begun().size() == 2));
  REQUIRE(begun.size() == 2);
  CHECK((begun[0].process == 7 && begun[0].path == "/a b.cmt" && begun[0].ended && begun[0].collector_cpu_ns == 55 &&
         begun[0].error == 0));
  CHECK((begun[1].process == 8 && begun[1].path == "/c begun=1 path=d" && !begun[1].ended));
}

TEST_CASE_FIXTURE(StatusFile, "traces: a collector reports its backlog, which does not end the trace") {
  const TraceStatusFile traces("/%n");
  add("pid=7 start_ns=1 begun=1 path=/a.cmt");
  add("pid=7 start_ns=1 encoded=30 waiting=70 path=/a.cmt");
  add("pid=7 start_ns=1 encoded=60 waiting=40 path=/a.cmt");
  const BegunTrace trace = traces.begun()[0];
  CHECK((!trace.ended && trace.encoded == 60 && trace.waiting == 40));
  add("pid=7 start_ns=1 events=100 failed=0 path=/a.cmt");
  CHECK(traces.begun()[0].ended);
}

TEST_CASE_FIXTURE(StatusFile, "traces: a collector in another time namespace reports the begin by its own clock") {
  const TraceStatusFile traces("/%n");
  add("pid=7 start_ns=900 begun=1 path=/a.cmt");
  CHECK(traces.begun()[0].begin_ns == 900);
  add("pid=7 start_ns=900 begin_ns=8 path=/a.cmt");
  const BegunTrace trace = traces.begun()[0];
  CHECK((trace.start_ns == 900 && trace.begin_ns == 8 && !trace.ended));
}

TEST_CASE_FIXTURE(StatusFile, "traces: when a process executes another program its trace before is renamed") {
  const TraceStatusFile traces("/%n");
  add("pid=7 start_ns=1 begun=1 path=/a.cmt");
  add("pid=7 start_ns=2 renamed=1 path=/a.7.1.cmt");
  add("pid=7 start_ns=2 begun=1 path=/a.cmt");
  add("pid=7 start_ns=1 events=3 failed=5 path=/a.cmt");
  const auto begun = traces.begun();
  REQUIRE(begun.size() == 2);
  CHECK((begun[0].path == "/a.7.1.cmt" && begun[0].ended && begun[0].error == 5));
  CHECK((begun[1].path == "/a.cmt" && !begun[1].ended));
}

TEST_CASE_FIXTURE(StatusFile, "traces: a path in the folder that we are in is short") {
  const TraceStatusFile traces("x.cmt");
  add("pid=7 begun=1 path=" + std::filesystem::current_path().string() + "/x.cmt");
  CHECK(traces.begun()[0].path == "x.cmt");
}

TEST_CASE_FIXTURE(StatusFile, "traces: a line that is not of a recorder of ours is not believed") {
  const TraceStatusFile traces(folder + "/app.cmt");
  const std::string ours = folder + "/app.cmt";
  add("pid=7 start_ns=1 begun=1 path=" + ours);
  add("pid=8 start_ns=1 begun=1 path=" + folder + "/app.8.cmt");
  for (const char* const pid : {"0", "-1", "4194305", "99999999999999999999", "x"})
    add(std::string("pid=") + pid + " start_ns=1 begun=1 path=" + ours);
  add("pid=9 start_ns=1 begun=1 path=/etc/shadow");
  add("pid=9 start_ns=1 begun=1 path=" + folder + "/../app.cmt");
  add("pid=9 start_ns=1 begun=1 path=app.cmt");
  add("pid=9 start_ns=1 begun=1 path=" + ours + "\x1b[2J");
  add("pid=9 start_ns=1 begun=1 path=" + ours + std::string(100000, 'x'));
  add("pid=7 start_ns=1 renamed=1 path=/etc/shadow");
  add("pid=7 start_ns=1 snapshot=1 kept_events=1 path=/etc/shadow");
  add("pid=7 start_ns=1 collector=-1 path=" + ours);
  add("pid=8 start_ns=1 events=18446744073709551615 unseen=-5 cpu_ns=9223372036854775807 bypass=\x1b[2J path=" + ours);
  const TraceStatusFile::Content content = traces.read();
  REQUIRE(content.begun.size() == 2);
  CHECK((std::filesystem::absolute(content.begun[0].path) == ours && content.begun[0].collector == 0 &&
         content.begun[0].kept_files.empty()));
  const BegunTrace& ended = content.begun[1];
  CHECK(
      (ended.ended && ended.events == 0 && ended.unseen == 0 && ended.collector_cpu_ns == 0 && ended.bypass == "?[2J"));
  CHECK(content.elsewhere == 4);
}

TEST_CASE_FIXTURE(StatusFile, "traces: programs that were not recorded are counted by program and reason") {
  const TraceStatusFile traces("/%n");
  for (const int pid : {7, 8, 9}) add("pid=" + std::to_string(pid) + " not_recorded=static path=/bin/x");
  add("pid=8 exec_failed=1 path=");
  add("pid=8 exec_failed=1 path=");
  add("pid=7 not_recorded=\x1b path=/bin/y");
  add("pid=7 not_recorded=rights path=su\x1b[2Jdo");
  add("pid=7 start_ns=5 begun=1 path=/a.cmt");
  add("pid=7 start_ns=5 refused=1 errno=24 path=perl");
  RecordedTraces recorded;
  const TraceStatusFile::Content content = traces.read();
  recorded.unrecorded = content.unrecorded;
  CHECK((content.refused == 1 && content.begun.empty()));
  CHECK(list_unrecorded(recorded) ==
        "4 programs not recorded: /bin/x (linked statically, 2 times), perl (Too many open files) and su?[2Jdo (other "
        "rights)");
}

TEST_CASE("traces: only the command of root may append lines as another user") {
  const TraceStatusFile traces("/%n");
  const std::filesystem::path path = traces.setting().substr(1), folder = path.parent_path();
  const auto of_others = std::filesystem::perms::group_all | std::filesystem::perms::others_all;
  const auto folders = std::filesystem::status(folder).permissions() & of_others;
  CHECK(folders == (geteuid() == 0 ? std::filesystem::perms::group_exec | std::filesystem::perms::others_exec
                                   : std::filesystem::perms::none));
  CHECK(path.filename().string().size() == 32);
}

TEST_CASE("traces: without CMTTRACE_STATUS the file is our own, and goes with us") {
  std::string path;
  {
    const TraceStatusFile traces("/%n");
    REQUIRE(traces.setting().starts_with("-/"));
    path = traces.setting().substr(1);
    CHECK(std::filesystem::exists(path));
    CHECK(traces.begun().empty());
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE_FIXTURE(StatusFile,
                  "traces: the file of a launcher around us is used, and that of one that is no more is not") {
  setenv("CMTTRACE_STATUS", ("-" + status).c_str(), 1);
  CHECK(TraceStatusFile("/%n").setting() != "-" + status);
  CHECK_FALSE(std::filesystem::exists(status));
  add("pid=1 begun=1 path=/before");
  const TraceStatusFile traces("/%n");
  CHECK(traces.setting() == "-" + status);
  add("pid=7 begun=1 path=/a.cmt");
  CHECK(traces.begun().size() == 1);
}

TEST_CASE_FIXTURE(StatusFile, "traces: a file is written to as long as a collector holds its lock") {
  add("");
  CHECK_FALSE(is_written(status));
  const int fd = open(status.c_str(), O_RDWR | O_CLOEXEC);
  struct flock lock = cmt::lock_of(F_WRLCK, cmt::recorder_at_work);
  REQUIRE(fcntl(fd, F_OFD_SETLK, &lock) == 0);
  CHECK(is_written(status));
  close(fd);
  CHECK_FALSE(is_written(status));
  CHECK_FALSE(is_written(folder + "/none"));
}

TEST_CASE("traces: this process is running, and one that cannot be is not") {
  CHECK(is_running(getpid()));
  CHECK_FALSE(is_running(0x7fffffff));
}

TEST_CASE_FIXTURE(StatusFile, "traces: a trace whose end is reported while others are read is not broken") {
  const TraceStatusFile traces("/nowhere/%n");
  add("pid=4194303 begun=1 path=/nowhere/a.cmt");
  add("pid=4194303 begun=1 path=/nowhere/b.cmt");
  const auto end_of_a = [&](const std::string&) { add("pid=4194303 events=3 failed=0 path=/nowhere/a.cmt"); };
  CHECK(wait_for_traces(traces, end_of_a, [](int, int) { return false; }).broken == 1);
}

TEST_CASE_FIXTURE(StatusFile, "traces: an appended line ends the pause of the wait for it") {
  add("");
  const TraceStatusFile traces("/nowhere/%n");
  const auto changes = traces.watch();
  if (changes.get() < 0) {
    MESSAGE("skipped: no inotify instance is left for this user");
    return;
  }
  const auto is_readable = [&] {
    pollfd ready{changes.get(), POLLIN, 0};
    return poll(&ready, 1, 0) == 1;
  };
  REQUIRE_FALSE(is_readable());
  add("pid=4194303 begun=1 path=/nowhere/a.cmt");
  CHECK(is_readable());
}

TEST_CASE_FIXTURE(StatusFile, "traces: a wait in which no line comes looks again after pauses that grow") {
  const TraceStatusFile traces("/nowhere/%n");
  add("pid=4194303 begun=1 path=/nowhere/a.cmt");
  std::vector<int> pauses;
  wait_for_traces(
      traces, [](const std::string&) {},
      [&](int, int milliseconds) {
        pauses.push_back(milliseconds);
        return pauses.size() == 5;
      });
  CHECK(pauses == std::vector<int>{2, 4, 8, 10, 10});
}

TEST_CASE("traces: losses are listed in words, and none if nothing is missing") {
  CHECK(list_losses({}).empty());
  RecordedTraces recorded;
  recorded.broken = 1;
  recorded.error = ENOSPC;
  recorded.traces.resize(2);
  recorded.traces[0].unseen = 2;
  recorded.traces[1].unseen = 1;
  CHECK(list_losses(recorded) ==
        std::vector<std::string>{"3 blocks freed whose allocation was not seen",
                                 "1 trace could not be written to the end: No space left on device"});
}

TEST_CASE("traces: the time that is kept is that of traces without their first events") {
  RecordedTraces recorded;
  recorded.traces.resize(3);
  recorded.traces[0].kept_ns = 5'000'000'000;
  recorded.traces[1].kept_ns = 2'000'000'000;
  recorded.traces[1].dropped_events = 7;
  CHECK(list_losses(recorded) == std::vector<std::string>{"the last 2.00 s are kept, and not the 7 events before"});
  recorded.traces[2].kept_ns = 1'000'000'000;
  recorded.traces[2].dropped_events = 5;
  CHECK(list_losses(recorded) ==
        std::vector<std::string>{"the last 1.00 s or more are kept, and not the 12 events before"});
}
