#pragma once

#include <cstdint>
#include <string>

#include "cmtwatch/sample/metric.h"
#include "toolkit/process/proc_file.h"

namespace cmt::watch {

/// What came of asking a process for a figure. Could not be measured is never 0.
struct Reading {
  enum class State { read, gone, refused };

  State state = State::gone;
  std::uint64_t bytes = 0;
};

/// One process, asked again and again for one figure. It holds the process's folder open, so that a pid that is used
/// again is not mistaken for it.
class Probe {
 public:
  /// Throws std::system_error where there is no such process.
  Probe(int pid, Metric metric, const std::string& root = "/proc");

  Reading read();

  bool is_there();

  /// The name that it has now; the last known one where it is gone.
  const std::string& name();

  int pid() const { return pid_; }

 private:
  Reading read_cheap();
  std::uint64_t read_rollup();

  int pid_;
  Metric metric_;
  process::ProcessFolder folder_;
  process::Fd statm_;
  std::string name_;
  std::string buffer_;
};

}  // namespace cmt::watch
