/// Where the memory that --keep-at watches is counted: in the control groups of the program. Where none has a limit, it
/// is counted in the machine or in the program alone.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cmt::collector {

/// Memory at a moment, in bytes.
struct MemoryFigures {
  static constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t used = 0;       ///< without pages of files, which the kernel drops before it kills
  std::uint64_t anonymous = 0;  ///< in memory: heaps, stacks
  std::uint64_t swapped = 0;    ///< 0 also where the kernel does not count it
  std::uint64_t limit = no_limit;
  std::uint64_t kills = 0;  ///< processes killed for lack of memory, since the begin of the group or the machine

  bool has_limit() const { return limit != no_limit; }
};

/// A place where memory is counted.
class MemorySource {
 public:
  enum class Kind { group_v2, group_v1, machine, process };

  /// `path`: the folder of a group, /proc, or /proc/PID.
  MemorySource(Kind kind, std::string path) : kind_(kind), path_(std::move(path)) {}

  Kind kind() const { return kind_; }
  const std::string& path() const { return path_; }
  /// Returns nothing if the files are not there (any more).
  std::optional<MemoryFigures> read() const;

 private:
  std::optional<MemoryFigures> read_group_v2() const;
  std::optional<MemoryFigures> read_group_v1() const;
  std::optional<MemoryFigures> read_machine() const;
  std::optional<MemoryFigures> read_process() const;

  Kind kind_;
  std::string path_;
};

/// Returns the folder of a thread that has the memory of its process, and for which no SIGKILL is due. Nothing: the
/// process has ended, or the kernel ends it and takes its memory back, or it cannot be seen. `folder`: /proc/PID. Its
/// first thread can have ended before the others.
std::optional<std::string> find_living_thread(const std::string& folder);

/// Finds the groups of a process that count memory, the innermost first: those of version 2, or else of version 1.
/// `groups` and `mounts`: /proc/PID/cgroup, and the caller's /proc/self/mountinfo. For a process in another container,
/// `mounts` is its /proc/PID/mountinfo, and `root` is /proc/PID/root. Groups outside of the view, as those around a
/// container, are not among them, and neither is the root of all groups, which has no limit.
std::vector<MemorySource> find_memory_groups(const std::string& groups, const std::string& mounts,
                                             const std::string& root = "");

}  // namespace cmt::collector
