/// A trace that is ready to be replayed: its figures, its marks, and all of its operations.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cmt/reader.h"
#include "cmtreplay/plan/chunks.h"
#include "cmtreplay/plan/router.h"
#include "cmtreplay/plan/written_pages/page_uses.h"
#include "toolkit/output/fields.h"

namespace cmt::replay {

/// A moment in the trace at which memory is measured.
struct Mark {
  std::uint64_t event = 0;  ///< events before it, of all kinds
  heap::LiveTotals live;
  std::uint64_t time_ns = unknown;         ///< recorded time of the last event before it
  std::uint64_t next_ns = unknown;         ///< of the event after it, in a mark of TimeMarks
  std::uint64_t untouched_bytes = 0;       ///< of live bytes, if the trace has touched pages
  std::vector<std::uint64_t> positions{};  ///< of each lane, in words
};

/// Collects candidates for marks while the length of the trace is not known yet: the moment after each 2^n-th event.
/// When there are too many it drops every other one and doubles the distance. So it has 4,096 to 8,192 candidates at
/// equal distances. With many lanes it has fewer, so that the positions take some 4 MB at most.
class MarkCandidates {
 public:
  /// Whether the moment after an event is a candidate. Events are counted from 1, and come in order.
  bool wants(std::uint64_t event) const { return (event & (distance_ - 1)) == 0; }
  void add(Mark moment);

  /// Returns at most `count` marks at different events, in order. They divide the trace into parts as equal as the
  /// candidates allow. The last mark is the end.
  std::vector<Mark> choose(std::size_t count, Mark end) const;

  const std::vector<Mark>& kept() const { return kept_; }

 private:
  static constexpr std::size_t kept_max = 8192;

  std::vector<Mark> kept_;
  std::uint64_t distance_ = 1;
};

/// Time marks: moments for a mean over the recorded time, one in each of equal parts of it. Marks after equal numbers
/// of events would count states that last for no time as often as others. Example: a program frees a buffer, allocates
/// the next one at once, and then waits.
///
/// Candidates are the moments at multiples of a power of two of nanoseconds. When there are too many, the distance is
/// doubled.
class TimeMarks {
 public:
  /// Distances count from `begin_ns`, so a trace that is shifted in time has the same marks.
  explicit TimeMarks(std::uint64_t begin_ns = 0) : begin_ns_(begin_ns) {}

  std::uint64_t begin_ns() const { return begin_ns_; }

  /// Whether the moment before an event is a candidate. `last_ns`, `next_ns`: times of the event before and of this
  /// one.
  bool wants(std::uint64_t last_ns, std::uint64_t next_ns) const {
    return (last_ns - begin_ns_) >> shift_ < (next_ns - begin_ns_) >> shift_;
  }
  /// `moment`: with its `next_ns`.
  void add(Mark moment);

  /// Returns at most `count` moments at different events, in order, up to a time. The place
  /// within each part varies. At equal distances, all moments of a program that repeats itself might be in one state.
  std::vector<Mark> choose(std::size_t count, std::uint64_t end_ns) const;

 private:
  static constexpr std::size_t kept_max = 1024;

  std::vector<Mark> kept_;
  std::uint64_t begin_ns_;
  unsigned shift_ = 0;
};

/// Replaces the nearest of some ordered marks by this moment. The last mark stays, since it is the end.
void include_mark(std::vector<Mark>& marks, const Mark& moment);

/// Adds this moment to ordered marks. If there is a mark at the same event, only `next_ns` is copied to it.
void add_mark(std::vector<Mark>& marks, const Mark& moment);

/// Figures of a trace, from a pass over it.
struct TraceFacts {
  std::uint64_t events = 0;
  std::uint64_t calls = 0;
  std::uint64_t failed_calls = 0;
  std::uint64_t unknown_blocks = 0;
  std::uint64_t other_events = 0;
  std::uint64_t sized_frees = 0;
  std::uint64_t touch_events = 0;
  std::uint64_t discard_events = 0;
  std::uint64_t give_back_calls = 0;
  std::uint64_t give_back_left_out = 0;
  std::uint64_t touched_min = 0;                         ///< by the trace's header
  std::optional<std::uint64_t> mean_touched_bytes = {};  ///< over the recorded time, of live bytes that are touched
  std::uint64_t peak_touched_bytes = 0;                  ///< the most bytes of live blocks on touched pages
  std::uint64_t unknown_bytes = 0;                       ///< live at the peak: assumed_writes.h
  std::uint64_t left_out_bytes = 0;                      ///< of these: not written by the replay
  std::uint64_t defects = 0;
  bool truncated = false;
  std::uint64_t lost_events = 0;  ///< that the recorder has lost
  std::array<std::uint64_t, kind_limit> by_kind{};
  heap::LiveTotals peak_live;  ///< each of the two at its own peak
  std::uint64_t peak_live_bytes_event = 0;
  heap::LiveTotals end_live;
  std::uint64_t before_teardown_event = 0;  ///< the last event before the tear-down (teardown.h); 0: there is none
  std::uint64_t before_teardown_live_bytes = 0;
  std::uint64_t recorded_ns = unknown;
  std::uint64_t recorded_cpu_ns = unknown;  ///< of all threads of the recorded program
  std::string allocator;                    ///< the library whose malloc served the recorded program; empty: not known

