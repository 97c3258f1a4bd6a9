#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cmtreplay/allocator.h"
#include "cmtreplay/interrupts.h"
#include "cmtreplay/prepared_trace.h"
#include "cmtreplay/shared_memory.h"

namespace cmt::replay {

/// What all runs share.
struct Stage {
  std::string worker;  ///< its executable
  const PreparedTrace& trace;
  const Interrupts& interrupts;
};

/// Ctrl-C, or SIGTERM.
struct Interrupted {};

/// An allocator ended the worker.
struct Death {
  Ending ending;
  std::uint64_t event = 0;  ///< counted from 1; 0: before the first
};

/// One run: a fresh process with an allocator in it, stopped before the first operation, at each mark and after the
/// last.
class Worker {
 public:
  /// `marks`: words after which to stop; the end is added. `pointers`: where returned pointers are kept, or null.
  Worker(const Stage& stage, const Allocator& allocator, std::span<const Mark> marks, const SharedMemory* pointers);

  /// Waits until it has stopped; nothing where it has, and its death where it died. Throws Interrupted.
  std::optional<Death> wait_for_stop();
  void go();

  pid_t pid() const { return child_->pid(); }
  /// What it measured: after its last stop.
  const control& results() const { return *shared_.operator->(); }

 private:
  void fill_control(const Allocator& allocator, std::span<const Mark> marks, const SharedMemory* pointers);
  Death death();

  const Stage& stage_;
  SharedMemory slots_;
  Shared<control> shared_{"control"};
  Fd talk_;
  bool started_ = false;
  std::unique_ptr<Child> child_;
};

}  // namespace cmt::replay
