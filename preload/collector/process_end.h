// How a recorded process has ended.
#pragma once

#include <cstdint>

#include "preload/collector/collector.h"

namespace cmt::collector {

struct EndOfProcess {
  ProcessEnd how = ProcessEnd::unknown;
  int wait_status = -1;  ///< as of wait(2); -1: not known
};

/// Asks how a process has ended. Another process may wait for it meanwhile.
EndOfProcess find_process_end(int process_fd, std::uint32_t process);

/// Whether a process has become another program by exec: the rings are no longer in its memory. Reads /proc/PID/maps,
/// which can be long. A program that has gained rights in a new namespace may hide it. Then a process that has
/// announced an exec (Control::exec_pending) counts as another program when its words are others.
bool was_executed(const RingMemory& memory);

}  // namespace cmt::collector
