// How many threads a tool starts.
//
// A container mostly sees all processors of its machine, but a quota limits its processor time: for instance to 50 ms
// in 100 ms. When the time is used up, the kernel stops its threads for the rest of the 100 ms. One thread for each of
// 64 processors uses it up in 1 ms. A thread that others wait for may be among the stopped ones. So the quota counts:
//
//     cgroup v2   /proc/self/cgroup: 0::/app.slice                   /sys/fs/cgroup/app.slice/cpu.max: 150000 100000
//     cgroup v1   /proc/self/cgroup: 4:cpu,cpuacct:/docker/1f2e      /sys/fs/cgroup/cpu,cpuacct/docker/1f2e/
//                                                                      cpu.cfs_quota_us: 150000, cpu.cfs_period_us
//
// Each group on the way to the root may have a quota, and the least counts. Inside a container the path may be that of
// the machine. The container sees only its own part of the groups, as the root. So groups that are missing are skipped.

#include "toolkit/command/jobs.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "toolkit/process/proc_file.h"

namespace cmt::command {
namespace {

constexpr std::uint64_t jobs_max = 1024;

/// The text of a file. Empty if the file is missing or may not be read.
std::string text_of(const std::string& path) {
  try {
    return process::read_file(path);
  } catch (const std::exception&) {
    return {};
  }
}

/// Takes the number off that a text begins with. Returns nothing for "max" and "-1".
std::optional<std::uint64_t> take_number(std::string_view& text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

/// The processors that a quota of a period keeps busy, rounded up; 0: no quota.
unsigned processors_of(std::string_view quota, std::string_view period) {
  const auto quota_us = take_number(quota);
  if (!quota_us) return 0;
  const auto period_us = take_number(period.empty() ? quota : period);
  if (!period_us || *period_us == 0) return 0;
  const std::uint64_t processors = *quota_us / *period_us + (*quota_us % *period_us != 0 ? 1 : 0);
  return static_cast<unsigned>(std::clamp<std::uint64_t>(processors, 1, jobs_max));
}

unsigned quota_of_group(const std::string& folder, bool is_v2) {
  if (is_v2) return processors_of(text_of(folder + "/cpu.max"), {});
  return processors_of(text_of(folder + "/cpu.cfs_quota_us"), text_of(folder + "/cpu.cfs_period_us"));
}

/// The least of two quotas, of which 0 is none.
unsigned least(unsigned a, unsigned b) { return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b); }

/// The least quota of a group and of all around it.
unsigned quota_of_groups(const std::string& mount, std::string_view path, bool is_v2) {
  unsigned quota = quota_of_group(mount, is_v2);
  for (; path.size() > 1 && path.starts_with('/'); path = path.substr(0, path.rfind('/'))) {
    quota = least(quota, quota_of_group(mount + std::string(path), is_v2));
  }
  return quota;
}

bool names_cpu(std::string_view controllers) {
  for (;;) {
    const std::size_t comma = controllers.find(',');
    if (controllers.substr(0, comma) == "cpu") return true;
    if (comma == controllers.npos) return false;
    controllers.remove_prefix(comma + 1);
  }
}

}  // namespace

unsigned quota_processors(const std::string& proc, const std::string& cgroups) {
  const std::string text = text_of(proc + "/self/cgroup");
  unsigned quota = 0;
  for (std::string_view left = text; !left.empty();) {
    std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(line.size() + 1, left.size()));
    line.remove_prefix(std::min(line.find(':') + 1, line.size()));
    const std::size_t colon = line.find(':');
    if (colon == line.npos) continue;
    const std::string_view controllers = line.substr(0, colon), path = line.substr(colon + 1);
    if (controllers.empty()) {
      quota = least(quota, quota_of_groups(cgroups, path, true));
    } else if (names_cpu(controllers)) {
      const std::string all = cgroups + "/" + std::string(controllers);
      quota = least(quota, quota_of_groups(all, path, false));
      if (controllers != "cpu") quota = least(quota, quota_of_groups(cgroups + "/cpu", path, false));
    }
  }
  return quota;
}

unsigned processors_allowed() {
  cpu_set_t set;
  unsigned processors = std::thread::hardware_concurrency();
  // With more than 1,024 processors the call fails: then all of them count.
  if (sched_getaffinity(0, sizeof set, &set) == 0) processors = static_cast<unsigned>(CPU_COUNT(&set));
  return std::max(1U, least(processors, quota_processors()));
}

unsigned jobs_of(const CommandLine& line) {
  if (!line.has(jobs_option.name)) return processors_allowed();
  return static_cast<unsigned>(line.number(jobs_option.name, 0, 1, jobs_max));
}

}  // namespace cmt::command
