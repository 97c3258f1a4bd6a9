// Reads the kernel's files about memory, and finds the folders of control groups (cgroups(7)). The hard part: a path in
// /proc/PID/cgroup begins at the root of the hierarchy. A mount in a container may show only a part of it.

#include "preload/collector/memory_group/memory_source.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

namespace cmt::collector {
namespace {

/// A file of the form "NAME VALUE", one a line, such as memory.stat. A colon after the name, and a unit of kB as in
/// /proc/meminfo, are understood.
class NamedValues {
 public:
  explicit NamedValues(const std::string& path) : is_there_(read(path)) {}

  bool is_there() const { return is_there_; }
  std::uint64_t operator[](std::string_view name) const {
    for (const auto& [key, value] : values_) {
      if (key == name) return value;
    }
    return 0;
  }

 private:
  bool read(const std::string& path) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string name, unit;
      std::uint64_t value = 0;
      if (!(words >> name >> value)) continue;
      if (name.ends_with(':')) name.pop_back();
      values_.emplace_back(name, words >> unit && unit == "kB" ? value << 10 : value);
    }
    return !values_.empty();
  }

  std::vector<std::pair<std::string, std::uint64_t>> values_;
  bool is_there_;
};

/// Returns the number in a file. "max" is no limit. Nothing: there is no such file, or no number in it.
std::optional<std::uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  if (!(file >> text)) return std::nullopt;
  if (text == "max") return MemoryFigures::no_limit;
  std::istringstream digits(text);
  std::uint64_t value = 0;
  return digits >> value ? std::optional(value) : std::nullopt;
}

std::uint64_t without(std::uint64_t all, std::uint64_t part) { return all - std::min(all, part); }

bool is_there(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

/// Replaces the octal escapes of mountinfo, such as \040 for a blank.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](std::size_t at) { return text[i + at] >= '0' && text[i + at] <= '7'; };
    if (text[i] != '\\' || i + 3 >= text.size() || !digit(1) || !digit(2) || !digit(3)) {
      plain += text[i];
      continue;
    }
    plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
    i += 3;
  }
  return plain;
}

/// A line of /proc/PID/mountinfo about a hierarchy: "30 22 0:27 ROOT POINT options - TYPE SOURCE OPTIONS".
struct Hierarchy {
  std::string root, point;
};

bool has_word(const std::string& list, std::string_view word) {
  std::istringstream words(list);
  for (std::string one; std::getline(words, one, ',');) {
    if (one == word) return true;
  }
  return false;
}

/// Returns the hierarchy of version 2, or that of version 1 with the memory controller.
std::optional<Hierarchy> find_hierarchy(const std::string& mounts, bool is_v2) {
  std::istringstream lines(mounts);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == line.npos) continue;
    std::istringstream begin(line), end(line.substr(dash + 3));
    std::string skipped, root, point, type, source, options;
    begin >> skipped >> skipped >> skipped >> root >> point;
    end >> type >> source >> options;
    if (is_v2 ? type == "cgroup2" : type == "cgroup" && has_word(options, "memory"))
      return Hierarchy{unescaped(root), unescaped(point)};
  }
  return std::nullopt;
}

/// Returns the path of a process in a hierarchy: "/a/b" of "0::/a/b" or "4:memory:/a/b".
std::optional<std::string> path_in_hierarchy(const std::string& groups, bool is_v2) {
  std::istringstream lines(groups);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (is_v2 ? line.starts_with("0::") : has_word(controllers, "memory")) return line.substr(second + 1);
  }
  return std::nullopt;
}

/// Returns the part of a group's path that is below the mount. Nothing: the mount does not show the group, as that of
/// another container. Its path begins with "/.." or with another folder than the mount's root.
std::optional<std::filesystem::path> below_mount(const std::string& path, const std::string& root) {
  if (path == root) return "";
  const std::string begin = root == "/" ? root : root + "/";
  if (!path.starts_with(begin) || path.substr(begin.size()).starts_with("..")) return std::nullopt;
  return path.substr(begin.size());
}

