/// Knows how each live block was made, for the origins that some keyframes of a .cmt have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cmt/event.h"
#include "libcmt/format/live_blocks.h"
#include "libcmt/format/origins.h"
#include "libcmt/heap/touched_pages.h"
#include "libcmt/trace/writer/event_batch.h"
#include "libcmt/trace/writer/sink.h"

namespace cmt {

/// Keeps the origin of each live block while a trace is written or checked. doc/figures.md has its cost.
///
/// The table only appends allocations, and ignores the ends of blocks. When it has enough allocations, it asks which
/// blocks live, and drops all others.
///
/// Memory, with at most so many entries (the largest number applies):
///
/// | entry | bytes | at most |
/// |---|---|---|
/// | allocation | 4, 4 more with stacks, 8 more with times | 512 Ki; 3 times the live blocks |
/// | of them with an Extra (count, alignment, usable size) | 48 more | 128 Ki; twice the live blocks |
/// | run of touched pages | 80 | 64 Ki; a quarter of the live blocks; 3 times the runs of live blocks |
class OriginTable {
 public:
  /// `live` has the live blocks after the events that were added, or after later ones. In the second case, the table
  /// forgets a block that a later event ends, so put() must not be called before that event is added. With more than
  /// `limit` live blocks the table gives up for good, because the origins of so many blocks are too many bytes.
  OriginTable(std::size_t limit, const LiveBlockSource& live) : limit_(limit), live_(live) {}

  /// `old` is the live block that the event was given; tag 0 if none is known. `stack` replaces the event's stack.
  void add(const Event& event, const LiveBlock& old, StackId stack);
  /// The same for `count` events of a batch from `first` on. `other` is the first of them that is not in short form.
  void add_batch(const EventBatch& batch, std::size_t first, std::size_t count, const BookedEvent* other,
                 bool has_stacks);

  void give_up();
  bool is_kept() const { return is_kept_; }

  /// The stream for these live blocks, by rising tag. Empty if the table does not have all of them, or if the stream
  /// would be too large. `number_of` returns the number of a stack in the file.
  std::string put(std::span<const LiveBlock> live, std::uint64_t time_ns,
                  const std::function<std::uint64_t(StackId)>& number_of) const;

 private:
  /// Allocations whose tags rise by one: the first tag, and its place in the columns.
  struct Run {
    Tag tag = 0;
    std::size_t place = 0;
  };
  /// Fields that only few blocks have.
  struct Extra {
    Tag tag = 0;
    std::uint64_t size = 0, count = 1, alignment = 0, usable = unknown;
    std::uint32_t thread = 0;
  };
  /// A block's kind, whether it has an Extra, and its thread if that is below threads_max.
  using Call = std::uint32_t;
  static constexpr Call has_extra = 1 << 6;
  static constexpr unsigned thread_at = 7;
  static constexpr std::uint32_t threads_max = std::uint32_t{1} << (32 - thread_at);
  static constexpr std::size_t bytes_max = std::size_t{1} << 27;
  /// At least so many allocations, Extras and runs of pages are kept before any are dropped.
  static constexpr std::size_t calls_min = 1 << 19, extras_min = 1 << 17, runs_min = 1 << 16;

  class Search;

  void make(const Event& event, StackId stack);
  void append(Tag tag, Call call, std::uint64_t time_ns, StackId stack);
  void check_room();
  void drop_ended();
  void keep_only(std::span<const LiveBlock> live);
  bool is_full() const {
    return calls_.size() >= calls_max_ || extras_.size() >= extras_max_ || pages_.runs() >= runs_max_;
  }
  Event made_by(std::size_t place, const Extra* extra, const LiveBlock& block) const;
  void list_runs(Tag tag, std::vector<format::OriginRun>& runs) const;

  std::size_t limit_;
  const LiveBlockSource& live_;
  bool is_kept_ = true;
  Tag next_tag_ = 0;
  std::vector<Run> runs_;  // by rising tag, as the columns below are
  std::vector<Call> calls_;
  std::vector<StackId> stacks_;       // empty if no allocation so far has a stack
  std::vector<std::uint64_t> times_;  // empty if none has a time
  std::vector<Extra> extras_;
  heap::TouchedPages pages_{true};
  std::size_t calls_max_ = calls_min, extras_max_ = extras_min, runs_max_ = runs_min;
  std::size_t live_runs_ = 0;  // after the last drop
};

}  // namespace cmt
