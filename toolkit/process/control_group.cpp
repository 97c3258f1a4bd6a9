// Finds a process's group below the mount of its hierarchy, and reads its files.
#include "toolkit/process/control_group.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <string_view>

#include "toolkit/process/proc_file.h"

namespace cmt::process {
namespace {

using GroupBytes = GroupMemory::Bytes;

/// The text of a file. Returns nullopt if it is missing or may not be read.
std::optional<std::string> group_file(const std::string& path) {
  try {
    return read_file(path);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

/// Takes the first line off a text.
std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

GroupBytes number_in(std::string_view word) {
  std::uint64_t number = 0;
  if (std::from_chars(word.data(), word.data() + word.size(), number).ec != std::errc()) return std::nullopt;
  return number;
}

/// The number in a file. Returns nullopt if there is no such file, or it has "max".
GroupBytes file_number(const std::string& path) {
  const auto text = group_file(path);
  return text ? number_in(*text) : std::nullopt;
}

/// The number after a key of memory.stat, "anon 4096".
GroupBytes stat_number(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = take_line(text);
    if (take_word(line) == key) return number_in(take_word(line));
  }
  return std::nullopt;
}

/// Whether a list such as "rw,memory" has a word.
bool has_word(std::string_view list, std::string_view wanted) {
  for (;;) {
    const std::size_t comma = list.find(',');
    if (list.substr(0, comma) == wanted) return true;
    if (comma == list.npos) return false;
    list.remove_prefix(comma + 1);
  }
}

std::optional<GroupMemory> read_version_2(const std::string& folder) {
  const auto current = file_number(folder + "/memory.current");
  if (!current) return std::nullopt;  // the root group has no such file
  const std::string stat = group_file(folder + "/memory.stat").value_or("");
  return GroupMemory{.path = {},
                     .version = 2,
                     .current = *current,
                     .peak = file_number(folder + "/memory.peak"),
                     .limit = file_number(folder + "/memory.max"),
                     .anon = stat_number(stat, "anon"),
                     .file = stat_number(stat, "file"),
                     .shmem = stat_number(stat, "shmem"),
                     .kernel = stat_number(stat, "kernel"),
                     .slab = stat_number(stat, "slab"),
                     .sock = stat_number(stat, "sock"),
                     .swap = file_number(folder + "/memory.swap.current"),
                     .processes = {}};
}

/// release_agent is only in the root group.
std::optional<GroupMemory> read_version_1(const std::string& folder) {
  constexpr std::uint64_t no_limit = std::uint64_t{1} << 62;
  const auto current = file_number(folder + "/memory.usage_in_bytes");
  if (!current || access((folder + "/release_agent").c_str(), F_OK) == 0) return std::nullopt;
  const std::string stat = group_file(folder + "/memory.stat").value_or("");
  GroupBytes limit = file_number(folder + "/memory.limit_in_bytes");
  if (limit && *limit >= no_limit) limit = std::nullopt;
  return GroupMemory{.path = {},
                     .version = 1,
                     .current = *current,
                     .peak = file_number(folder + "/memory.max_usage_in_bytes"),
                     .limit = limit,
                     .anon = stat_number(stat, "total_rss"),
                     .file = stat_number(stat, "total_cache"),
                     .shmem = stat_number(stat, "total_shmem"),
                     .kernel = file_number(folder + "/memory.kmem.usage_in_bytes"),
                     .slab = {},
                     .sock = file_number(folder + "/memory.kmem.tcp.usage_in_bytes"),
                     .swap = stat_number(stat, "total_swap"),
                     .processes = {}};
}

}  // namespace

std::optional<GroupPlace> group_in(std::string_view cgroup) {
  std::optional<GroupPlace> place;
  while (!cgroup.empty()) {
    std::string_view line = take_line(cgroup);
    line.remove_prefix(std::min(line.find(':') + 1, line.size()));
    const std::size_t colon = line.find(':');
    if (colon == line.npos) continue;
    const std::string_view controllers = line.substr(0, colon), path = line.substr(colon + 1);
    if (has_word(controllers, "memory")) return GroupPlace{std::string(path), 1};
    if (controllers.empty()) place = GroupPlace{std::string(path), 2};
  }
  return place;
}

GroupReader::GroupReader(GroupFolders folders) : folders_(std::move(folders)) {}

/// A line of mountinfo (proc_pid_mountinfo(5)) is "ID PARENT DEVICE ROOT FOLDER OPTIONS ... - TYPE SOURCE OPTIONS".
std::optional<GroupReader::Mount> GroupReader::mount_in(std::string_view mountinfo, unsigned version) {
  while (!mountinfo.empty()) {
    std::string_view line = take_line(mountinfo);
    const std::size_t dash = line.find(" - ");
    if (dash == line.npos) continue;
    std::string_view type_on = line.substr(dash + 3);
    const std::string_view type = take_word(type_on);
    take_word(type_on);
    const bool is_wanted =
        version == 2 ? type == "cgroup2" : type == "cgroup" && has_word(take_word(type_on), "memory");
    if (!is_wanted) continue;
    take_word(line), take_word(line), take_word(line);
    const std::string root(take_word(line));
    return Mount{.folder = std::string(take_word(line)), .root = root};
  }
  return std::nullopt;
}

std::optional<GroupReader::Mount> GroupReader::find_mount(unsigned version) const {
  if (!folders_.groups.empty()) return Mount{folders_.groups + (version == 1 ? "/memory" : "")};
  if (folders_.proc != "/proc") return std::nullopt;
  return mount_in(group_file("/proc/self/mountinfo").value_or(""), version);
}

/// The folder of a group. A container's mount may begin at its own group. "/.." is outside of our view.
std::optional<std::string> GroupReader::folder_of(const GroupPlace& place, const Mount& mount) {
  std::string_view path = place.path;
  if (path.starts_with("/..")) return std::nullopt;
  if (mount.root != "/" && path.starts_with(mount.root) &&
      (path.size() == mount.root.size() || path[mount.root.size()] == '/'))
    path.remove_prefix(mount.root.size());
  return mount.folder + (path == "/" ? "" : std::string(path));
}

std::optional<GroupPlace> GroupReader::group_of(int pid) const {
  return group_in(group_file(path_of(pid, "cgroup", folders_.proc)).value_or(""));
}

std::optional<GroupMemory> GroupReader::read(const GroupPlace& place) {
  std::optional<std::optional<Mount>>& mount = mounts_.at(place.version - 1);
  if (!mount) mount = find_mount(place.version);
  const auto folder = *mount ? folder_of(place, **mount) : std::nullopt;
  if (!folder) return std::nullopt;
  auto group = place.version == 1 ? read_version_1(*folder) : read_version_2(*folder);
  if (!group) return std::nullopt;
  group->path = place.path;
  if (const auto processes = group_file(*folder + "/cgroup.procs"))
    group->processes = static_cast<std::uint64_t>(std::count(processes->begin(), processes->end(), '\n'));
  return group;
}

}  // namespace cmt::process
