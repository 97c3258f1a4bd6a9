#pragma once

#include <signal.h>

#include "cmtreplay/shared_memory.h"

namespace cmt::replay {

/// While it lives, Ctrl-C and SIGTERM do not end the process but can be asked for. A child in the foreground gets its
/// own.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// Readable from the first signal on, for poll().
  int fd() const { return fd_.get(); }
  /// Whether one has come.
  bool pending() const;

 private:
  sigset_t before_;
  Fd fd_;
};

}  // namespace cmt::replay
