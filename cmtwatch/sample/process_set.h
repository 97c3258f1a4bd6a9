/// The processes that are watched together, and how one sample of their memory is taken.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "analysis/sampling/estimate.h"
#include "cmtwatch/sample/group.h"
#include "toolkit/process/proc_file.h"
#include "toolkit/process/stopping/interrupted_calls.h"

namespace cmt::watch {

/// A figure of a process's memory. All are bytes.
enum class Metric {
  pss,   ///< proportional set: every resident page divided by the number of processes that map it; may be added up
  rss,   ///< resident set
  uss,   ///< unique set: resident pages that no other process maps
  anon,  ///< resident pages of no file
  swap,  ///< swapped out
  vm,    ///< address space
};

constexpr std::array<std::string_view, 6> metric_list{"pss", "rss", "uss", "anon", "swap", "vm"};
constexpr const char* metric_names = "pss, rss, uss, anon, swap or vm";  ///< for messages

constexpr std::string_view name_of(Metric metric) { return metric_list[static_cast<std::size_t>(metric)]; }

inline std::optional<Metric> metric_named(std::string_view name) {
  const auto found = std::find(metric_list.begin(), metric_list.end(), name);
  if (found == metric_list.end()) return std::nullopt;
  return static_cast<Metric>(found - metric_list.begin());
}

/// Whether it is memory in use, so that it can be compared with what a control group is charged for.
constexpr bool is_in_use(Metric metric) { return metric != Metric::swap && metric != Metric::vm; }

/// Whether the kernel walks page tables for it (smaps_rollup): 65 ms per GB of small pages. The others cost 10 us.
constexpr bool walks_page_tables(Metric metric) { return metric == Metric::pss || metric == Metric::uss; }

/// The memory of several processes together: proportional sets if they are recorded, so that shared memory counts once,
/// else resident sets.
class MemorySum {
 public:
  void add(const std::optional<std::uint64_t>& proportional_bytes, const std::optional<std::uint64_t>& resident_bytes) {
    if (!proportional_bytes && !resident_bytes) return;
    bytes_ += proportional_bytes.value_or(resident_bytes.value_or(0));
    (proportional_bytes ? any_proportional_ : any_resident_) = true;
  }

  void add(const MemorySum& other) {
    bytes_ += other.bytes_;
    any_proportional_ |= other.any_proportional_;
    any_resident_ |= other.any_resident_;
  }

  /// Whether anything could be read.
  bool any() const { return any_proportional_ || any_resident_; }

  std::uint64_t bytes() const { return bytes_; }

  /// "pss", "rss", or "pss or rss" if some processes have only one of them.
  std::string_view metric() const {
    if (any_proportional_ && any_resident_) return "pss or rss";
    return any_proportional_ ? "pss" : "rss";
  }

 private:
  std::uint64_t bytes_ = 0;
  bool any_proportional_ = false, any_resident_ = false;
};

/// Whether reading a file of a process failed because the process has ended.
bool means_gone(const std::system_error& error);
/// Whether it failed because the process is another user's.
bool means_forbidden(const std::system_error& error);

/// Throws std::runtime_error, with the reason, if a process has no memory to measure. It does not exist, is hidden, is
/// a kernel thread, or is a zombie.
void check_process(int pid, const std::string& root);

/// The result of measuring a process once. A process that could not be measured is never counted as 0.
struct Reading {
  enum class State { read, gone, refused };

  State state = State::gone;
  std::uint64_t bytes = 0;
};

/// Measures one figure of one process, again and again. It holds the process's folder in /proc open, so that another
/// process that gets the same pid is not mistaken for it.
class Probe {
 public:
  /// Throws std::system_error if there is no such process.
  Probe(int pid, Metric metric, const std::string& root = "/proc");

  Reading read();

  bool is_there();

  /// The current name; the last known one if the process is gone.
  const std::string& name();

 private:
  std::uint64_t read_without_page_tables();
  std::uint64_t read_rollup();

  Metric metric_;
  process::ProcessFolder folder_;
  process::Fd statm_;
  std::string name_;
  std::string buffer_;
};

/// Which processes are watched together, sample by sample.
class ProcessSet {
 public:
  enum class Includes {
    named,        ///< the processes that were added
    descendants,  ///< and their descendants. One that was seen stays, also when another process adopts it
    all,          ///< every process that there is
  };
  struct Member {
    int pid = 0;
    int parent = 0;  ///< when it was first seen; 0: it was added, or all processes are meant
  };

