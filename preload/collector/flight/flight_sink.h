// The sink of a flight recorder (`cmttrace --keep`): keeps the last events, and writes them to a file on request or at
// the end.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "libcmt/trace/file/cmt_sink.h"
#include "preload/collector/flight/flight_blocks.h"

namespace cmt::collector {

/// Writes a .cmt of the last events only, on request or at the end. Until the end the trace's own file is empty.
///
/// Threads: used by one, the encoder.
class FlightSink : public Sink {
 public:
  /// Writes to `output` at the end. `folder`: of the file of kept blocks. Borrows both `output` and `live`.
  FlightSink(Output& output, Header header, const LiveBlockSource& live, std::string folder, FlightLimits limits);

  void add_event(const BookedEvent& booked) override;
  void add_batch(const EventBatch& batch) override;
  std::size_t room() const override;
  /// Does nothing: write() writes a file.
  void flush() override {}
  void finish(const Totals& totals) override;
  void use_stacks(const StackTable& stacks) override { stacks_ = &stacks; }

  /// Notes that all events up to this time since the start have come. `repairs`: of the recording so far.
  void note_clock(std::uint64_t ns, const Repairs& repairs);
  /// The value of the key `memory` in what is written from now on; empty: there is none.
  void describe_memory(std::string text) { memory_ = std::move(text); }
  /// Writes the kept events as a whole .cmt, and goes on. `goes_on`: the program does, too, so that the header always
  /// states what is kept. Throws std::system_error.
  FlightSpan write(Output& output, const Repairs& repairs, bool truncated, bool goes_on = false);
  /// The kept events, without those of the unfinished block.
  FlightSpan span() const { return blocks_.span(); }
  /// The events that finish() has written.
  const FlightSpan& finished() const { return finished_; }

 private:
  void take(FullBlock& block);
  bool begin_group_if_due();
  void note_stacks(const EventBatch& batch);

  Output& output_;
  const Header header_;
  const LiveBlockSource& live_;
  Output nowhere_{-1};
  CmtSink encoder_;
  FlightBlocks blocks_;
  const StackTable* stacks_ = nullptr;
  std::vector<EventStack> event_stacks_;  // of the events in no full block, if stacks are recorded
  std::uint64_t events_ = 0, events_in_blocks_ = 0;
  Repairs repairs_;  // of the recording, at the last note_clock()
  FlightSpan finished_;
  std::string memory_;
  bool wants_keyframe_ = false;
  std::uint64_t keyframe_ns_ = 0;  // processor time of the last keyframe
};

/// A file of the events that were kept at a moment.
struct WrittenFlight {
  std::string path;
  FlightSpan span;
};

/// Writes the kept events to a file next to the trace, while the recording goes on: for app.cmt to app.kept.1.cmt, or
/// to the next free number. Tools that open this file meanwhile wait until it is whole. Throws std::system_error, and
/// then leaves no file.
WrittenFlight write_beside(const std::string& trace, FlightSink& kept, const Repairs& repairs);

/// Does the same, but replaces the file that an earlier call has written, at once and as a whole. `path`: of that file;
/// empty: there is none, and the next free number is taken. A file that is not whole has the ending .part. Throws
/// std::system_error, and then leaves the earlier file.
WrittenFlight write_over(std::string path, const std::string& trace, FlightSink& kept, const Repairs& repairs);

}  // namespace cmt::collector