  bool has_teardown() const { return before_teardown_event != 0; }
};

template <class Visitor, output::DescribedAs<TraceFacts> Facts>
void describe(Visitor& field, Facts& facts) {
  field("events", facts.events, "events in the trace");
  field("calls", facts.calls, "events that are replayed as calls");
  field("refused_calls", output::renamed(facts.failed_calls, "failed_calls"),
        "calls that were refused when recorded, and are left out");
  field("unknown_blocks", facts.unknown_blocks,
        "events that free or resize a block that the trace does not know; the frees are left out");
  field("other_events", facts.other_events,
        "threads, marks, samples, pages of unknown blocks, resident pages that are not written");
  field("defects", facts.defects, "things in the trace that are missing, altered or left out");
  field("truncated", facts.truncated, "whether the trace breaks off before its end");
  field("lost_events", facts.lost_events, "events that the recorder has lost, which the replay lacks");
  field("peak_live_bytes", facts.peak_live.bytes, "the most bytes that were live at once");
  field("peak_event", output::renamed(facts.peak_live_bytes_event, "peak_live_bytes_event"),
        "the event with which that peak was reached, from 1; 0: no block was live");
  field("most_live_blocks", output::renamed(facts.peak_live.blocks, "peak_live_blocks"),
        "the most blocks that were live at once, which need not be at the peak of live bytes");
  field("end_live_bytes", facts.end_live.bytes, "bytes that were never freed");
  field("end_live_blocks", facts.end_live.blocks, "their blocks");
  const auto of_teardown = [&facts](std::uint64_t figure) {
    return facts.has_teardown() ? std::optional(figure) : std::nullopt;
  };
  field("before_teardown_event", of_teardown(facts.before_teardown_event),
        "the last event before the tear-down (cmtreplay/plan/teardown.h); null: the trace has none");
  field("before_teardown_live_bytes", of_teardown(facts.before_teardown_live_bytes), "after that event");
  field("recorded_ns", output::nullable(facts.recorded_ns), "from the first event to the last");
  field("recorded_cpu_ns", output::nullable(facts.recorded_cpu_ns),
        "processor time of all threads of the recorded program; null: not recorded, or the trace is a slice");
  field("touch_events", facts.touch_events, "runs of touched pages that are written when they were");
  field("discard_events", facts.discard_events, "calls of madvise that gave back pages of blocks, and are replayed");
  field("touched_min", facts.touched_min == 0 ? std::nullopt : std::optional(facts.touched_min),
        "of blocks of so many bytes and more only pages that were touched are written; null: not recorded");
  field("peak_touched_bytes", facts.peak_touched_bytes, "the most bytes of live blocks, without untouched pages");
  field("mean_touched_bytes", facts.mean_touched_bytes,
        "the same on average over the recorded time; null: the trace has no times");
  field("unknown_bytes", facts.unknown_bytes,
        "of the bytes live at the peak, those of which the trace does not say whether they were written");
  field("left_out_bytes", facts.left_out_bytes,
        "of unknown_bytes those that the replay does not write, as the program did not write them in blocks alike");
  field("give_back_calls", facts.give_back_calls, "calls of malloc_trim, mallopt and mallctl that are replayed");
  field("give_back_left_out", facts.give_back_left_out, "such calls that might do something else, and are left out");
  field("sized_frees", facts.sized_frees, "calls that state the size of the block that they free");
}

/// The position of an operation: its lane, and the number of words before it in that lane.
struct OperationPosition {
  std::uint32_t lane = 0;
  std::uint64_t words = 0;
};

/// The moment before an event that has operations.
struct StopPoint {
  std::uint64_t event = 0;  ///< its number, from 1; one more than the last one for the end of the trace
  Mark before;
  Mark after;
  std::uint32_t lane = 0;  ///< that has the event's operations
};

/// More operations than there can be.
inline constexpr std::uint64_t prepared_always_bytes = std::uint64_t{1} << 46;

/// How a trace is to be replayed.
struct TraceOptions {
  bool threads = true;                   ///< the recorded threads; else one
  bool strict = false;                   ///< one call at a time, in recorded order
  bool timed = false;                    ///< recorded times are among the operations, for pace and recorded clock
  std::uint64_t prepared_bytes_max = 0;  ///< more bytes of operations go to a file; prepared_always_bytes: never
};

/// The facts about a trace that a replay needs beside its operations.
struct TracePlan {
  TraceFacts facts;
  Format format = Format::text;
  Order order = Order::one_thread;
  RouteCounts counts;
  std::uint32_t lanes = 1;
  std::uint64_t slots = 0;            ///< entries of the table of live blocks
  std::uint64_t pointers = 0;         ///< pointers that the calls return
  std::uint64_t requests = 0;         ///< calls for one byte or more
  std::uint64_t begin_ns = unknown;   ///< recorded time of the first event that has one
  std::vector<RunStretch> stretches;  ///< of the recording; empty: it has none
  std::uint32_t processors = 1;       ///< that the recorded program could use
  std::vector<Mark> marks;  ///< some 100, among them the peak of live bytes, the begin of a tear-down, and the end
  std::vector<std::uint32_t> end_slots;     ///< slots of the blocks that are live at the end
  std::vector<std::uint32_t> first_chunks;  ///< the first chunk of each lane of prepared operations
  std::vector<std::uint64_t> ends;          ///< the length of each lane in words
  std::vector<std::uint32_t> epochs;        ///< the number of lanes that take part in each epoch
};

/// A trace that was read and planned once. It has the trace's figures, the sizes that a replay needs, and all
/// operations, which take some 8 bytes for each event. They are in shared memory, or in a file if they are too many.
class PreparedTrace {
 public:
  enum class Stacks : bool { no, yes };
  /// Opens the trace at its beginning each time that it is called. The previous reader must not be used any more.
  using Open = std::function<Reader(Stacks)>;
  /// Called with the number of bytes read so far, and with that of the whole trace (0: not known).
  using Progress = std::function<void(std::uint64_t bytes_read, std::uint64_t bytes_total)>;

