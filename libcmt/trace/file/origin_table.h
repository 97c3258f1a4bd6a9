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
#include "libcmt/trace/event_batch.h"
#include "libcmt/trace/sink.h"

namespace cmt {

/// Keeps the origin of each live block while a trace is written or checked. Its cost: doc/figures.md.
///
/// It only appends the allocations, and takes no notice of their ends. When it has enough of them, it asks which blocks
/// live, and drops all others.
///
/// Memory: 4 bytes an allocation, 4 more with stacks, 8 more with times, for half a million allocations or three times
/// the live blocks, whichever is more. 48 more for those of calloc and its kin, and those with an alignment or a usable
/// size, of which there are at most 128 Ki or twice the live blocks. 80 bytes a run of pages: 64 Ki, or a quarter of
/// the live blocks, or three times the runs of live blocks.
class OriginTable {
 public:
  /// `live`: has the live blocks after the events that were added, or after later ones. A block that ends meanwhile
  /// is forgotten too early, so put() must not be called before these events are added. With more than `limit` live
  /// blocks the table gives up for good: origins of so many are never worth their bytes.
  OriginTable(std::size_t limit, const LiveBlockSource& live) : limit_(limit), live_(live) {}

  /// `old`: the live block that the event was given, tag 0 where none is known. `stack` instead of the event's.
  void add(const Event& event, const LiveBlock& old, StackId stack);
  /// The same for `count` events of a batch from `first` on, of which `other` is the first that is not in short form.
  void add_batch(const EventBatch& batch, std::size_t first, std::size_t count, const BookedEvent* other,
                 bool has_stacks);

  void give_up();
  bool is_kept() const { return is_kept_; }

  /// The stream for these live blocks, by rising tag; empty where the table does not have them all, or where it would
  /// be too large. `number_of`: the number of a stack in the file.
  std::string put(std::span<const LiveBlock> live, std::uint64_t time_ns,
                  const std::function<std::uint64_t(StackId)>& number_of) const;

 private:
  /// Allocations whose tags rise by one: the first, and its place in the columns.
  struct Run {
    Tag tag = 0;
    std::size_t place = 0;
  };
  /// Further fields of few blocks.
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
  /// So many allocations, of them with an Extra, and runs of pages are kept before the first are dropped.
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
  std::vector<Run> runs_;  // by rising tag, as all here
  std::vector<Call> calls_;
  std::vector<StackId> stacks_;       // empty: no allocation so far has a stack
  std::vector<std::uint64_t> times_;  // empty: none has a time
  std::vector<Extra> extras_;
  heap::TouchedPages pages_{true};
  std::size_t calls_max_ = calls_min, extras_max_ = extras_min, runs_max_ = runs_min;
  std::size_t live_runs_ = 0;  // after the last drop
};

}  // namespace cmt
