#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "preload/collector/backlog.h"
#include "preload/collector/collector.h"
#include "preload/collector/order.h"
#include "preload/collector/outputs.h"

namespace cmt::collector {

/// The encoder: takes work from the backlog, puts the events in order, and writes the files.
class EncodeThread {
 public:
  EncodeThread(RingMemory& memory, Backlog& backlog, SessionState& state, const std::vector<int>& outputs,
               const Settings& settings);

  /// Returns when the files are complete, or cannot be continued; the program has been told so then.
  void run();

  // When run() has returned.
  const Outputs& outputs() const { return outputs_; }
  const EventOrder& order() const { return order_; }
  std::uint64_t lost_events() const { return memory_.lost_events() + backlog_.lost_records(); }
  /// The errno that ended the trace, or 0.
  int error() const { return error_; }

 private:
  bool handle(WorkItem& item);
  std::size_t write_events(std::span<BookedEvent> events);
  void merge_until(const WorkItem& cut);
  bool has_reached_limit(std::uint64_t now_ns) const;
  bool must_save_rings() const;
  void save_rings();
  void write_checkpoint(std::uint32_t request);
  void finish(bool truncated);
  void answer(std::uint32_t request);
  void give_verdict(std::uint32_t verdict, const std::string& message);

  // Shared with the other threads.
  RingMemory& memory_;
  Backlog& backlog_;
  SessionState& state_;
  // The encoder's own.
  const Settings settings_;
  EventOrder order_;
  Outputs outputs_;  // reads the live blocks of order_
  StampTimes times_;
  bool flush_asked_ = false;
  std::uint64_t events_ = 0, events_flushed_ = 0, flushed_ns_;
  int error_ = 0;
};

}  // namespace cmt::collector
