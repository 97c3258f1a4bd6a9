#pragma once

#include <cstdint>
#include <string>

#include "preload/collector/backlog.h"
#include "preload/collector/collector.h"

namespace cmt::collector {

/// The watch thread: notices the end of the process, samples its memory, and obeys commands from outside.
///
/// A process ends in two ways: it is gone, which its pidfd tells, or it has become another one by exec. Then the rings
/// are no longer in /proc/PID/maps. That file can be long, so it is read every 2 s, and at every tick where the program
/// has announced an exec.
/// Returns when the process has ended or the session is finished.
void run_watcher(RingMemory& memory, Backlog& backlog, SessionState& state, int process_fd, std::uint64_t sample_ns);

/// Whether a thread is in a wait for any child, clones too, that lasts until there is one: wait4(-1, …, __WALL) and its
/// like. `line`: its /proc/PID/syscall.
bool is_wait_for_any(const std::string& line);

/// Whether a process does nothing but wait for its children, clones too, and has no other than `child`.
bool waits_for_only(int process, int child);

}  // namespace cmt::collector
