/// The memory of a process's control group.
///
/// A control group (of a container or service) is also charged for memory that none of its processes maps.
/// Examples are the page cache, files of a tmpfs, the kernel's own memory and buffers of sockets. A limit counts all of
/// it. So a container may be killed although its processes are small:
///
///     process   18 MiB proportional
///     group     17 MiB anonymous + 180 MiB of a tmpfs = 197 MiB
///
/// Both versions of control groups are read:
///
///     version 2   /proc/PID/cgroup: 0::/app.slice        memory.current, memory.peak, memory.max, memory.stat,
///                                                          memory.swap.current
///     version 1   /proc/PID/cgroup: 4:memory:/docker/1f  memory.usage_in_bytes, memory.max_usage_in_bytes,
///                                                          memory.limit_in_bytes, memory.stat (total_...),
///                                                          memory.kmem.usage_in_bytes, memory.kmem.tcp.usage_in_bytes
///
/// The root group is not reported: it is the machine (/proc/meminfo). In version 2 it has no memory.current.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cmt::process {

/// The memory that the kernel charges to a group and the groups below it. A figure that this kernel does not have is
/// std::nullopt: memory.peak is of Linux 5.19 and later, kernel of 5.18; version 1 has no slab.
struct GroupMemory {
  using Bytes = std::optional<std::uint64_t>;

  std::string path;      ///< as /proc/PID/cgroup names it
  unsigned version = 0;  ///< of control groups
  /// Contains anon, file, kernel and, in version 2, sock. It also contains kinds that have no member here.
  std::uint64_t current = 0;
  Bytes peak;   ///< since the group was made, or the peak was reset
  Bytes limit;  ///< std::nullopt: there is none
  Bytes anon;
  Bytes file;   ///< pages of files, those of shmem included
  Bytes shmem;  ///< tmpfs, shared anonymous memory
  Bytes kernel;
  Bytes slab;  ///< part of kernel
  Bytes sock;
  Bytes swap;                              ///< in swap; not part of current
  std::optional<std::uint64_t> processes;  ///< in the group, without groups below it
};

/// Where control groups are read from.
struct GroupFolders {
  std::string proc = "/proc";
  /// The folder in which the groups of version 2 are, and those of version 1 in "memory". Empty: as
  /// /proc/self/mountinfo says, so that a container finds its own; no group is found if `proc` is another one.
  std::string groups{};
};

/// The group that is charged for a process's memory.
struct GroupPlace {
  std::string path;
  unsigned version = 2;

  bool operator==(const GroupPlace&) const = default;
};

/// The group in the text of /proc/PID/cgroup. Version 1 has it if a hierarchy names the controller "memory". Returns
/// nullopt if none is named.
std::optional<GroupPlace> group_in(std::string_view cgroup);

/// Reads groups. Where they are mounted is looked up once.
class GroupReader {
 public:
  explicit GroupReader(GroupFolders folders = {});

  /// False: there is nothing to read, because /proc is another machine's and nobody has said where its groups are.
  bool is_useful() const { return folders_.proc == "/proc" || !folders_.groups.empty(); }
  /// Returns nullopt if the process has ended, or its group is not known.
  std::optional<GroupPlace> group_of(int pid) const;
  /// Returns nullopt if the group has gone, cannot be seen here, or is the root group.
  std::optional<GroupMemory> read(const GroupPlace& place);

 private:
  struct Mount {
    std::string folder;
    std::string root = "/";  ///< the group that the folder is
  };

  static std::optional<Mount> mount_in(std::string_view mountinfo, unsigned version);
  std::optional<Mount> find_mount(unsigned version) const;
  static std::optional<std::string> folder_of(const GroupPlace& place, const Mount& mount);

  GroupFolders folders_;
  std::array<std::optional<std::optional<Mount>>, 2> mounts_;  // by version - 1; not looked up, or not there
};

}  // namespace cmt::process