std::vector<MemorySource> find_groups(const std::string& groups, const std::string& mounts, const std::string& root,
                                      bool is_v2) {
  std::vector<MemorySource> found;
  const auto hierarchy = find_hierarchy(mounts, is_v2);
  const auto path = path_in_hierarchy(groups, is_v2);
  if (!hierarchy || !path) return found;
  const char* const counter = is_v2 ? "/memory.current" : "/memory.usage_in_bytes";
  const auto own = below_mount(*path, hierarchy->root);
  if (!own) return found;
  for (std::filesystem::path below = *own;; below = below.parent_path()) {
    const std::string folder = root + (below.empty() ? hierarchy->point : (hierarchy->point / below).string());
    // Only the root of all groups of version 1 has the file release_agent; that of version 2 has no counter.
    if (is_there(folder + counter) && !is_there(folder + "/release_agent"))
      found.emplace_back(is_v2 ? MemorySource::Kind::group_v2 : MemorySource::Kind::group_v1, folder);
    if (below.empty()) return found;
  }
}

}  // namespace

std::optional<std::string> find_living_thread(const std::string& folder) {
  std::error_code error;
  for (std::filesystem::directory_iterator thread(folder + "/task", error), end; !error && thread != end;
       thread.increment(error)) {
    std::ifstream file(thread->path() / "status");
    bool has_any = false, is_killed = false;
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string name;
      std::uint64_t signals = 0;
      words >> name;
      has_any |= name == "RssAnon:";
      if (name == "SigPnd:" || name == "ShdPnd:")
        is_killed |= words >> std::hex >> signals && signals >> (SIGKILL - 1) & 1;
    }
    if (has_any && !is_killed) return thread->path().string();
  }
  return std::nullopt;
}

std::vector<MemorySource> find_memory_groups(const std::string& groups, const std::string& mounts,
                                             const std::string& root) {
  std::vector<MemorySource> found = find_groups(groups, mounts, root, true);
  return !found.empty() ? found : find_groups(groups, mounts, root, false);
}

std::optional<MemoryFigures> MemorySource::read() const {
  switch (kind_) {
    case Kind::group_v2:
      return read_group_v2();
    case Kind::group_v1:
      return read_group_v1();
    case Kind::machine:
      return read_machine();
    case Kind::process:
      return read_process();
  }
  return std::nullopt;
}

// The kernel slows a group down above memory.high, so that it may never reach memory.max: the lower one counts.
std::optional<MemoryFigures> MemorySource::read_group_v2() const {
  const auto current = number_in(path_ + "/memory.current");
  const NamedValues parts(path_ + "/memory.stat");
  if (!current || !parts.is_there()) return std::nullopt;
  return MemoryFigures{.used = without(*current, parts["inactive_file"] + parts["active_file"]),
                       .anonymous = parts["anon"],
                       .swapped = number_in(path_ + "/memory.swap.current").value_or(0),
                       .limit = std::min(number_in(path_ + "/memory.max").value_or(MemoryFigures::no_limit),
                                         number_in(path_ + "/memory.high").value_or(MemoryFigures::no_limit)),
                       .kills = NamedValues(path_ + "/memory.events")["oom_kill"]};
}

// Without a limit the file has the largest multiple of a page that a signed number holds.
std::optional<MemoryFigures> MemorySource::read_group_v1() const {
  const auto usage = number_in(path_ + "/memory.usage_in_bytes");
  const NamedValues parts(path_ + "/memory.stat");
  if (!usage || !parts.is_there()) return std::nullopt;
  constexpr std::uint64_t unlimited = std::uint64_t{1} << 62;
  const std::uint64_t limit = number_in(path_ + "/memory.limit_in_bytes").value_or(unlimited);
  return MemoryFigures{.used = without(*usage, parts["total_inactive_file"] + parts["total_active_file"]),
                       .anonymous = parts["total_rss"],
                       .swapped = parts["total_swap"],
                       .limit = limit >= unlimited ? MemoryFigures::no_limit : limit,
                       .kills = NamedValues(path_ + "/memory.oom_control")["oom_kill"]};
}

std::optional<MemoryFigures> MemorySource::read_machine() const {
  const NamedValues memory(path_ + "/meminfo");
  if (memory["MemTotal"] == 0) return std::nullopt;
  return MemoryFigures{.used = without(memory["MemTotal"], memory["MemAvailable"]),
                       .anonymous = memory["AnonPages"],
                       .swapped = without(memory["SwapTotal"], memory["SwapFree"]),
                       .limit = memory["MemTotal"],
                       .kills = NamedValues(path_ + "/vmstat")["oom_kill"]};
}

std::optional<MemoryFigures> MemorySource::read_process() const {
  const auto thread = find_living_thread(path_);
  if (!thread) return std::nullopt;
  const NamedValues status(*thread + "/status");
  return MemoryFigures{
      .used = status["RssAnon"], .anonymous = status["RssAnon"], .swapped = status["VmSwap"], .kills = 0};
}

}  // namespace cmt::collector
