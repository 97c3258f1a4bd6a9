/// The lifetimes in one trace or in many, as plain numbers that can be added. So --merge adds up summaries that were
/// made on several machines.
///
/// Only a peak cannot be added. Each input keeps its own. The greatest peak and the sum of all peaks are bounds of the
/// peak that the inputs had together.
///
/// A class of sizes or lifetimes is named by its least number (libcmt/heap/log_linear.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/fates/amount.h"
#include "cmt/event.h"
#include "toolkit/output/fields.h"
#include "toolkit/picture/picture.h"
#include "toolkit/trace/pools.h"

namespace cmt::lifetimes {

using analysis::AgeClasses;
using analysis::Amount;
using analysis::short_lived_max;
using analysis::SizeClasses;
using analysis::unit_name;

/// The most live bytes, the first event with as many, and their sizes.
struct Peak {
  Amount live;
  std::uint64_t event = 0;
  std::uint64_t time_ns = unknown;
  std::array<Amount, SizeClasses::count> sizes{};
  std::uint64_t untouched_bytes = unknown;
};

struct Input {
  std::string name;
  std::uint64_t events = 0;
  std::uint64_t defects = 0;
  bool truncated = false;
  std::optional<std::uint64_t> lost{};  ///< events that the recorder has lost; empty: none
  std::uint64_t touched_min = unknown;  ///< unknown if touched pages were not recorded
  Peak peak;
  std::optional<std::uint64_t> pauses{};  ///< of the recording while blocks were live; empty: none
  std::string memory{};                   ///< around the process, in words; only in text
  std::optional<std::vector<trace::PoolCount>> pools_not_counted{};
};

template <class Visitor, output::DescribedAs<Input> I>
void describe(Visitor& field, I& input) {
  field("name", input.name, "the file's name without its folder");
  field("events", input.events, "events read");
  field("defects", input.defects, "defects found in the trace");
  field("truncated", input.truncated, "whether the trace breaks off");
  field("lost_events", output::omit_if_empty(input.lost),
        "events that the recorder has lost, which these figures lack");
  field("peak_live_blocks", input.peak.live.blocks, "live blocks at the peak of live bytes");
  field("peak_live_bytes", input.peak.live.bytes, "the most live bytes");
  field("peak_event", input.peak.event, "the peak's event, counted from 1");
  field("peak_time_ns", output::nullable(input.peak.time_ns), "the peak's time since the recording began");
  field("peak_sizes", output::by_class<SizeClasses>(input.peak.sizes),
        "blocks live at the peak: [size_bytes_min, blocks, bytes]");
  field("touched_min_bytes", output::nullable(input.touched_min),
        "the least size of blocks whose touched pages were recorded; null: of none");
  field(
      "peak_untouched_bytes", output::nullable(input.peak.untouched_bytes),
      "bytes of these blocks that were live at the peak and never touched, by the end of their block or of the trace");
  field("pauses", output::omit_if_empty(input.pauses),
        "pauses of the recording while blocks were live: those freed in a pause count as live");
  field("pools_not_counted", output::omit_if_empty(input.pools_not_counted),
        "the pools that have events, which are in none of these figures (--pool)");
}

/// The blocks of one class of sizes.
struct SizeSummary {
  std::uint64_t size_bytes_min = 0;
  Amount allocated;
  Amount leaked;
  std::uint64_t untouched_bytes = unknown;  ///< never touched by the block's end or the trace's
  /// Bytes of blocks of which it is not known whether they were touched; empty: none.
  std::optional<std::uint64_t> untouched_unknown_bytes{};
  std::uint64_t ended = 0;
  std::uint64_t temporary = 0;
  std::uint64_t short_lived = 0;
  std::uint64_t other_thread = 0;
  std::uint64_t lifetime_max = 0;
  std::array<std::uint64_t, AgeClasses::count> lifetimes{};  ///< ended blocks by lifetime

  std::uint64_t size_bytes_max() const { return SizeClasses::high(SizeClasses::index(size_bytes_min)); }
  bool in_use() const { return allocated.blocks != 0; }

  /// Adds the blocks of another class.
  void add(const SizeSummary& other);

