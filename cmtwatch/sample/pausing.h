/// Children and helpers that the tests of pauses share.
#pragma once

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <new>
#include <system_error>
#include <vector>

#include "cmtwatch/sample/pause.h"
#include "toolkit/process/stat.h"

namespace cmt::pausing {

/// The memory that a child shares with its test.
struct Shared {
  std::atomic<std::uint64_t> turns;    ///< rises while the child runs
  std::atomic<std::uint64_t> signals;  ///< that it handled
  std::atomic<std::uint64_t> sum;
};

inline Shared* shared = nullptr;

/// A child that does `work` until it is killed.
class Child {
 public:
  template <class Work>
  explicit Child(Work work) {
    void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    shared = new (memory) Shared{};
    pid_ = fork();
    if (pid_ == 0) {
      work();
      _exit(0);
    }
    await_turn();
  }
  ~Child() {
    if (!ended_) {
      kill(pid_, SIGKILL);
      wait();
    }
    munmap(shared, sizeof *shared);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int pid() const { return pid_; }

  /// Returns when the child has run since the call.
  void await_turn() const {
    const std::uint64_t before = shared->turns;
    while (shared->turns == before) sched_yield();
  }

  /// How it ended, as waitpid() has it.
  int wait() {
    int status = 0;
    ended_ = waitpid(pid_, &status, 0) == pid_;
    return status;
  }

  char state() const { return process::read_stat(pid_).state; }

  void await_state(char state) const {
    while (!all_threads_are(state)) sched_yield();
  }

  bool all_threads_are(char state) const {
    try {
      for (const int tid : process::read_threads(pid_)) {
        if (process::read_stat(tid).state != state) return false;
      }
      return true;
    } catch (const std::system_error&) {  // one has ended just now
      return false;
    }
  }

 private:
  int pid_ = -1;
  bool ended_ = false;
};

inline void count() {
  for (;;) ++shared->turns;
}

/// Calls `measure` while the process is paused.
template <class Measure>
void paused(int pid, Measure measure, process::InterruptedCalls&& calls = {}) {
  watch::while_paused(calls, [&](watch::Pause& pause) {
    pause.stop_all([pid] { return std::vector<int>{pid}; }, {pid});
    measure(pause);
  });
}

/// Returns false, and prints the reason, if tracing is not permitted here.
inline bool may_trace() {
  const Child child(count);
  const bool may = ptrace(PTRACE_SEIZE, child.pid(), nullptr, nullptr) == 0 || errno != EPERM;
  if (!may) MESSAGE("skipped: ptrace is not permitted");
  return may;
}

}  // namespace cmt::pausing