  PreparedTrace(Open open, const TraceOptions& options, const Progress& progress);

  const TracePlan& plan() const { return plan_; }
  bool timed() const { return options_.timed; }
  Reader open(Stacks stacks = Stacks::no) const { return open_(stacks); }
  /// With these, AssumedWrites plans the trace again as it was planned.
  const std::shared_ptr<const PageUses>& page_uses() const { return page_uses_; }

  /// The operations. If they could not be kept, each run has to plan the trace again.
  const PreparedChunks& chunks() const { return *chunks_; }
  std::uint64_t operations_bytes() const;

  /// Returns the events, counted from 1, whose operations are at these positions in this order. 0: no operation is at
  /// the position. Reads the trace again, up to the last of these events.
  std::vector<std::uint64_t> events_at(const std::vector<OperationPosition>& positions, Order order) const;

  /// The moment before the first event that has operations, from this one on. Reads the trace again up to there.
  /// Throws std::runtime_error for more than one event after the last.
  StopPoint stop_point(std::uint64_t event) const;

 private:
  class Pass;
  struct Retrace;

  Open open_;
  TraceOptions options_;
  TracePlan plan_;
  std::shared_ptr<const PageUses> page_uses_;
  std::unique_ptr<PreparedChunks> chunks_;
};

}  // namespace cmt::replay
