/// Starts a worker with an allocator, feeds it, and finds out how it ended.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cmtreplay/run/allocator.h"
#include "cmtreplay/run/control/feed.h"
#include "cmtreplay/run/control/watchdog.h"
#include "toolkit/command/interrupts.h"
#include "toolkit/output/fields.h"

namespace cmt::replay {

/// The runs in which an allocator reads the recorded time of the current event instead of the system's time.
enum class ClockRuns { memory, all, none };

/// Options of the command line about the runs.
struct ReplayOptions {
  std::string file = "-";
  unsigned runs = 0;  ///< timed runs of each allocator; 0: until the median is known well or budget_ns are spent
  std::uint64_t budget_ns = 10'000'000'000;
  unsigned rounds_min = 10;  ///< least number of rounds if `runs` is 0
  unsigned rounds_max = 1000;
  bool stops_when_known = true;  ///< ends the timed runs of an allocator when its median is known well
  unsigned memory_runs = 3;      ///< of each allocator, at most; no more than timed ones where their number is given
  unsigned latency_runs = 5;     ///< of each, at most: until there are enough samples
  unsigned seed = 1;             ///< of the order in which allocators take turns
  double pace = 0;               ///< recorded time over the replay's; 0: as fast as possible
  ClockRuns clock = ClockRuns::memory;  ///< in which allocators read the recorded clock, if the trace has times
  std::string touch = "page";
  bool counterparts = false;      ///< of calls that give memory back (worker/give_back.c)
  unsigned timeout_seconds = 60;  ///< without any call that returns
  std::vector<int> cpus;          ///< that workers are bound to; empty: any
  bool huge_pages_off = false;    ///< no transparent huge pages, whatever the machine's mode
};

/// Settings that all runs share.
struct ReplaySettings {
  std::string worker;  ///< its executable
  const PreparedTrace& trace;
  const command::Interrupts& interrupts;
  const ReplayOptions& options;
  std::function<void(double share)> on_wait = {};  ///< called some times a second in a run, with the share that is done
  std::function<void()> before_message = {};       ///< called before an allocator's message is printed
};

/// Whether threads have to share CPUs. Their times then depend on the scheduler more than on the allocator.
bool more_threads_than_cpus(const PreparedTrace& trace, const ReplayOptions& options);

/// Whether calls that give memory back are replayed as the allocator's own calls of the same purpose.
bool uses_counterparts(const ReplayOptions& options, const Allocator& allocator);

/// Whether the allocator reads the recorded clock in a run.
bool is_clock_recorded(const ReplaySettings& settings, bool memory_run);

/// Thrown on Ctrl-C and SIGTERM.
struct Interrupted {};

/// How an allocator ended the worker, or hung in a call. WorkerProcess throws it.
struct Death {
  launch::Ended ending = {};
  unsigned timeout_seconds = 0;  ///< after which it was killed because no call had returned; 0: it was not
  std::uint64_t event = 0;       ///< counted from 1; 0: before the first event, or if `began` after the last
  bool began = false;
  bool touched = false;    ///< not in a call: while the replay wrote to or read a large block
  std::string cause = {};  ///< how the allocator kept the replay from going on; empty: it ended the worker, or hung

  bool hung() const { return timeout_seconds != 0; }
  /// The end in words: "signal 11 (Segmentation fault)", "no call has returned for 60 s", "signal 9 (Killed), while its
  /// block was touched".
  std::string text() const;
  /// The place in words: "at event 4 of 5", "after the last event".
  std::string place(std::uint64_t events) const;
};

template <class Visitor, output::DescribedAs<Death> D>
void describe(Visitor& field, D& death) {
  field("event", death.event == 0 ? std::nullopt : std::optional(death.event),
        "the event that was replayed, counted from 1; null: none, before the first or after the last");
  field("after_end", death.event == 0 && death.began, "whether all events had been replayed");
  field("touched", death.touched, "whether it was in no call, but the replay was touching a block of more than 1 MiB");
  field("signal", death.ending.signal, "that ended the worker; 0: none");
  field("exit_status", death.ending.status, "of the worker, where no signal ended it");
  field("hung", death.hung(), "whether it was killed because no call had returned for the seconds of --timeout");
  field("text", death.text(), "how it ended, in words");
}

/// Further work of a run beside the calls.
struct RunOptions {
  const SharedMemory* pointers = nullptr;  ///< for the returned pointers, in recorded order
  bool latencies = false;
  bool counts_usable = false;           ///< control's usable_bytes is kept
  bool small = false;                   ///< it maps few operations, since for smaps the kernel walks all mappings
  const SharedMemory* drain = nullptr;  ///< the trace's end_slots(), for drain()
  int verification_fd = -1;             ///< of a struct verification for faults; -1: calls are not checked
  bool memory = false;                  ///< memory is measured, and no times
  bool is_debugged = false;             ///< this process becomes the worker, and a child of it feeds that
  std::uint32_t address_shift = 0;      ///< another shift gives other addresses, if these are fixed
};

/// One run: a fresh process with an allocator in it. It stops before the first operation, at marks and after the last
/// operation.
///
/// The functions that run it throw Death, Interrupted, and std::system_error if the worker lacks memory or threads.
class WorkerProcess {
 public:
  WorkerProcess(const ReplaySettings& settings, const Allocator& allocator, const RunOptions& options = {});
  /// Prints the allocator's messages, unless it had the same ones in a run before.
  ~WorkerProcess();

  void wait_until_ready() { wait_for_byte(); }
  /// Runs until every lane has carried out all operations before a mark, and none after it.
  void run_until(const Mark& mark);
  void run_to_end();
  /// Runs up to there. SIGTRAP then stops the worker in the thread that makes the next call.
  void stop_at(const StopPoint& point);
  /// Called after the end: frees the blocks that the trace leaves live.
  void drain();
  /// Called after the end: the worker ends by itself, with status 0.
  void let_end();

  pid_t pid() const { return child_->pid(); }
  /// The worker's measurements, after the end.
  const ControlRegion& results() const { return *region_; }
  /// The memory of the worker that the replay uses: slots, control, the part of the stacks that is touched before the
  /// start, and the ring of operations.
  std::uint64_t replay_bytes() const;

 private:
  void open_feed(const RunOptions& options);
  void fill_control(const Allocator& allocator, const RunOptions& options);
  void bind_to_cpus();
  void print_messages() const;
  void resume();
  template <class Missing>
  void wait_for_changes(Missing missing);
  void wait_for_room();
  void wait_for_byte();
  bool is_still();
  double share_done() const;
  void check_worker();
  std::string set_up_fault() const;
  [[noreturn]] void throw_death(bool hung);

  const ReplaySettings& settings_;
  std::string name_;
  std::shared_ptr<std::set<std::string>> printed_;
  Fd messages_;  ///< the worker's standard error; -1: ours
  Order order_;
  std::unique_ptr<Feed> feed_;
  std::unique_ptr<ControlRegion> region_;
  SharedMemory slots_;
  SharedMemory stacks_;
  Fd socket_;
  Watchdog watchdog_;
  bool resumed_ = false;
  std::unique_ptr<launch::ChildProcess> child_;
};

}  // namespace cmt::replay
