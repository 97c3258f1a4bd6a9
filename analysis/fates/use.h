/// Counts the allocations of a trace by call stack, thread, size or phase, for lifetimes --by and --diff.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/fates/amount.h"
#include "analysis/fates/early_events.h"
#include "analysis/fates/fate.h"
#include "analysis/sampling/estimate.h"
#include "cmt/event.h"
#include "libcmt/heap/live_totals.h"
#include "libcmt/number_hash.h"
#include "toolkit/trace/late_start.h"
#include "toolkit/trace/slice.h"
#include "toolkit/trace/trace_tool.h"

namespace cmt::analysis {

/// The figure by which call stacks, or other sets of allocations, are compared.
enum class Metric { bytes, blocks, peak, live, temporary, short_lived, other_thread, reallocated, growth, untouched };

/// The allocations of a stack, or of many. A realloc counts as an allocation of the new size by the stack that called
/// it, and ends the old block. For a slice of a trace, `allocated` and the figures of ended blocks count events in the
/// slice. The live figures also count blocks that were allocated before it.
///
/// The figures of a sampled trace are estimates. Figures that cannot be estimated are unknown.
struct Use {
  using Metric = analysis::Metric;
  static constexpr Metric metric_default = Metric::peak;

  Amount allocated;
  Amount peak;    ///< live when the live bytes of the whole trace, or of the slice, were at their peak
  Amount leaked;  ///< live at the end
  std::uint64_t temporary = 0;
  std::uint64_t short_lived = 0;
  std::uint64_t other_thread = 0;
  std::uint64_t reallocated = 0;
  std::int64_t growth = 0;                          ///< bytes live at the end less those at the start
  std::uint64_t untouched_bytes = unknown;          ///< of blocks of which it is known
  std::uint64_t untouched_unknown_bytes = unknown;  ///< bytes of the others of touched_min or more; unknown: none
  std::uint64_t freed = unknown;                    ///< blocks that a thread has ended; only by thread
  std::uint64_t freed_of_others = unknown;          ///< of these, blocks that other threads made
  std::uint64_t moved = unknown;        ///< of `reallocated`, those that have another address than the block before
  std::uint64_t moved_bytes = unknown;  ///< what these moves had to copy at most
  std::shared_ptr<const SampledUse> sampled{};  ///< the estimates; null: the trace has all blocks

  Use& operator+=(const Use& more);
  std::int64_t metric(Metric metric) const;
  /// Whether the figure of a metric is exact, and not only the least that it can be.
  bool knows(Metric metric) const { return metric != Metric::untouched || untouched_unknown_bytes == unknown; }
  bool operator==(const Use&) const = default;
};

/// Returns the figures of a sampled trace.
Use use_of(const SampledUse& estimates);
/// Makes the zeros of a set without a sample estimates, if `interval` is not 0: its blocks may be unseen.
void fill_unseen(Use& use, std::uint64_t interval);

/// The figures that came later than others: rows of CSV end with them.
template <class Visitor, output::DescribedAs<Use> U>
void describe_later(Visitor& field, U& use) {
  field("freed_blocks", output::nullable(use.freed),
        "blocks that the thread has ended by a free or realloc, whichever thread made them; null except by thread");
  field("freed_other_thread_blocks", output::nullable(use.freed_of_others),
        "of these, blocks that another thread made");
  field("moved_blocks", output::nullable(use.moved),
        "of reallocated_blocks, those at another address than the old block; null without a realloc with addresses");
  field("moved_bytes", output::nullable(use.moved_bytes),
        "what these moves copied at most: of each, the smaller of the old and the new size");
  field("untouched_unknown_bytes", output::nullable(use.untouched_unknown_bytes),
        "bytes of blocks of touched_min or more of which it is not known whether they were touched: untouched_bytes is "
        "then the least that it can be; null: none");
}

template <class Visitor, output::DescribedAs<Use> U>
void describe_first(Visitor& field, U& use) {
  const std::optional<SampledUse> sampled = use.sampled ? std::optional(*use.sampled) : std::nullopt;
  field("allocated_blocks", use.allocated.blocks, "blocks made");
  field("allocated_bytes", use.allocated.bytes, "bytes asked for by them");
  field("peak_blocks", use.peak.blocks, "blocks live at the peak of live bytes, of a slice at its peak");
  field("peak_bytes", use.peak.bytes, "their bytes");
  field("end_live_blocks", output::renamed(use.leaked.blocks, "leaked_blocks"), "blocks still live at the end");
  field("end_live_bytes", output::renamed(use.leaked.bytes, "leaked_bytes"), "their bytes");
  field("temporary_blocks", output::nullable(use.temporary),
        "blocks freed by the next event of the thread that made them; null in a sampled trace");
  field("short_lived_blocks", output::nullable(use.short_lived),
        "blocks that ended with a lifetime up to short_lived_max; null in a sampled trace");
  field("other_thread_blocks", output::nullable(use.other_thread),
        "blocks ended by another thread than the one that made them; null in a sampled trace");
  field("reallocated_blocks", output::nullable(use.reallocated),
        "blocks made by a realloc of another block; null in a sampled trace");
  field("growth_bytes", use.growth, "bytes live at the end less those at the start, of the trace or of the slice");
  field("untouched_bytes", output::nullable(use.untouched_bytes),
        "bytes asked for, but never touched by the end of their block or of the trace; null where it was not recorded: "
        "no block has touched_min bytes, or it is known of none");
  field("sampled", output::omit_if_empty(sampled), "the estimates of a sampled trace, with their 95 % intervals");
}

template <class Visitor, output::DescribedAs<Use> U>
void describe(Visitor& field, U& use) {
  describe_first(field, use);
  describe_later(field, use);
}

/// The property by which allocations are put together.
enum class By { function, caller, line, library, thread, size, phase };

/// Returns whether a report by this property needs call stacks.
constexpr bool is_of_stacks(By by) { return by <= By::library; }

/// Returns whether a report of uses has Use::moved, which needs the addresses of the trace.
inline bool shows_moves(Metric metric, const trace::Options& options) {
  return metric == Metric::reallocated || options.form != trace::Options::Form::text;
}

/// The number of a set of allocations that are counted together: of a stack, a thread, a size class or a phase.
using KeyId = std::uint32_t;

/// Finds the set that an allocation belongs to. A phase lasts from a mark to the next one; phases of the same label are
/// one.
class AllocationKeys {
 public:
  explicit AllocationKeys(By by) : by_(by) {}

