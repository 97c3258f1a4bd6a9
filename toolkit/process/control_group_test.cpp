// Tests which group a process is found in, and the figures of both versions, in folders of the test.
#include "toolkit/process/control_group.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace fs = std::filesystem;
using namespace cmt::process;

namespace {

/// A /proc with process 7, and groups.
class MadeUpGroups {
 public:
  MadeUpGroups() { REQUIRE(mkdtemp(path_.data()) != nullptr); }
  ~MadeUpGroups() { fs::remove_all(path_); }

  void write(const std::string& name, const std::string& text) const {
    const fs::path path = fs::path(path_) / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::optional<GroupMemory> read() const {
    GroupReader groups({.proc = path_ + "/proc", .groups = path_ + "/cgroup"});
    const auto place = groups.group_of(7);
    return place ? groups.read(*place) : std::nullopt;
  }

 private:
  std::string path_ = (fs::temp_directory_path() / "cmt_group_test.XXXXXX").string();
};

}  // namespace

TEST_CASE("control group: version 2 has all figures") {
  const MadeUpGroups made;
  made.write("proc/7/cgroup", "0::/app.slice/job\n");
  CHECK(!made.read());
  const std::string group = "cgroup/app.slice/job/";
  made.write(group + "memory.current", "206569472\n");
  made.write(group + "memory.peak", "207618048\n");
  made.write(group + "memory.max", "536870912\n");
  made.write(group + "memory.swap.current", "4096\n");
  made.write(group + "memory.stat",
             "anon 17825792\nfile 188743680\nkernel 1048576\nsock 8192\nshmem 184549376\nanon_thp 1\nslab 524288\n");
  made.write(group + "cgroup.procs", "7\n8\n");
  const auto read = made.read();
  REQUIRE(read);
  CHECK(read->path == "/app.slice/job");
  CHECK(read->version == 2);
  CHECK(read->current == 206569472);
  CHECK(read->peak == 207618048U);
  CHECK(read->limit == 536870912U);
  CHECK(read->anon == 17825792U);
  CHECK(read->file == 188743680U);
  CHECK(read->shmem == 184549376U);
  CHECK(read->kernel == 1048576U);
  CHECK(read->slab == 524288U);
  CHECK(read->sock == 8192U);
  CHECK(read->swap == 4096U);
  CHECK(read->processes == 2U);
}

TEST_CASE("control group: figures that a kernel does not have are not known, and max is no limit") {
  const MadeUpGroups made;
  made.write("proc/7/cgroup", "0::/\n");
  made.write("cgroup/memory.current", "4096\n");
  made.write("cgroup/memory.max", "max\n");
  const auto read = made.read();
  REQUIRE(read);
  CHECK(!read->limit);
  CHECK(!read->peak);
  CHECK(!read->kernel);
  CHECK(!read->processes);
}

TEST_CASE("control group: version 1 counts, where its hierarchy has the controller memory, with groups below") {
  const MadeUpGroups made;
  made.write("proc/7/cgroup", "5:devices:/x\n4:cpu,memory:/docker/1f2e\n0::/other\n");
  made.write("cgroup/other/memory.current", "1\n");
  const std::string group = "cgroup/memory/docker/1f2e/";
  made.write(group + "memory.usage_in_bytes", "114200576\n");
  made.write(group + "memory.max_usage_in_bytes", "573063168\n");
  made.write(group + "memory.limit_in_bytes", "9223372036854771712\n");
  made.write(group + "memory.kmem.usage_in_bytes", "6238208\n");
  made.write(group + "memory.kmem.tcp.usage_in_bytes", "0\n");
  made.write(group + "memory.stat",
             "cache 1\nrss 2\ntotal_cache 105095168\ntotal_rss 2412544\ntotal_shmem 8192\ntotal_swap 0\n");
  const auto read = made.read();
  REQUIRE(read);
  CHECK(read->path == "/docker/1f2e");
  CHECK(read->version == 1);
  CHECK(read->current == 114200576);
  CHECK(read->peak == 573063168U);
  CHECK(!read->limit);
  CHECK(read->anon == 2412544U);
  CHECK(read->file == 105095168U);
  CHECK(read->shmem == 8192U);
  CHECK(read->kernel == 6238208U);
  CHECK(!read->slab);
  CHECK(read->sock == 0U);
  CHECK(read->swap == 0U);
}

TEST_CASE("control group: the root group is the machine, and a group outside of our view is not known") {
  const MadeUpGroups made;
  made.write("proc/7/cgroup", "4:memory:/\n");
  made.write("cgroup/memory/memory.usage_in_bytes", "4096\n");
  CHECK(made.read());
  made.write("cgroup/memory/release_agent", "");
  CHECK(!made.read());
  made.write("proc/7/cgroup", "0::/../../docker/1f2e\n");
  made.write("cgroup/memory.current", "4096\n");
  CHECK(!made.read());
  made.write("proc/7/cgroup", "nonsense\n");
  CHECK(!made.read());
}

TEST_CASE("control group: the group of this process is read, if this kernel has one for it") {
  GroupReader groups;
  const auto place = groups.group_of(getpid());
  const auto read = place ? groups.read(*place) : std::nullopt;
  if (!read) {
    MESSAGE("skipped: this process is in the root group, or in none that can be seen");
    return;
  }
  CHECK(read->current > 0);
  CHECK(read->processes.value_or(1) > 0);
}