  /// Returns the lifetime that `share` of the ended blocks do not exceed, rounded up to the end of its class, but never
  /// above the longest. So it is up to 12.5 % too high. Empty if no block ended.
  std::optional<std::uint64_t> lifetime_quantile(double share) const;
};

/// Parts of a size class, which JSON and CSV have in different orders.
template <class Visitor, output::DescribedAs<SizeSummary> S>
void describe_counts(Visitor& field, S& size) {
  field("size_bytes_min", size.size_bytes_min, "the least size of the class");
  field("size_bytes_max", size.size_bytes_max(), "the greatest size of the class");
  field("allocated_blocks", size.allocated.blocks, "blocks made");
  field("allocated_bytes", size.allocated.bytes, "bytes asked for by them");
  field("ended_blocks", size.ended, "blocks that were made and ended");
  field("short_lived_blocks", size.short_lived, "of these: with a lifetime up to short_lived_max");
  field("temporary_blocks", size.temporary, "of these: freed by the next event of the thread that made them");
  field("other_thread_blocks", size.other_thread, "of these: ended by another thread than the one that made them");
}
template <class Visitor, output::DescribedAs<SizeSummary> S>
void describe_leaks(Visitor& field, S& size) {
  field("end_live_blocks", output::renamed(size.leaked.blocks, "leaked_blocks"), "blocks still live at the end");
  field("end_live_bytes", output::renamed(size.leaked.bytes, "leaked_bytes"), "their bytes");
}
template <class Visitor, output::DescribedAs<SizeSummary> S>
void describe_untouched(Visitor& field, S& size) {
  field("untouched_bytes", output::nullable(size.untouched_bytes),
        "bytes asked for, but never touched by the end of their block or of the trace; null where it was not recorded");
}
inline constexpr const char* untouched_unknown_doc =
    "bytes of blocks of touched_min or more of which it is not known whether they were touched: untouched_bytes is "
    "the least that was not";
template <class Visitor, output::DescribedAs<SizeSummary> S>
void describe_quantiles(Visitor& field, S& size, const std::string& prefix) {
  field(prefix + "p50", size.lifetime_quantile(0.5), "half of the ended blocks lived no longer; up to 12.5 % too high");
  field(prefix + "p90", size.lifetime_quantile(0.9), "90 % of them lived no longer; up to 12.5 % too high");
  field(prefix + "p99", size.lifetime_quantile(0.99), "99 % of them lived no longer; up to 12.5 % too high");
}

template <class Visitor, output::DescribedAs<SizeSummary> S>
void describe(Visitor& field, S& size) {
  describe_counts(field, size);
  describe_leaks(field, size);
  describe_untouched(field, size);
  field("untouched_unknown_bytes", output::omit_if_empty(size.untouched_unknown_bytes), untouched_unknown_doc);
  field("lifetime_max", size.lifetime_max, "the longest lifetime");
  describe_quantiles(field, size, "lifetime_");
  field("lifetimes", output::by_class<AgeClasses>(size.lifetimes), "ended blocks: [lifetime_min, blocks]");
}

/// Puts a class that was read from JSON into its place.
void place_in_use(std::vector<SizeSummary>& sizes, const SizeSummary& size);

struct Summary {
  explicit Summary(heap::Clock::Unit unit = heap::Clock::Unit::events);

  heap::Clock::Unit clock;
  std::vector<Input> inputs;
  std::array<std::uint64_t, kind_limit> by_kind{};
  std::uint64_t failed = 0;
  std::uint64_t unknown_ends = 0;
  std::array<std::uint64_t, AgeClasses::count> chains{};  ///< reallocation chains by their length; 0 is not counted
  std::uint64_t chain_max = 0;
  std::uint64_t moved = unknown;        ///< reallocs that moved their block; unknown without a realloc with addresses
  std::uint64_t moved_bytes = unknown;  ///< what these moves copied at most
  std::vector<SizeSummary> sizes;       ///< by size class

  /// Returns the sum over all sizes.
  SizeSummary total() const;

  /// The sums and the greatest of the inputs' peaks.
  Amount peak_sum() const;
  std::uint64_t untouched_peak_sum() const;  ///< unknown if no input has it
  std::uint64_t peak_bytes_max() const;

  /// Adds another summary. Throws std::invalid_argument if it is by another clock.
  void merge(const Summary& other);
};

inline constexpr std::string_view schema = "cmt.lifetimes/1";

template <class Visitor, output::DescribedAs<Summary> S>
void describe(Visitor& field, S& summary) {
  const auto kind_name = [](std::size_t i) { return name(static_cast<Kind>(i)); };
  field("schema", schema, "the name and version of this form");
  field("clock_unit", unit_name(summary.clock), "the unit of lifetimes: events, ns or bytes (allocated meanwhile)");
  field("short_lived_max", short_lived_max(summary.clock), "a lifetime up to this is short, in clock_unit");
  field("inputs", summary.inputs, "the traces");
  field("peak_live_bytes_max", summary.peak_bytes_max(), "the greatest of the inputs' peaks: all together had no less");
  field("peak_live_bytes_sum", summary.peak_sum().bytes, "the sum of the inputs' peaks: all together had no more");
  field("kinds", output::by_name(summary.by_kind, kind_name), "events by kind, those that occur");
  field("refused_calls", output::renamed(summary.failed, "failed"), "calls that were refused");
  field("unknown_ends", summary.unknown_ends, "frees of unknown blocks: made before the trace began, or not recorded");
  field("chain_max", summary.chain_max, "the most reallocations of one block");
  field("chains", output::by_class<AgeClasses>(summary.chains),
        "blocks that were reallocated before they were freed or the trace ended: [reallocations_min, blocks]");
  field("moved_blocks", output::nullable(summary.moved),
        "reallocs that moved their block to another address; null without a realloc with addresses");
  field("moved_bytes", output::nullable(summary.moved_bytes),
        "what these moves copied at most: of each, the smaller of the old and the new size");
  field("sizes", output::in_use_only(summary.sizes), "the size classes of which blocks were made");
}

/// For people: the inputs, counts of blocks, and a line for each class of sizes.
std::string to_text(const Summary& summary);

/// For spreadsheets: the classes of sizes under a line of titles.
std::string to_csv(const Summary& summary);

/// A map of the numbers of blocks by size and lifetime.
picture::Picture to_picture(const Summary& summary);

/// Reads the summaries of a JSON file, one or a list. A `path` of "-" is standard input. Throws FormatError and
/// std::system_error.
std::vector<Summary> read_json(const std::string& path);

}  // namespace cmt::lifetimes