  /// `root` is the /proc to look in.
  ProcessSet(Includes includes, std::string root) : includes_(includes), root_(std::move(root)) {}

  void add(int pid) { insert({pid, 0}); }

  /// The children of a process, but not the process itself.
  void add_children_of(int pid) { parents_.push_back(pid); }

  /// Looks for new members. Parents come before their children.
  const std::vector<Member>& refresh();

  /// The same; returns their pids.
  std::vector<int> refresh_pids();

  const std::vector<Member>& members() const { return members_; }

  /// A process has ended: a later process with its pid is another one.
  void remove(int pid);

 private:
  void insert(Member member);
  void find_below(int pid, std::set<int>& visited);

  Includes includes_;
  std::string root_;
  std::vector<Member> members_;
  std::set<int> pids_;
  std::vector<int> parents_;
};

/// Live bytes and blocks. Without sampling they have no variance, and the interval is 0.
using analysis::Estimate;

/// The part of one process in a sample.
struct ProcessReading {
  int pid = 0;
  int parent = 0;  ///< when it was first seen
  std::string name;
  std::optional<std::uint64_t> bytes;  ///< none: it could not be read
  std::optional<Estimate> live{};      ///< if it is traced
};

/// One measurement. Times are nanoseconds since the watch began; the figures are of some moment between the two.
struct Sample {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t wall_ns = 0;                ///< of the begin, since 1970
  std::uint64_t bytes = 0;                 ///< the sum over the processes that were read
  unsigned processes = 0;                  ///< that were read
  unsigned refused = 0;                    ///< processes that could not be read, and are missing in the sum
  std::int64_t paused_ns = 0;              ///< for so long the processes were stopped
  std::size_t not_paused = 0;              ///< processes that could not be stopped
  std::vector<ProcessReading> by_process;  ///< if asked for
  std::optional<Estimate> live{};          ///< the sum over the traced processes; none: no process is traced
  unsigned untraced = 0;                   ///< processes without a trace
  std::vector<GroupReading> groups{};      ///< of the processes that were read

  /// Null if there is no group.
  const GroupReading* largest_group() const {
    const auto found = std::max_element(groups.begin(), groups.end(), [](const GroupReading& a, const GroupReading& b) {
      return a.memory.current < b.memory.current;
    });
    return found == groups.end() ? nullptr : &*found;
  }

  std::optional<std::uint64_t> readable_bytes() const { return processes == 0 ? std::nullopt : std::optional(bytes); }
};

/// Measures the processes of a set. A process that still runs in its parent's memory, between vfork and execve, is not
/// counted beside its parent. If kcmp(2) is forbidden, this is not known, and the memory counts twice.
class ProcessSampler {
 public:
  /// `pid` is the process that the watch is about. `pauses`: all are stopped while they are read.
  ProcessSampler(int pid, ProcessSet set, Metric metric, const process::GroupFolders& folders = {}, bool pauses = false)
      : pid_(pid), set_(std::move(set)), metric_(metric), root_(folders.proc), pauses_(pauses), groups_(folders) {}

  /// Collectors of traces are not measured from now on, nor are the supervisors that started them.
  void leave_out_collectors() { leaves_out_collectors_ = true; }

  /// Looks for new processes and reads all. `details` fills by_process. A process that has vanished is left out. The
  /// caller sets the times. Throws PauseRefused if the process that the watch is about may not be stopped.
  Sample read(bool details);

 private:
  struct Watched {
    Probe probe;
    std::optional<bool> counts{};  ///< once it has memory of its own: whether that belongs to the watch
  };

  Sample read_all(const std::vector<ProcessSet::Member>& members, bool details);
  Watched* find(int pid);
  bool counts(const ProcessSet::Member& member, Watched& watched) const;
  std::optional<bool> is_of_watch(int pid) const;

  int pid_;
  ProcessSet set_;
  Metric metric_;
  std::string root_;
  bool pauses_;
  process::InterruptedCalls interrupted_calls_;
  GroupSums groups_;
  bool leaves_out_collectors_ = false;
  std::map<int, Watched> watched_;
};

}  // namespace cmt::watch
