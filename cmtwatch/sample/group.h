/// The control group of measured processes, beside what these processes have.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "toolkit/output/fields.h"
#include "toolkit/process/control_group.h"

namespace cmt::watch {

/// A group at one moment, with those of its processes that were measured at that moment.
struct GroupReading {
  process::GroupMemory memory;
  std::uint64_t measured_bytes = 0;  ///< of these processes together, by the metric of the measurement
  std::uint64_t measured_processes = 0;

  /// The bytes that are charged to the group and are not in the measured processes. Negative if they map pages that
  /// other groups are charged for, such as those of a library that another group has read first.
  std::int64_t beyond_bytes() const { return static_cast<std::int64_t>(memory.current - measured_bytes); }
};

/// The figures without path and version: a row of group_sample, and a part of the JSON.
template <class Visitor, output::DescribedAs<GroupReading> G>
void describe(Visitor& field, G& group) {
  auto& memory = group.memory;
  field("current_bytes", memory.current, "charged to the group and the groups below it: memory.current");
  field("peak_bytes", memory.peak,
        "the most so far: memory.peak; null, here and below except limit_bytes: this kernel has no such figure");
  field("limit_bytes", memory.limit, "memory.max; null: there is none");
  field("anon_bytes", memory.anon, "of no file, as the next ones of memory.stat");
  field("file_bytes", memory.file, "pages of files, mapped or not, with those of shmem");
  field("shmem_bytes", memory.shmem, "files of a tmpfs, shared anonymous memory");
  field("kernel_bytes", memory.kernel, "the kernel's own, for the group");
  field("slab_bytes", memory.slab, "of kernel_bytes, its objects; null with version 1");
  field("sock_bytes", memory.sock, "buffers of sockets");
  field("swap_bytes", memory.swap, "in swap; not in current_bytes");
  field("processes", memory.processes, "processes in the group, without groups below it");
  field("measured_processes", group.measured_processes, "processes of the group that were measured");
  field("measured_bytes", group.measured_bytes, "memory of the measured processes, by the metric");
}

/// The same after path and version, for JSON.
template <class Visitor>
void describe_named(Visitor& field, const GroupReading& group) {
  field("path", group.memory.path, "as /proc/PID/cgroup names it");
  field("version", group.memory.version, "of control groups: 1 or 2");
  describe(field, group);
}

/// The sum of each group over the measured processes of one moment.
class GroupSums {
 public:
  explicit GroupSums(process::GroupFolders folders) : groups_(std::move(folders)) {}

  /// Whether processes need be added at all.
  bool is_useful() const { return groups_.is_useful(); }
  void add(int pid, std::uint64_t bytes);
  /// The same with the text of the process's /proc/PID/cgroup.
  void add(std::string_view cgroup, std::uint64_t bytes);
  /// Reads the groups of the processes that were added since the last call. Groups that cannot be seen are left out.
  std::vector<GroupReading> take();

 private:
  struct Sum {
    process::GroupPlace place;
    std::uint64_t bytes = 0, processes = 0;
  };

  void add(const std::optional<process::GroupPlace>& place, std::uint64_t bytes);

  process::GroupReader groups_;
  std::vector<Sum> sums_;
};

/// "control group /app (version 2): 197 MiB, peak 198 MiB: anon 17.0 MiB, …; 179 MiB of it are not in the pss of 1
/// measured process". `amount` writes a number of bytes as text. If `metric` is empty, the part after the semicolon is
/// left out.
std::string group_text(const GroupReading& group, std::string_view metric,
                       const std::function<std::string(std::uint64_t)>& amount);

}  // namespace cmt::watch
