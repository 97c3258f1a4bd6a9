#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cmtwatch/sample/probe.h"
#include "libcmt/heap/live_totals.h"

namespace cmt::watch {

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

using heap::LiveTotals;

/// The part of one process in a sample.
struct ProcessReading {
  int pid = 0;
  int parent = 0;  ///< when it was first seen
  std::string name;
  std::optional<std::uint64_t> bytes;  ///< none: it could not be read
  std::optional<LiveTotals> live{};    ///< where it is traced
};

/// One measurement. Times are nanoseconds since the watch began; the figures are of some moment between the two.
struct Sample {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t bytes = 0;                 ///< the sum over the processes that were read
  unsigned processes = 0;                  ///< that were read
  unsigned refused = 0;                    ///< processes that could not be read, and are missing in the sum
  std::int64_t paused_ns = 0;              ///< for so long the processes were stopped
  std::size_t not_paused = 0;              ///< processes that could not be stopped
  std::vector<ProcessReading> by_process;  ///< where asked for
  std::optional<LiveTotals> live{};        ///< the sum over the traced processes; none: no process is traced
  unsigned untraced = 0;                   ///< processes without a trace

  std::optional<std::uint64_t> readable_bytes() const { return processes == 0 ? std::nullopt : std::optional(bytes); }
};

/// Measures the processes of a set. A process that still runs in its parent's memory, between vfork and execve, counts
/// as its parent; where the kernel does not tell (kcmp(2) may be forbidden) it counts twice.
class ProcessSampler {
 public:
  /// `pid` is the process that the watch is about. `pauses`: all are stopped while they are read.
  ProcessSampler(int pid, ProcessSet set, Metric metric, std::string root = "/proc", bool pauses = false)
      : pid_(pid), set_(std::move(set)), metric_(metric), root_(std::move(root)), pauses_(pauses) {}

  /// Collectors of traces, which have this name, are not measured, nor are the keepers that started them.
  void leave_out_collectors(std::string name) { collector_name_ = std::move(name); }

  /// Looks for new processes and reads all. `details` fills by_process. A process that has vanished is left out.
  /// The caller sets the times. Throws PauseRefused where the process that the watch is about may not be stopped.
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
  std::string collector_name_;
  std::map<int, Watched> watched_;
};

}  // namespace cmt::watch
