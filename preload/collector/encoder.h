// The encoder of a session: from items of the backlog to events in order and to files, with limits, checkpoints and the
// status file.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "preload/collector/collector.h"
#include "preload/collector/order/order.h"
#include "preload/collector/outputs.h"
#include "preload/collector/profile/profile_files.h"
#include "preload/collector/ring_stacks.h"
#include "preload/text.h"

namespace cmt::collector {

/// The settings of a session, from the environment.
struct Settings {
  static constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

  Settings();

  std::uint64_t time_step_ns;  ///< of the clock thread; 0: no times, or each event reads the clock
  bool has_times;
  std::uint64_t sample_ns;  ///< 0: no samples
  std::uint64_t bytes_max, events_max, time_ns_max;
  std::uint64_t spill_bytes_max;  ///< no_limit: as the disk has room
  std::uint64_t pprof_ns;         ///< how often a profile is written; 0: not by time
  std::uint64_t pprof_files;      ///< how many profiles are kept
  FlightLimits keep;              ///< of a flight recorder; not set: all is kept
  std::optional<KeepAt> keep_at;  ///< when a flight recorder writes by itself
};

/// The encoder: puts the events in order, and writes the files.
///
/// Threads: used by one at a time. Others may read Progress meanwhile.
class Encoder {
 public:
  Encoder(RingMemory& memory, Backlog& backlog, SessionState& state, const std::vector<int>& outputs,
          const Settings& settings);

  /// Does what an item of the backlog asks. Returns false if no item is to follow. Throws OutputError.
  bool handle(WorkItem& item);

  struct Progress {
    std::atomic<std::uint64_t> events = 0, bytes = 0;  ///< in the trace
    std::atomic<std::uint64_t> cut_ns = 0;             ///< CLOCK_MONOTONIC: events up to here are in the trace
    std::atomic<bool> is_flush_asked = false;          ///< the next cut after flush_asked_ns_ flushes
    std::atomic<bool> is_profile_asked = false;        ///< the next cut after profile_asked_ns_ writes a profile
    std::atomic<bool> is_mark_reached = false;         ///< the next cut after mark_reached_ns_ writes the kept events
  };
  const Progress& progress() const { return progress_; }

  /// Starts a second thread, for much work at the end of a recording. Throws OutputError.
  void use_threads() { outputs_.use_threads(settings_.bytes_max == Settings::no_limit); }

  /// Whether the trace would come near a limit with so many more events, or is beyond one.
  bool is_near_limit(std::uint64_t events) const;

  /// Reports to the program that the trace cannot be continued.
  void fail(const OutputError& error);

  /// Whether the trace could not be continued.
  bool has_failed() const { return error_ != 0; }

  /// Appends the line of a complete trace to the status file (CMTTRACE_STATUS), for cmttrace and for tests.
  void report(std::uint64_t drain_cpu_ns) const;

 private:
  std::uint64_t time_step_ns(std::uint64_t ended_ns) const;
  std::string stop_fields() const;
  std::string missing_fields() const;
  std::string stack_fields() const;
  std::string kept_fields(const FlightSpan& span) const;
  std::string finished_fields() const;
  std::size_t write_events(EventBatch& batch);
  std::size_t block_events() const;
  std::size_t allowed_events(const EventBatch& batch);
  void flush();
  void merge_until(const WorkItem& cut);
  bool is_flush_due(const WorkItem& cut) const;
  void write_if_due(const WorkItem& cut);
  void write_kept();
  void write_at_mark();
  void describe_memory(std::uint64_t until_ns);
  void write_profile_if_due(const WorkItem& cut);
  void write_profile(bool is_last);
  Repairs repairs() const;
  bool must_save_rings() const;
  void save_rings();
  void write_checkpoint(std::uint32_t request);
  void note_run_times();
  void finish(bool truncated);
  void end_recording(bool truncated);
  void answer(std::uint32_t request);
  void give_verdict(std::uint32_t verdict, const std::string& message);
  std::uint64_t lost_events() const { return memory_.lost_events() + backlog_.lost_records(); }

  // Shared with the other threads.
  RingMemory& memory_;
  Backlog& backlog_;
  SessionState& state_;
  Progress progress_;
  // The encoder's own.
  const Settings& settings_;
  std::optional<RingStacks> stacks_;  // if they are recorded
  EventOrder order_;
  Outputs outputs_;  // reads the live blocks of order_
  std::uint64_t events_ = 0, events_flushed_ = 0, events_saved_ = 0, flushed_ns_, flush_asked_ns_ = 0;
  std::uint64_t mark_reached_ns_ = 0;
  std::string mark_path_;                // of the file that write_at_mark() replaces; empty: there is none yet
  int mark_error_ = 0;                   // the errno of its last call, or 0
  std::optional<StackProfile> profile_;  // if profiles are written
  std::optional<ProfileFiles> profile_files_;
  std::uint64_t profiled_ns_, profile_asked_ns_ = 0;
  int profile_error_ = 0;                               // the errno of the last file, or 0
  std::uint64_t last_cut_stamp_ = 0, last_cut_ns_ = 0;  // the clock of the last cut, and the time since the start
  std::vector<RunStretch> stretches_;                   // as of the last note_run_times()
  std::uint64_t pauses_written_ = 0;                    // a limit may end the trace before a pause
  const char* stopped_by_ = nullptr;                    // the limit that ended the trace
  std::uint64_t recorded_ns_ = 0;                       // with stopped_by_: there are no events after this time
  int error_ = 0;                                       // the errno that ended the trace, or 0
};

/// Appends a line to the status file: "pid=7 start_ns=9", the fields, and a path, by default the trace's. Ignores
/// errors.
void append_status(const StartFacts& facts, const std::string& fields, const std::string& path = {});

}  // namespace cmt::collector
