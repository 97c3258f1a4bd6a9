// The collector's two entries, and what the threads of a session share: the rings' memory, the backlog and
// SessionState. The threads do not know each other (doc/design/collector.md).
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "preload/collector/drain/backlog.h"
#include "preload/collector/drain/ring_memory.h"

namespace cmt::collector {

struct SessionState;
struct Settings;

/// Writes the trace of the process that has the rings. `outputs`: descriptors of the files that the control block
/// names. `process_fd`: the process's pidfd, or -1. Returns when the trace is complete or cannot be continued.
void run_session(RingMemory& memory, const std::vector<int>& outputs, int process_fd);

/// Writes the trace of a process that has ended, in the calling thread. Nobody has read its rings so far. The rest as
/// of run_session().
void run_ended_session(RingMemory& memory, const std::vector<int>& outputs, const Settings& settings,
                       SessionState& state);

/// Whether a thread blocks in a wait for any child, clones too, such as wait4(-1, …, __WALL). `line`: its
/// /proc/PID/syscall.
bool is_wait_for_any(const std::string& line);
/// Whether a process only waits for its children, clones too, and has no child but `child`.
bool waits_for_only(int process, int child);

struct Recovered {
  std::uint64_t events = 0;
  std::uint64_t from_rings = 0;
  std::uint64_t stacks_unknown = 0;  ///< events from rings whose call stacks are not known
  std::uint32_t rings_missing = 0;   ///< in a file that was cut off
  std::vector<std::string> paths;
};

/// Writes the trace of a program that ended together with its collector: the events of its files, and then those of its
/// rings (CMTTRACE_RINGS). `outputs`: the new files; by default one next to each file of the trace,
/// "app.7.recovered.cmt" for "app.7.cmt". Overwrites no file, and does not change the rings and the trace's files.
/// Throws FormatError and std::system_error, and then leaves no output.
Recovered recover(const std::string& rings, std::vector<std::string> outputs);

/// `executed`: the process has become another one by exec.
enum class ProcessEnd { none, exited, killed, unknown, executed };

class MemoryWatch;
class RunTimes;

/// The state that the threads of a session share, apart from the backlog. One thread writes each field.
struct SessionState {
  const int finished_fd;          ///< readable when is_finished has been set
  RunTimes* run_times = nullptr;  ///< null: the trace has no times
  MemoryWatch* memory = nullptr;  ///< null: memory is not watched (--keep-at)
  /// The clock of the collector's processor time, and what it had at the begin.
  const clockid_t cpu_clock = CLOCK_PROCESS_CPUTIME_ID;
  const std::uint64_t cpu_ns_before = 0;
  // By the watch thread. The three of the end are written before process_end.
  std::atomic<ProcessEnd> process_end = ProcessEnd::none;
  std::atomic<int> wait_status = -1;             ///< as of wait(2); -1: not known
  std::atomic<std::uint64_t> cpu_ns_at_end = 0;  ///< processor time that the collector had taken
  std::atomic<std::uint64_t> ended_ns = 0;       ///< when the end was noticed, by clock_ns(); 0: not yet
  std::atomic<bool> has_reader = false;          ///< a process reads the trace (libcmt/trace/files.h)
  // By the clock thread.
  std::atomic<std::uint64_t> time_step_ns = 0;  ///< the longest time without a rise of the clock; 0: no clock thread
  // By the thread that encodes.
  std::atomic<bool> is_finished = false;   ///< nothing more will be written
  std::atomic<pid_t> encode_thread = 0;    ///< the kernel's id of that thread
  std::atomic<int> encode_processor = -1;  ///< where it runs; -1: it has nothing to do

  std::uint64_t cpu_ns() const { return clock_ns(cpu_clock) - cpu_ns_before; }
};

/// Raises the shared clock once, and notes the longest time between two calls (Control::clock_step_ns).
void step_clock(RingMemory& memory);

/// The longest time without a rise of the clock until `ended_ns`, when the program ended. `noted_ns`: the longest time
/// between two calls of step_clock(). On a busy machine the last call may have been long before the end.
inline std::uint64_t longest_clock_step(std::uint64_t noted_ns, std::uint64_t raised_ns, std::uint64_t ended_ns) {
  return ended_ns > raised_ns ? std::max(noted_ns, ended_ns - raised_ns) : noted_ns;
}

/// The clock thread: raises the shared clock, from which the program's threads take coarse stamps. It does so every
/// `step_ns`, or as often as the kernel lets it, until the process has ended or the session is finished.
void run_clock(RingMemory& memory, SessionState& state, std::uint64_t step_ns);

/// The watch thread: notices the end of the process, samples its memory, and obeys commands from outside.
///
/// A process ends in two ways: it is gone, as its pidfd reports, or it has become another one by exec. After an exec
/// the rings are no longer in /proc/PID/maps. This file can be long. So the thread reads it every 2 s, and at every
/// tick after the program has announced an exec.
///
/// Returns when the process has ended or the session is finished. `outputs`: descriptors of the trace's files. In a
/// flight recorder, SIGUSR1 asks for a file of the kept events, as the command "keep" does. Otherwise it asks for a
/// profile, as the command "profile" does. Each of the collector's threads blocks this signal.
void run_watcher(RingMemory& memory, Backlog& backlog, SessionState& state, int process_fd,
                 const std::vector<int>& outputs, const Settings& settings);

}  // namespace cmt::collector
