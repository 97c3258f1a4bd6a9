// Checks --jobs and the quotas of control groups of both versions, read from files of the test.

#include "toolkit/command/jobs.h"

#include <doctest/doctest.h>
#include <sched.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace fs = std::filesystem;
using cmt::command::jobs_of;
using cmt::command::quota_processors;

namespace {

/// A /proc and a /sys/fs/cgroup of its own.
class ControlGroups {
 public:
  ControlGroups() { REQUIRE(mkdtemp(path_.data()) != nullptr); }
  ~ControlGroups() { fs::remove_all(path_); }

  void write(const std::string& name, const std::string& text) const {
    const fs::path path = fs::path(path_) / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  unsigned quota() const { return quota_processors(path_ + "/proc", path_ + "/cgroup"); }

 private:
  std::string path_ = (fs::temp_directory_path() / "cmt_jobs_test.XXXXXX").string();
};

unsigned jobs(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "tool");
  return jobs_of({static_cast<int>(arguments.size()), arguments.data(), {cmt::command::jobs_option}});
}

}  // namespace

TEST_CASE("jobs: a quota of control groups of version 2 is rounded up to processors") {
  const ControlGroups groups;
  groups.write("proc/self/cgroup", "0::/app.slice/run.scope\n");
  CHECK(groups.quota() == 0);
  groups.write("cgroup/app.slice/run.scope/cpu.max", "max 100000\n");
  CHECK(groups.quota() == 0);
  groups.write("cgroup/app.slice/run.scope/cpu.max", "250000 100000\n");
  CHECK(groups.quota() == 3);
  groups.write("cgroup/app.slice/run.scope/cpu.max", "20000 100000\n");
  CHECK(groups.quota() == 1);
}

TEST_CASE("jobs: the least quota of the groups around counts") {
  const ControlGroups groups;
  groups.write("proc/self/cgroup", "0::/app.slice/run.scope\n");
  groups.write("cgroup/app.slice/run.scope/cpu.max", "800000 100000\n");
  groups.write("cgroup/app.slice/cpu.max", "200000 100000\n");
  CHECK(groups.quota() == 2);
}

TEST_CASE("jobs: in a container, whose path is the machine's, the root's quota counts") {
  const ControlGroups groups;
  groups.write("proc/self/cgroup", "0::/../../docker/1f2e\n");
  groups.write("cgroup/cpu.max", "150000 100000\n");
  CHECK(groups.quota() == 2);
}

TEST_CASE("jobs: a quota of control groups of version 1") {
  const ControlGroups groups;
  groups.write("proc/self/cgroup", "12:pids:/x\n4:cpu,cpuacct:/docker/1f2e\n0::/\n");
  groups.write("cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  groups.write("cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  CHECK(groups.quota() == 0);
  groups.write("cgroup/cpu,cpuacct/docker/1f2e/cpu.cfs_quota_us", "350000\n");
  groups.write("cgroup/cpu,cpuacct/docker/1f2e/cpu.cfs_period_us", "100000\n");
  CHECK(groups.quota() == 4);
  groups.write("cgroup/cpu/cpu.cfs_quota_us", "100000\n");
  groups.write("cgroup/cpu/cpu.cfs_period_us", "100000\n");
  CHECK(groups.quota() == 1);
}

TEST_CASE("jobs: files that make no sense are no quota") {
  const ControlGroups groups;
  groups.write("proc/self/cgroup", "nonsense\n0::relative\n0:\n\n4:cpu:\n");
  groups.write("cgroup/cpu.max", "100000 0\n");
  CHECK(groups.quota() == 0);
}

TEST_CASE("jobs: a process that may use one processor has one") {
  cpu_set_t before, one;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  CHECK(cmt::command::processors_allowed() == 1);
  REQUIRE(sched_setaffinity(0, sizeof before, &before) == 0);
  CHECK(cmt::command::processors_allowed() >= 1);
}

TEST_CASE("jobs: --jobs=N is a number from 1 on, and without it the processors count") {
  CHECK(jobs({"--jobs=5"}) == 5);
  CHECK(jobs({}) == cmt::command::processors_allowed());
  for (const char* const wrong : {"--jobs=0", "--jobs=-1", "--jobs=many", "--jobs=1025"})
    CHECK_THROWS_AS(jobs({wrong}), cmt::command::UsageError);
}
