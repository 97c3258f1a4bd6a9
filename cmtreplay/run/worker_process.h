#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cmtreplay/run/allocator.h"
#include "cmtreplay/run/feed.h"
#include "cmtreplay/run/watchdog.h"
#include "toolkit/command/interrupts.h"

namespace cmt::replay {

/// What all runs share.
struct Stage {
  std::string worker;  ///< its executable
  const PreparedTrace& trace;
  const command::Interrupts& interrupts;
  unsigned timeout_seconds = 60;  ///< without any call that comes to its end
  double pace = 0;                ///< recorded time over the replay's; 0: as fast as it goes
  touch touched = touch_pages;
  std::vector<int> cpus{};  ///< that workers are bound to; empty: to none
};

/// Whether threads have to share CPUs: what they then take says little of the allocator.
bool more_threads_than_cpus(const Stage& stage);

/// Ctrl-C, or SIGTERM.
struct Interrupted {};

/// An allocator ended the worker, or kept it for ever.
struct Death {
  Ending ending = {};
  bool hung = false;        ///< no call came to its end for so long that it was killed
  std::uint64_t event = 0;  ///< counted from 1; 0: before the first

  /// "signal 11 (Segmentation fault)", "no call has returned for 60 s".
  std::string text(unsigned timeout_seconds) const;
};

/// What one run does beside the calls.
struct RunOptions {
  const SharedMemory* pointers = nullptr;  ///< where returned pointers are kept, in recorded order
  bool latencies = false;
  bool counts_usable = false;           ///< control's usable_bytes is kept
  const SharedMemory* drain = nullptr;  ///< the trace's end_slots(), for drain()
  int verification_fd = -1;             ///< where faults are noted (verify.h); -1: calls are not checked
};

/// One run: a fresh process with an allocator in it, which stands before the first operation, at marks, and after the
/// last.
///
/// Each of the three returns nothing where the worker stands, and its death where it died. They throw Interrupted, and
/// std::system_error where the worker lacks memory or threads.
class Worker {
 public:
  Worker(const Stage& stage, const Allocator& allocator, const RunOptions& options = {});

  std::optional<Death> wait_until_ready();
  /// Every lane has done all before a mark, and nothing behind it.
  std::optional<Death> advance(const Mark& mark);
  std::optional<Death> finish();
  /// After that: frees what is live at the end.
  std::optional<Death> drain();

  pid_t pid() const { return child_->pid(); }
  /// What it measured: after its end.
  const ControlRegion& results() const { return *region_; }
  /// Memory that the worker has for the replay: slots, control, stacks as far as they are filled in before the start,
  /// and the ring of what is streamed.
  std::uint64_t replay_bytes() const;

 private:
  struct Gone {};  ///< the worker is dead, or hung

  void fill_control(const Stage& stage, const Allocator& allocator, const RunOptions& options);
  void pin();
  void go();
  void wait_for_room();
  void wait_until_still();
  void wait_for_byte();
  bool is_still();
  void look_after(int milliseconds);
  void check_set_up();
  template <class Act>
  std::optional<Death> guarded(Act act);
  Death death();

  const Stage& stage_;
  Order order_;
  bool streamed_;
  std::unique_ptr<Feed> feed_;
  std::unique_ptr<ControlRegion> region_;
  SharedMemory slots_;
  SharedMemory stacks_;
  Fd talk_;
  Watchdog watchdog_;
  bool going_ = false;
  bool hung_ = false;
  std::unique_ptr<Child> child_;
};

}  // namespace cmt::replay
