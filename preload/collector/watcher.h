#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "preload/collector/backlog.h"
#include "preload/collector/collector.h"

namespace cmt::collector {

/// The watch thread: notices the end of the process, samples its memory, and obeys commands from outside.
///
/// A process ends in two ways: it is gone, which its pidfd tells, or it has become another one by exec. Then the rings
/// are no longer in /proc/PID/maps. That file can be long, so it is read every 2 s, and at every tick where the program
/// has announced an exec.
class WatchThread {
 public:
  WatchThread(RingMemory& memory, Backlog& backlog, SessionState& state, int process_fd, std::uint64_t sample_ns);
  ~WatchThread();
  WatchThread(const WatchThread&) = delete;
  WatchThread& operator=(const WatchThread&) = delete;

  /// Returns when the process has ended or stop() was called.
  void run();
  /// May be called by another thread.
  void stop();

 private:
  void end_keepers_parent_wait();
  ProcessEnd find_process_end();
  int read_wait_status() const;
  bool was_executed() const;
  void put_sample();
  void put_mark(std::string label);
  void put_event(std::uint32_t kind, std::uint64_t size, std::string_view label);
  void read_commands();
  void obey(std::string_view command);
  void set_paused(bool paused);

  // Shared with the other threads.
  RingMemory& memory_;
  Backlog& backlog_;
  SessionState& state_;
  const int stop_fd_;
  // The watch thread's own.
  const int process_fd_;
  const std::uint64_t sample_ns_;
  const int commands_fd_;
  std::string command_text_;     // read, without the end of its last line
  bool was_wait_found_ = false;  // end_keepers_parent_wait() found the wait at its last call
};

/// Whether a thread is in a wait for any child, clones too, that lasts until there is one: wait4(-1, …, __WALL) and its
/// like. `line`: its /proc/PID/syscall.
bool is_wait_for_any(const std::string& line);

/// Whether a process does nothing but wait for its children, clones too, and has no other than `child`.
bool waits_for_only(int process, int child);

}  // namespace cmt::collector
