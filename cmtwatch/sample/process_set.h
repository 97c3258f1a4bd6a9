#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cmtwatch/sample/metric.h"
#include "cmtwatch/sample/probe.h"
#include "libcmt/heap/live_totals.h"

namespace cmt::watch {

/// Live bytes and blocks of a traced process.
using Live = heap::LiveTotals;

/// One process's part of a sample.
struct ProcessReading {
  int pid = 0;
  int parent = 0;  ///< when it was first seen
  std::string name;
  std::optional<std::uint64_t> bytes;  ///< none: it could not be read
  std::optional<Live> live{};          ///< where it is traced
};

/// One measurement. Times are nanoseconds since the watch began: the figures are of some moment between the two.
struct Sample {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t bytes = 0;                 ///< the sum over those that were read
  unsigned processes = 0;                  ///< that were read
  unsigned refused = 0;                    ///< that are there and could not be read: the sum is too small by them
  std::int64_t paused_ns = 0;              ///< for so long they were stopped
  std::size_t not_paused = 0;              ///< processes that ran on all the same
  std::vector<ProcessReading> by_process;  ///< where asked for
  std::optional<Live> live{};              ///< the sum over those that are traced; none: nobody is
  unsigned untraced = 0;                   ///< that are there, and have no trace
};

/// The processes that are watched together. One that still runs in its parent's memory, between vfork and exec, is
/// counted as its parent; where the kernel does not tell (kcmp(2) may be forbidden) it counts twice.
class Family {
 public:
  enum class Whom {
    one,          ///< the process alone
    descendants,  ///< and its descendants; those seen once stay, also when another process adopts them
    adopted,      ///< all descendants of ours but ourselves: we are the subreaper and adopt orphans
  };

  /// `pauses`: they are stopped while they are read.
  Family(int pid, Whom whom, Metric metric, std::string root = "/proc", bool pauses = false);

  /// Collectors of traces, which have this name, are no part of it, nor who keeps one.
  void leave_out(std::string name) { left_out_ = std::move(name); }

  /// Looks for new members and reads all. `details` fills by_process. A member that has vanished is left out.
  /// The times are left to the caller. Throws PauseRefused where the first one may not be stopped.
  Sample read(bool details);

  int pid() const { return pid_; }

 private:
  struct Member {
    Probe probe;
    int parent;
    std::optional<bool> ours{};  ///< known once it has memory of its own, and it is known whose it is
  };

  Sample read_members(bool details);
  bool counts(Member& member);
  std::optional<bool> is_ours(int pid) const;
  void find();
  void find_below(int pid, std::set<int>& visited);
  void add(int pid, int parent);
  bool has(int pid) const;

  int pid_;
  Whom whom_;
  Metric metric_;
  std::string root_;
  bool pauses_;
  std::string left_out_;
  std::list<Member> members_;
};

}  // namespace cmt::watch
