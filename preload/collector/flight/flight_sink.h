#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "libcmt/trace/file/cmt_sink.h"
#include "preload/collector/flight/flight_blocks.h"

namespace cmt::collector {

/// Writes a .cmt of the last events only, when it is asked to, or at the end. Until then the file is empty.
///
/// Threads: used by one, the encoder.
class FlightSink : public Sink {
 public:
  /// Writes to `output` at the end. `folder`: of the file of what is kept. Borrows both `output` and `live`.
  FlightSink(Output& output, Header header, const LiveBlockSource& live, std::string folder, FlightLimits limits);

  void add_event(const BookedEvent& booked) override;
  void add_batch(const EventBatch& batch) override;
  std::size_t room() const override;
  /// Does nothing: a file is written by write().
  void flush() override {}
  void finish(const Totals& totals) override;
  void use_stacks(const StackTable& stacks) override { stacks_ = &stacks; }

  /// All events up to this time since the start have come. `repairs`: of the recording so far.
  void note_clock(std::uint64_t ns, const Repairs& repairs);
  /// Writes what is kept, a whole .cmt, and goes on. Throws std::system_error.
  FlightSpan write(Output& output, const Repairs& repairs, bool truncated);
  /// What is kept, but for the events of the block that fills.
  FlightSpan span() const { return blocks_.span(); }
  /// What finish() has written.
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
  std::vector<EventStack> event_stacks_;  // of the events in no full block, where stacks are recorded
  std::uint64_t events_ = 0, events_in_blocks_ = 0;
  Repairs repairs_;  // so far, at the last note_clock()
  FlightSpan finished_;
  bool wants_keyframe_ = false;
  std::uint64_t keyframe_ns_ = 0;  // of processor time, that the last one took
};

/// A file of what was kept at a moment.
struct WrittenFlight {
  std::string path;
  FlightSpan span;
};

/// Writes what is kept beside the trace, while the recording goes on: of app.cmt to app.kept.1.cmt, or to the next
/// number that is free. Tools that open it meanwhile wait until it is whole. Throws std::system_error, and then leaves
/// no file.
WrittenFlight write_beside(const std::string& trace, FlightSink& kept, const Repairs& repairs);

}  // namespace cmt::collector
