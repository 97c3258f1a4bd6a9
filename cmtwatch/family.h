#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cmtwatch/metric.h"
#include "cmtwatch/probe.h"

namespace cmt::watch {

/// One process's part of a sample.
struct ProcessReading {
  int pid = 0;
  int parent = 0;  ///< when it was first seen
  std::string name;
  std::optional<std::uint64_t> bytes;  ///< none: it could not be read
};

/// One measurement. Times are nanoseconds since the watch began: the figures are of some moment between the two.
struct Sample {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t bytes = 0;                 ///< the sum over those that were read
  unsigned processes = 0;                  ///< that were read
  unsigned refused = 0;                    ///< that are there and could not be read: the sum is too small by them
  std::vector<ProcessReading> by_process;  ///< where asked for
};

/// The processes that are watched together.
class Family {
 public:
  enum class Whom {
    one,          ///< the process alone
    descendants,  ///< and its descendants; those seen once stay, also when another process adopts them
    adopted,      ///< all descendants of ours but ourselves: we are the subreaper and adopt orphans
  };

  Family(int pid, Whom whom, Metric metric, std::string root = "/proc");

  /// Looks for new members and reads all. `details` fills by_process. A member that has vanished is left out.
  /// The times are left to the caller.
  Sample read(bool details);

  int pid() const { return pid_; }

 private:
  struct Member {
    Probe probe;
    int parent;
  };

  void find();
  void find_below(int pid, std::set<int>& visited);
  void add(int pid, int parent);
  bool has(int pid) const;

  int pid_;
  Whom whom_;
  Metric metric_;
  std::string root_;
  std::list<Member> members_;
};

}  // namespace cmt::watch
