#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cmt/reader.h"
#include "cmtreplay/plan/chunks.h"
#include "cmtreplay/plan/marks.h"
#include "cmtreplay/plan/router.h"

namespace cmt::replay {

/// What a trace holds, counted in a pass over it.
struct TraceFacts {
  std::uint64_t events = 0;
  std::uint64_t calls = 0;           ///< events that are carried out
  std::uint64_t failed_calls = 0;    ///< refused when recorded: left out
  std::uint64_t unknown_blocks = 0;  ///< events that give back a block from nowhere: frees are left out
  std::uint64_t other_events = 0;    ///< threads, marks, samples
  std::uint64_t sized_frees = 0;     ///< calls that state the size of what they free
  std::uint64_t defects = 0;
  bool truncated = false;
  std::array<std::uint64_t, kind_count> by_kind{};
  Live peak_live;  ///< each of the two at its own peak
  std::uint64_t peak_live_bytes_event = 0;
  Live end_live;
  std::uint64_t recorded_ns = unknown;  ///< from the first event to the last, where times were recorded
};

/// Where an operation stands.
struct Place {
  std::uint32_t lane = 0;
  std::uint64_t position = 0;
};

/// How a trace is to be replayed.
struct TraceOptions {
  bool threads = true;                   ///< those that were recorded; else one
  bool strict = false;                   ///< one call at a time, in recorded order
  bool paced = false;                    ///< recorded times go along
  std::uint64_t prepared_bytes_max = 0;  ///< more than that is not prepared but streamed
};

/// A trace after a first pass: what is in it, what its replay needs, and, where that is not too much, all of its
/// operations in shared memory, 8 bytes an event. Where it is, it is streamed: read again for every run.
class PreparedTrace {
 public:
  /// Opens the trace at its beginning, as often as it is called. The reader before is not used any more.
  using Open = std::function<Reader()>;

  /// `progress` is called now and then.
  PreparedTrace(Open open, const TraceOptions& options, const std::function<void(const Reader&)>& progress);

  const TraceFacts& facts() const { return facts_; }
  Format format() const { return format_; }
  Order order() const { return order_; }
  bool paced() const { return options_.paced; }
  const RouteCounts& counts() const { return counts_; }
  std::uint32_t lanes() const { return lanes_; }
  std::uint64_t slots() const { return slots_; }
  std::uint64_t pointers() const { return pointers_; }
  /// 100 at most, the moment of most live bytes and the end among them.
  const std::vector<Mark>& marks() const { return marks_; }
  /// Of the blocks that are live at the end.
  const std::vector<std::uint32_t>& end_slots() const { return end_slots_; }
  Reader open() const { return open_(); }

  /// The operations, or null where they are streamed.
  const PreparedChunks* chunks() const { return chunks_->whole() ? chunks_.get() : nullptr; }
  std::uint64_t operations_bytes() const;

  /// Of prepared operations: where lanes begin and end, and how many lanes each epoch has.
  const std::vector<std::uint32_t>& first_chunks() const { return first_chunks_; }
  const std::vector<std::uint64_t>& ends() const { return ends_; }
  const std::vector<std::uint32_t>& epochs() const { return epochs_; }

  /// The event, counted from 1, whose operation a lane has at a position. Reads the trace once more, to there; 0 where
  /// there is none.
  std::uint64_t event_at(std::uint32_t lane, std::uint64_t position) const { return event_at(lane, position, order_); }
  std::uint64_t event_at(std::uint32_t lane, std::uint64_t position, Order order) const {
    return events_at({{.lane = lane, .position = position}}, order).front();
  }
  /// The same of many, in one reading.
  std::vector<std::uint64_t> events_at(const std::vector<Place>& places, Order order) const;

 private:
  class Pass;

  Open open_;
  TraceOptions options_;
  TraceFacts facts_;
  Format format_ = Format::text;
  Order order_ = Order::one_thread;
  RouteCounts counts_;
  std::unique_ptr<PreparedChunks> chunks_;
  std::uint32_t lanes_ = 1;
  std::uint64_t slots_ = 0;
  std::uint64_t pointers_ = 0;
  std::vector<Mark> marks_;
  std::vector<std::uint32_t> end_slots_;
  std::vector<std::uint32_t> first_chunks_;
  std::vector<std::uint64_t> ends_;
  std::vector<std::uint32_t> epochs_;
};

}  // namespace cmt::replay
