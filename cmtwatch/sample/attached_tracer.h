/// Traces a process that runs already, for the time of a watch.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "cmtwatch/sample/watch.h"
#include "toolkit/command/interrupts.h"
#include "toolkit/process/proc_file.h"

namespace cmt::watch {

/// Records a process that runs already, by cmttrace --attach, as long as this object exists. If this process is killed,
/// cmttrace detaches.
class AttachedTracer : public WatchedTraces {
 public:
  /// Returns when the recording has begun. `pattern` as CMTTRACE_OUT; `follow`: also records children that it forks
  /// from now on. Throws std::runtime_error, with cmttrace's reason, if it cannot be recorded.
  AttachedTracer(int pid, const TraceOptions& options, const Complain& complain);
  ~AttachedTracer();

  /// Detaches from the process, and waits until its trace is written; a signal ends the wait. Returns cmttrace's lines,
  /// the last of which sums up the recording. Throws std::runtime_error if the recording has failed.
  std::vector<std::string> end(command::Interrupts& interrupts);

 private:
  void start(const TraceOptions& options);
  void await_begin(const Complain& complain);
  bool read_lines();
  void await_end(command::Interrupts* interrupts);
  bool has_said(const std::string& text) const;
  bool is_target_there() const;
  void check_ending() const;

  int pid_;
  process::Fd target_;  ///< of the process (pidfd_open(2))
  pid_t cmttrace_ = -1;
  process::Fd said_;  ///< the end of a pipe that has cmttrace's standard error
  std::string text_;  ///< of it: a line that has no end yet
  std::vector<std::string> lines_;
  int wait_status_ = 0;
};

}  // namespace cmt::watch
