#include "preload/collector/memory_group/memory_watch.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

using namespace cmt::collector;

namespace {

constexpr std::uint64_t mib = 1 << 20;

/// A made-up hierarchy of control groups, and a made-up /proc.
class Groups {
 public:
  Groups() {
    std::string name = (std::filesystem::temp_directory_path() / "memory group XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~Groups() { std::filesystem::remove_all(root_); }
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;

  void put(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = root_ + "/" + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  /// A group of version 2 with so many MiB of anonymous memory and of pages of files.
  void put_v2(const std::string& group, std::uint64_t anonymous, std::uint64_t files, const std::string& max,
              int kills = 0) const {
    put(group + "/memory.current", std::to_string((anonymous + files) * mib));
    put(group + "/memory.stat", "anon " + std::to_string(anonymous * mib) + "\nfile " + std::to_string(files * mib) +
                                    "\ninactive_file " + std::to_string(files * mib) + "\nactive_file 0");
    put(group + "/memory.max", max);
    put(group + "/memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill " + std::to_string(kills));
  }
  void put_v1(const std::string& group, std::uint64_t rss, const std::string& limit) const {
    put(group + "/memory.usage_in_bytes", std::to_string(rss * mib));
    put(group + "/memory.stat", "cache 0\nrss 1\ntotal_rss " + std::to_string(rss * mib));
    put(group + "/memory.limit_in_bytes", limit);
  }
  std::string mount(const std::string& root, const std::string& type, const std::string& options) const {
    std::string point;
    for (const char c : root_) point += c == ' ' ? std::string("\\040") : std::string(1, c);
    return "30 22 0:27 " + root + " " + point + " rw,relatime shared:9 - " + type + " " + type + " " + options + "\n";
  }
  std::string path(const std::string& group) const { return root_ + "/" + group; }
  std::vector<MemorySource> find_v2(const std::string& group) const {
    return find_memory_groups("0::/" + group + "\n", mount("/", "cgroup2", "rw"));
  }

 private:
  std::string root_;
};

MemoryWatch watch_of(const Groups& groups, KeepAt at, std::vector<MemorySource> found,
                     std::vector<MemorySource> own = {}) {
  return MemoryWatch(at, std::move(found), std::move(own), groups.path("proc"), 7, 0);
}

constexpr std::uint64_t second = 1'000'000'000;

}  // namespace

TEST_CASE("memory source: the groups of version 2 are found from the innermost outwards") {
  const Groups groups;
  groups.put_v2("pod/app", 10, 5, "max");
  groups.put_v2("pod", 20, 5, "104857600");
  const auto found = groups.find_v2("pod/app");
  REQUIRE(found.size() == 2);  // the root of all groups has no counter
  CHECK(found[0].path() == groups.path("pod/app"));
  CHECK(found[1].path() == groups.path("pod"));
  CHECK_FALSE(found[0].read()->has_limit());
  CHECK((found[1].read()->limit == 100 * mib && found[1].read()->used == 20 * mib));
}

TEST_CASE("memory source: a mount that shows a part of the hierarchy, and the groups of other containers") {
  const Groups groups;
  groups.put_v2("app", 10, 0, "max");
  groups.put_v2("", 10, 0, "104857600");
  const std::string mount = groups.mount("/kubepods/pod7", "cgroup2", "rw");
  CHECK(find_memory_groups("0::/kubepods/pod7/app\n", mount).size() == 2);
  CHECK(find_memory_groups("0::/kubepods/pod7\n", mount).size() == 1);
  CHECK(find_memory_groups("0::/kubepods/pod8\n", mount).empty());
  CHECK(find_memory_groups("0::/../other\n", groups.mount("/", "cgroup2", "rw")).empty());
  CHECK(find_memory_groups("", mount).empty());
  // The files of the other container, as its processes see them.
  groups.put_v2("their/sys/fs/cgroup", 10, 0, "104857600");
  const auto other = find_memory_groups(
      "0::/../other\n", "30 22 0:27 /../other /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n", groups.path("their"));
  REQUIRE(other.size() == 1);
  CHECK(other[0].read()->limit == 100 * mib);
  groups.put_v2("their/sys/fs/cgroup/init", 10, 0, "max");
  CHECK(find_memory_groups("0::/../other/init\n", "30 22 0:27 /../other /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n",
                           groups.path("their"))
            .size() == 2);
}

TEST_CASE("memory watch: the recorder's part is stated where the recorder is counted") {
  const Groups groups;
  groups.put_v2("app", 10, 0, "104857600");
  groups.put_v2("recorder", 10, 0, "104857600");
  for (const std::string own : {"app", "recorder"}) {
    MemoryWatch watch = watch_of(groups, {.percent = 90, .bytes = 0}, groups.find_v2("app"), groups.find_v2(own));
    CHECK_FALSE(watch.look(second, false));
    CHECK((watch.text(second).find(" recorder=") != std::string::npos) == (own == "app"));
  }
}

TEST_CASE("memory source: version 1 where version 2 has no memory controller") {
  const Groups groups;
  groups.put_v1("docker/a", 30, "41943040");
  groups.put_v1("docker", 30, "9223372036854771712");
  groups.put_v1("", 300, "9223372036854771712");
  groups.put("release_agent", "");
  const std::string mounts =
      "31 30 0:40 / /nowhere rw - cgroup2 cgroup2 rw\n" + groups.mount("/", "cgroup", "rw,memory");
  const auto found = find_memory_groups("4:cpu,memory:/docker/a\n0::/\n", mounts);
  REQUIRE(found.size() == 2);
  CHECK((found[0].read()->limit == 40 * mib && found[0].read()->anonymous == 30 * mib));
  CHECK_FALSE(found[1].read()->has_limit());
}

TEST_CASE("memory source: the lower of memory.high and memory.max is the limit") {
  const Groups groups;
  groups.put_v2("app", 10, 0, "104857600");
  groups.put("app/memory.high", "52428800");
  CHECK(groups.find_v2("app")[0].read()->limit == 50 * mib);
  groups.put("app/memory.high", "max");
  CHECK(groups.find_v2("app")[0].read()->limit == 100 * mib);
}

TEST_CASE("memory watch: the mark is reached by memory that the kernel cannot drop") {
  const Groups groups;
  groups.put_v2("app", 50, 0, "104857600");
  MemoryWatch watch = watch_of(groups, {.percent = 90, .bytes = 0}, groups.find_v2("app"), groups.find_v2("app"));
  CHECK(watch.watched() == "group");
  CHECK_FALSE(watch.look(1 * second, false));
  groups.put_v2("app", 50, 50, "104857600");  // pages of files
  CHECK_FALSE(watch.look(2 * second, false));
  groups.put_v2("app", 90, 10, "104857600");
  CHECK(watch.look(3 * second, false));
  CHECK(watch.text(4 * second) == "group used=94371840 anonymous=94371840 limit=104857600 recorder=" +
                                      watch.text(4 * second).substr(watch.text(4 * second).find("recorder=") + 9));
  CHECK(watch.text(2 * second).find("used=52428800 ") != std::string::npos);
  CHECK(watch.text(second / 2).empty());
}

TEST_CASE("memory watch: the fullest of all groups counts, also one with a larger limit") {
  const Groups groups;
  groups.put_v2("pod/app", 10, 0, "104857600");
  groups.put_v2("pod", 190, 0, "209715200");
  MemoryWatch watch = watch_of(groups, {.percent = 90, .bytes = 0}, groups.find_v2("pod/app"));
  CHECK(watch.look(1 * second, false));
  CHECK(watch.text(1 * second).find("used=199229440 ") != std::string::npos);
}

TEST_CASE("memory watch: a size is one of the innermost group, with or without a limit") {
  const Groups groups;
  groups.put_v2("pod/app", 39, 0, "max");
  groups.put_v2("pod", 190, 0, "209715200");
  MemoryWatch watch = watch_of(groups, {.percent = 0, .bytes = 40 * mib}, groups.find_v2("pod/app"));
  CHECK_FALSE(watch.look(1 * second, false));
  groups.put_v2("pod/app", 40, 0, "max");
  CHECK(watch.look(2 * second, false));
}

TEST_CASE("memory watch: without a limit the machine is watched, without a counter the process") {
  const Groups groups;
  groups.put_v2("app", 39, 0, "max");
  groups.put("proc/meminfo", "MemTotal: 1024000 kB\nMemAvailable: 512000 kB\nAnonPages: 400000 kB");
  groups.put("proc/7/task/7/status", "Name: app\nRssAnon: 40960 kB\nVmSwap: 0 kB");
  MemoryWatch machine = watch_of(groups, {.percent = 90, .bytes = 0}, groups.find_v2("app"));
  CHECK(machine.watched() == "machine");
  CHECK_FALSE(machine.look(1 * second, false));
  CHECK(machine.look(2 * second, true));  // pressure
  MemoryWatch process = watch_of(groups, {.percent = 0, .bytes = 40 * mib}, {});
  CHECK(process.watched() == "process");
  CHECK(process.look(1 * second, false));
}

TEST_CASE("memory watch: figures from after a kill do not replace those before it") {
  const Groups groups;
  groups.put_v2("app", 95, 0, "104857600", 3);
  MemoryWatch watch = watch_of(groups, {.percent = 99, .bytes = 0}, groups.find_v2("app"));
  CHECK_FALSE(watch.look(1 * second, false));
  groups.put_v2("app", 20, 0, "104857600", 4);
  CHECK_FALSE(watch.look(2 * second, false));
  CHECK(watch.text(2 * second).find("used=99614720 ") != std::string::npos);
  CHECK(watch.text(2 * second).find(" kills=1 at=1000000000ns") != std::string::npos);
  CHECK_FALSE(watch.look(5 * second, false));  // it cannot be seen: it was another process's
  CHECK(watch.text(5 * second).find("used=20971520 ") != std::string::npos);
}

TEST_CASE("memory watch: after a kill figures count if the program lives") {
  const Groups groups;
  const std::string none = "SigPnd: 0000000000000000\n", kill = "SigPnd: 0000000000000100\n", shared = "ShdPnd: 0\n";
  groups.put("proc/7/task/7/status", "Name: app\n" + none + shared);  // its first thread has ended
  groups.put("proc/7/task/8/status", "Name: app\nRssAnon: 4 kB\n" + none + shared);
  groups.put_v2("app", 95, 0, "104857600", 3);
  MemoryWatch watch = watch_of(groups, {.percent = 99, .bytes = 0}, groups.find_v2("app"));
  CHECK_FALSE(watch.look(1 * second, false));
  // Another process was killed.
  groups.put_v2("app", 94, 0, "104857600", 4);
  CHECK_FALSE(watch.look(2 * second, false));
  CHECK(watch.text(2 * second).find("used=98566144 ") != std::string::npos);
  // The kernel ends the program, and takes its memory back.
  groups.put("proc/7/task/8/status", "Name: app\nRssAnon: 4 kB\n" + kill + shared);
  groups.put_v2("app", 20, 0, "104857600", 5);
  CHECK_FALSE(watch.look(6 * second, false));
  groups.put("proc/7/task/8/status", "Name: app\n" + none + shared);
  CHECK_FALSE(watch.look(60 * second, false));
  CHECK(watch.text(60 * second).find("used=98566144 ") != std::string::npos);
  // Its group is gone with it.
  std::filesystem::remove_all(groups.path("app"));
  CHECK(watch.text(60 * second).find(" kills=2 ") != std::string::npos);
}

TEST_CASE("memory mark: it is written again as memory grows, and now and then") {
  MemoryMark mark({.percent = 90, .bytes = 0});
  MemoryFigures memory{.used = 95 * mib, .limit = 100 * mib};
  CHECK(mark.is_due(memory, second, false));
  CHECK_FALSE(mark.is_due(memory, second, false));  // not written yet
  mark.note_written(2 * second, second / 10);
  memory.used = 96 * mib;
  CHECK_FALSE(mark.is_due(memory, 2 * second, false));  // a pause as long as the writing took
  CHECK(mark.is_due(memory, 2 * second + second / 10, false));
  mark.note_written(3 * second, second / 10);
  CHECK_FALSE(mark.is_due(memory, 12 * second, false));
  CHECK(mark.is_due(memory, 13 * second, false));
  mark.note_written(14 * second, second);
  CHECK_FALSE(mark.is_due(memory, 113 * second, false));  // a hundredth of the time at most
  memory.swapped = 1 * mib;
  CHECK(mark.is_due(memory, 113 * second, false));
  mark.note_written(114 * second, 0);
  memory.used = 80 * mib;
  CHECK_FALSE(mark.is_due(memory, 200 * second, false));
}

TEST_CASE("memory mark: looks are frequent only near the mark") {
  const MemoryMark mark({.percent = 50, .bytes = 0});
  CHECK(mark.wait_ms({.used = 0, .limit = 1024 * mib}) == 100);
  CHECK(mark.wait_ms({.used = 500 * mib, .limit = 1024 * mib}) == 10);
  CHECK(mark.wait_ms({.used = 900 * mib, .limit = 1024 * mib}) == 10);
}
