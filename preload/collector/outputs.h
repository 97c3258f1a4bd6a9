// The files of a trace while it is recorded: stamps become times, and a checkpoint makes the files whole while the
// program goes on.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cmt/header.h"
#include "libcmt/trace/writer/ledger.h"
#include "preload/collector/drain/start_facts.h"
#include "preload/collector/flight/flight_sink.h"
#include "preload/protocol.h"

namespace cmt::collector {

/// A file could not be written.
struct OutputError : std::system_error {
  OutputError(std::string file, int error)
      : std::system_error(error, std::generic_category(), file), path(std::move(file)) {}
  std::string path;
};

/// Translates stamps to times, by a straight line through the last two moments at which both clocks were read.
class StampTimes {
 public:
  /// Both clocks at the program's start.
  StampTimes(std::uint64_t stamp, std::uint64_t ns)
      : start_ns_(ns), from_stamp_(stamp), from_ns_(ns), to_stamp_(stamp) {}

  /// Takes both clocks, read together. They must be later than all stamps that are translated before the next call.
  void calibrate(std::uint64_t stamp, std::uint64_t ns) {
    if (stamp <= to_stamp_ || ns < to_ns_) return;
    if (to_ns_ != 0) {
      from_stamp_ = to_stamp_;
      from_ns_ = to_ns_;
    }
    to_stamp_ = stamp;
    to_ns_ = ns;
    assert(from_stamp_ < to_stamp_);
    slope_ = static_cast<double>(to_ns_ - from_ns_) / static_cast<double>(to_stamp_ - from_stamp_);
  }

  /// Nanoseconds since the start. Never less than before.
  std::uint64_t time_of(std::uint64_t stamp) {
    if (stamp <= from_stamp_) return last_;
    const auto ns =
        from_ns_ + static_cast<std::uint64_t>(static_cast<double>(stamp - from_stamp_) * slope_) - start_ns_;
    if (ns > last_) last_ = ns;
    return last_;
  }

  /// No later time is before this one, of an event that has been read from a trace.
  void go_on_from(std::uint64_t ns) { last_ = std::max(last_, ns); }

 private:
  std::uint64_t start_ns_, from_stamp_, from_ns_, to_stamp_, to_ns_ = 0, last_ = 0;
  double slope_ = 0;
};

/// The trace's files, each in the format that its name selects.
///
/// A checkpoint makes the files whole while the program goes on. A forked copy of this process writes the end of the
/// trace. The original removes that end again when more events come.
///
/// Threads: used by one, the encoder. Functions that throw, throw OutputError.
class Outputs {
 public:
  /// Writes to `descriptors`, which are those of the paths and remain the caller's. Borrows `live_blocks`.
  Outputs(const StartFacts& facts, const std::vector<std::string>& paths, const std::vector<int>& descriptors,
          bool has_times, const LiveBlockSource& live_blocks, FlightLimits keep = {});

  /// To be called before the first event of a recording that has call stacks. Borrows the table, which may grow.
  void use_stacks(const StackTable& stacks) {
    for (const File& file : files_) file.sink->use_stacks(stacks);
  }
  /// The number of a stack in the first file, from which a recovery reads it; 0: it is not there.
  StackId saved_stack(StackId stack) const { return files_.empty() ? 0 : files_[0].sink->stack_in_file(stack); }

  /// Takes both clocks, read together. They must be later than all stamps up to the next call.
  void calibrate(std::uint64_t stamp, std::uint64_t ns) { times_.calibrate(stamp, ns); }
  /// Nanoseconds since the start, never less than before.
  std::uint64_t time_of(std::uint64_t stamp) const { return StampTimes(times_).time_of(stamp); }
  /// No stamp becomes an earlier time from now on.
  void go_on_from(std::uint64_t ns) { times_.go_on_from(ns); }
  /// Replaces the stamps of events by times, or removes them if the trace has no times.
  void convert_stamps(EventBatch& batch) {
    if (!has_times_) return batch.forget_times();
    batch.convert_times([this](std::uint64_t stamp) { return times_.time_of(stamp); });
  }
  /// Writes events, and returns the most that it takes next.
  std::size_t write_events(const EventBatch& batch);
  /// Writes all events that are held back, in whole blocks.
  void flush();
  /// Sets whether a second thread does a part of the work from now on. A checkpoint ends that thread.
  void use_threads(bool wanted);
  void begin_checkpoint();
  /// To be called after begin_checkpoint(), in the copy or if there is no copy.
  void forget_checkpoint() { resume_at_.clear(); }
  void finish(const Repairs& repairs, bool truncated, std::uint64_t samples_lost,
              std::vector<RunStretch> stretches = {});

  /// Whether the files are whole: no event has come since the checkpoint.
  bool is_whole() const { return !resume_at_.empty(); }

  /// To be called now and then in a flight recorder, with the time since the start and the repairs so far.
  void note_clock(std::uint64_t ns, const Repairs& repairs) {
    for_each_file([&](File&) { kept_->note_clock(ns, repairs); });
  }
  /// The sink of a flight recorder; null: all events are kept.
  FlightSink* kept() { return kept_; }
  const FlightSink* kept() const { return kept_; }

  /// The bytes of all files together.
  std::uint64_t bytes() const;
  std::vector<std::uint64_t> lengths() const;
  const Totals& totals() const { return tally_.totals(); }

 private:
  struct File {
    int fd;
    std::string path;
    std::unique_ptr<Output> output;
    std::unique_ptr<Sink> sink;
  };

  void undo_checkpoint();
  template <class Action>
  void for_each_file(Action action) {
    for (File& file : files_) {
      try {
        action(file);
      } catch (const std::system_error& error) {
        throw OutputError(file.path, error.code().value());
      }
    }
  }

  const bool has_times_;
  StampTimes times_;
  std::vector<File> files_;
  FlightSink* kept_ = nullptr;           // of the one file of a flight recorder
  std::vector<std::int64_t> resume_at_;  // offsets at which the copy began to write; empty: no checkpoint
  Tally tally_;
};

}  // namespace cmt::collector
