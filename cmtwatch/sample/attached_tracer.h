/// Traces a process that runs already, for the time of a watch.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "cmtwatch/sample/watch.h"
#include "toolkit/command/interrupts.h"
#include "toolkit/process/proc_file.h"

namespace cmt::watch {

/// Has a process recorded that runs already, by cmttrace --attach, for as long as this object exists. If this process
/// is killed, cmttrace lets go of the other one too.
class AttachedTracer : public WatchedTraces {
 public:
  /// Returns when the process is recorded. `pattern` as CMTTRACE_OUT; `follow`: the children that it forks from now on
  /// too. Throws std::runtime_error, with cmttrace's reason, where it cannot be recorded.
  AttachedTracer(int pid, const std::string& pattern, bool follow, const Complain& complain);
  ~AttachedTracer();

  /// Lets go of the process, and waits until its trace is written; a signal that comes meanwhile ends the wait. Returns
  /// what cmttrace has said, of which the last line sums up the recording. Throws std::runtime_error where the
  /// recording has failed.
  std::vector<std::string> end(command::Interrupts& interrupts);

 private:
  void start(const std::string& pattern, bool follow);
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
