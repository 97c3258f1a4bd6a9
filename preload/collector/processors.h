#pragma once

#include <sched.h>
#include <sys/types.h>

namespace cmt::collector {

/// The processors that this process may use.
class Processors {
 public:
  Processors();

  /// Moves a thread, 0 for the caller, that runs on `processor` to another one if it is among `busy`, as long as there
  /// are others. It may come back: where the program waits, its processor is free.
  void leave(const cpu_set_t& busy, int processor, pid_t thread) const;

 private:
  cpu_set_t allowed_;
  bool is_known_;
};

}  // namespace cmt::collector
