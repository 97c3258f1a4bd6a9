// The collector's two entries, and what the threads of a session share: the rings' memory, the backlog and
// SessionState. They do not know each other (doc/architecture.md, "The collector").
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "preload/collector/drain/backlog.h"
#include "preload/collector/drain/ring_memory.h"

namespace cmt::collector {

/// Writes the trace of the process that has the rings. `outputs`: descriptors of the files that the control block
/// names; `process_fd`: its pidfd, or -1. Returns when the trace is complete, or cannot be continued.
void run_session(RingMemory& memory, const std::vector<int>& outputs, int process_fd);

/// Whether a thread is in a wait for any child, clones too, that lasts until there is one: wait4(-1, …, __WALL) and its
/// like. `line`: its /proc/PID/syscall.
bool is_wait_for_any(const std::string& line);
/// Whether a process does nothing but wait for its children, clones too, and has no other than `child`.
bool waits_for_only(int process, int child);

struct Settings;

struct Recovered {
  std::uint64_t events = 0;
  std::uint64_t from_rings = 0;
  std::uint64_t stacks_unknown = 0;  ///< events from rings whose call stacks are not known
  std::uint32_t rings_missing = 0;   ///< in a file that was cut off
  std::vector<std::string> paths;
};

/// Writes the trace of a program that ended together with its collector: what its files have, and behind that what its
/// rings have (CMTTRACE_RINGS). `outputs`: the new files; empty: beside each file of the trace, "app.7.cmt" as
/// "app.7.recovered.cmt". Overwrites no file, and leaves the rings and the trace's files as they are. Throws
/// FormatError and std::system_error, and then leaves no output.
Recovered recover(const std::string& rings, std::vector<std::string> outputs);

/// `executed`: the process has become another one by exec.
enum class ProcessEnd { none, exited, killed, unknown, executed };

/// What the threads of a session tell each other beside the backlog. Each field is written by one of them.
struct SessionState {
  const int finished_fd;  ///< readable when is_finished has been set
  // By the watch thread. The two of the end are written before process_end.
  std::atomic<ProcessEnd> process_end = ProcessEnd::none;
  std::atomic<int> wait_status = -1;             ///< as of wait(2); -1: not known
  std::atomic<std::uint64_t> cpu_ns_at_end = 0;  ///< processor time that the collector had taken
  std::atomic<bool> has_reader = false;          ///< a process reads the trace (libcmt/trace/files.h)
  // By the clock thread.
  std::atomic<std::uint64_t> time_step_ns = 0;  ///< the longest for which it did not raise the clock; 0: it need not
  // By the thread that encodes.
  std::atomic<bool> is_finished = false;   ///< nothing more will be written
  std::atomic<pid_t> encode_thread = 0;    ///< the kernel's id of that thread
  std::atomic<int> encode_processor = -1;  ///< where it runs; -1: it has nothing to do
};

/// The clock thread: raises the clock that the program's threads are told every `step_ns`, or whenever the kernel lets
/// it, until the process has ended or the session is finished.
void run_clock(RingMemory& memory, SessionState& state, std::uint64_t step_ns);

/// The watch thread: notices the end of the process, samples its memory, and obeys commands from outside.
///
/// A process ends in two ways: it is gone, which its pidfd tells, or it has become another one by exec. Then the rings
/// are no longer in /proc/PID/maps. That file can be long, so it is read every 2 s, and at every tick where the program
/// has announced an exec.
/// Returns when the process has ended or the session is finished. `outputs`: descriptors of the trace's files.
/// Where only the last events are kept, SIGUSR1 asks for a file of them as the command "keep" does; each of the
/// collector's threads blocks it.
void run_watcher(RingMemory& memory, Backlog& backlog, SessionState& state, int process_fd,
                 const std::vector<int>& outputs, const Settings& settings);

}  // namespace cmt::collector