  /// Returns the set of an event that allocates. To be called for each event, in order.
  KeyId key_of(const Event& event) {
    if (is_of_stacks(by_)) return event.stack;
    if (by_ == By::size) return static_cast<KeyId>(SizeClasses::index(event.bytes()));
    return key_of_other(event);
  }

  /// Returns a set's name: "thread 3 (worker)", "64 - 79 bytes" or a mark's label. Stacks have no name here.
  std::string name(KeyId key) const;

 private:
  KeyId key_of_other(const Event& event);

  By by_;
  KeyId phase_ = 0;
  tsl::robin_map<std::uint32_t, KeyId, NumberHash> threads_;
  std::unordered_map<std::string, KeyId> phases_;
  std::vector<std::string> names_{"[before the first mark]"};
};

/// The numbers of ended blocks by lifetime.
struct Lifetimes {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> classes{};  ///< AgeClasses and counts, by rising class
  std::uint64_t longest = 0;

  bool operator==(const Lifetimes&) const = default;
};

/// Adds `more` to `sum`.
void add_lifetimes(Lifetimes& sum, const Lifetimes& more);
/// Returns the lifetime that `share` of the blocks do not exceed, rounded up to the end of its class, but never above
/// the longest. So it is up to 12.5 % too high. Empty if no block ended.
std::optional<std::uint64_t> lifetime_quantile(const Lifetimes& lifetimes, double share);

struct UseOptions {
  By by = By::function;
  heap::Clock::Unit clock = heap::Clock::Unit::events;
  std::optional<trace::SliceRange> slice{};
  std::uint64_t touched_min = 0;  ///< as Header has it
  /// Header's `slice` of a part of a recording, which a mark of that name begins, after the blocks that were live.
  /// Empty: the trace is whole.
  std::string part_slices{};
};

/// The stacks that have allocated, or other sets, with their figures. A slice's list has the sets that allocated in it
/// or had blocks live at its begin.
struct Uses {
  struct Entry {
    KeyId key;
    Use use;
    Lifetimes lifetimes{};
    std::string name{};        ///< empty for stacks
    double squared_bytes = 0;  ///< the sum of the squared sizes of the blocks made
  };
  std::vector<Entry> entries;           ///< by rising key; allocations whose stack is not known have key 0
  std::uint64_t events = 0;             ///< of the slice
  std::uint64_t begin_time_ns = 0;      ///< of the slice's first event; 0 for a whole trace
  std::uint64_t end_time_ns = unknown;  ///< of the last event
  std::uint64_t peak_event = 0;
  std::uint64_t peak_time_ns = unknown;
  std::uint64_t short_lived_max = 0;
  std::uint64_t interval = 0;  ///< the sampling interval at the end; 0: the trace has all blocks
};

/// Counts allocations by stack, or by other sets, event by event. Memory: some 60 bytes a live block, and 4 bytes a
/// node of the tree of stacks. A stack that allocates takes 136 bytes, and another 230 in the list of finish(). It also
/// takes 50 bytes for each class of lifetimes that it has.
class UseCounter {
 public:
  /// Borrows `complaints`.
  UseCounter(const UseOptions& options, command::Complaints& complaints);

  /// Returns whether counting can begin at origins. Origins contain no marks, no names of threads, not the order of
  /// these, and not the bytes that were allocated before.
  static bool can_start_late(const UseOptions& options) {
    return (is_of_stacks(options.by) || options.by == By::size) && options.clock != heap::Clock::Unit::bytes;
  }
  /// Starts at origins, before the first event. `first`: the first block that the trace makes.
  void start_late(const trace::LateStart& start, Tag first);
  /// Returns the blocks that were live at a late start and have ended in the slice. To be called after the last event.
  /// The caller must have EarlyEvents::complete() fill them in before finish().
  std::vector<EarlyEnd>& early_ends() { return early_ends_; }

  /// Counts an event. Returns false after the end of the slice: the caller need not read on.
  bool count_event(const Event& event);

  /// The number of peaks of live bytes so far, plus 1 (heap::AtPeak).
  std::uint64_t peaks() const { return peaks_; }

  /// As BlockFates::note_unknown_end().
  void note_unknown_end() { fates_.note_unknown_end(); }

  /// Returns the figures. To be called once. Throws FormatError, with the trace's path, if it has no such slice.
  Uses finish(const std::string& path = {});

 private:
  struct Block {
    Tag tag = 0;
    std::uint64_t size = 0;
    std::uint64_t born = 0;
    KeyId key = 0;
    std::uint32_t thread = 0;
  };
  struct Counter {
    KeyId key = 0;
    Amount allocated;
    heap::AtPeak<Amount> live;
    double squared_bytes = 0;
    std::uint64_t longest_lifetime = 0;
    std::uint64_t temporary = 0, short_lived = 0, other_thread = 0, reallocated = 0;
    std::uint64_t untouched_bytes = unknown, untouched_unknown_bytes = unknown, moved = unknown, moved_bytes = unknown;
  };
  struct Freed {
    std::uint64_t blocks = 0, of_others = 0;
  };
  using Place = trace::SliceProgress::Place;

  Counter& counter_of(KeyId key);
  void begin_slice();
  void begin_part(std::uint64_t time_ns);
  void count_touches(const Block& block, bool is_known, std::uint64_t untouched_bytes);
  void count_end(const Block& block, const Fate& fate);
  void count_age(std::size_t place, std::uint64_t age, bool is_temporary);
  void count_block(const Event& event, KeyId key, bool is_reallocated);
  void count_free(KeyId key, const Fate& fate);
  void count_move(const Event& event, KeyId key, std::uint64_t old_bytes);
  void list_entries();

  BlockFates<Block> fates_;
  std::uint64_t touched_min_;  // 0: touched pages were not recorded
  AllocationKeys keys_;
  bool is_by_thread_;
  std::optional<trace::SliceProgress> slice_;
  Place place_ = Place::inside;
  std::vector<std::uint32_t> index_;  // by key: its place in counters_ + 1; 0: none
  std::deque<Counter> counters_;      // a vector would need three times their memory while it grows
  std::vector<Amount> at_begin_;      // of the slice, by place in counters_
  std::vector<Freed> freed_;          // by place in counters_; only by thread
  tsl::robin_map<std::uint64_t, std::uint64_t, NumberHash> lifetimes_;  // by place in counters_ and age class
  Amount live_total_;
  std::uint64_t peak_bytes_ = 0;
  std::uint64_t peaks_ = 1;  // 0 would be a value that was never saved
  std::uint64_t read_ = 0;   // events, those before the slice too
  std::uint64_t last_time_ns_ = unknown;
  Tag newest_early_ = 0;  // block from before a late start
  std::string part_slices_;
  Tag made_ = 0, made_before_part_ = 0;  // the newest blocks
  std::vector<EarlyEnd> early_ends_;
  Uses uses_;
};

}  // namespace cmt::analysis
