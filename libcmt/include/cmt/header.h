/// The facts that a trace states about itself: the header before its first event, the totals at its end, and repairs.
#pragma once

#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cmt/event.h"

namespace cmt {

/// The kinds of defects in a trace, and how each is repaired. The values are on the wire (format-spec/cmt.md, "Totals")
/// and never change.
enum class Repair : std::uint8_t {
  not_understood = 0,     ///< a line or a record: dropped
  unmatched_free = 1,     ///< a free of an address where no block lives: dropped
  unmatched_realloc = 2,  ///< a realloc of an address where no block lives: made an allocation
  order_race = 3,         ///< an allocation that is before the free which made room for it: moved after the free
  double_allocation = 4,  ///< an allocation at an address where a block lives: that block was ended first
  misfree = 5,            ///< a free of an address inside a block: it was ended, and its head became a new block
  contradiction = 6,      ///< an event whose tag contradicts those before: dropped
  unknown_kind = 7,       ///< an event of a later version's kind: replaced by one with the same effect on blocks
  overlap = 8,            ///< an allocation over a part of a live block: that block was ended first
  time_back = 9,          ///< a time before the time of the event before: raised to that time
  other_address = 10,     ///< a block given at another address than its own: given at its own
};

inline constexpr int repair_count = 11;

/// The name of a repair in JSON, text and tables: "order_race".
std::string_view name(Repair repair);

/// Repairs, counted by kind.
struct Repairs {
  std::array<std::uint64_t, repair_count> by_kind{};
  std::uint64_t other = 0;  ///< repairs whose kind is not known

  std::uint64_t operator[](Repair repair) const { return by_kind[static_cast<std::size_t>(repair)]; }
  void add(Repair repair, std::uint64_t count = 1) { by_kind[static_cast<std::size_t>(repair)] += count; }
  std::uint64_t total() const { return std::accumulate(by_kind.begin(), by_kind.end(), other); }

  Repairs& operator+=(const Repairs& more) {
    for (std::size_t i = 0; i < by_kind.size(); ++i) by_kind[i] += more.by_kind[i];
    other += more.other;
    return *this;
  }
};

enum class Format { text, cmt, legacy_cmt };

/// "text", "cmt" or "legacy_cmt".
std::string_view name(Format format);

/// The facts that a trace states before its first event.
struct Header {
  Format format = Format::text;  ///< of the input; a writer ignores it
  bool has_addresses = false;
  bool has_times = false;
  bool has_usable = false;
  bool has_stacks = false;
  bool has_header = false;  ///< the text form has header lines, and therefore an end line

  /// `#cmt key=value` lines, in order. Known keys are in format-spec/text.md; others are kept as they are.
  std::vector<std::pair<std::string, std::string>> metadata;

  /// The least size of blocks whose touched pages were recorded; 0 if no touched pages were recorded.
  std::uint64_t touched_min() const;

  /// The sampling interval in bytes at the start of a sampled trace (format-spec/cmt.md); 0: the trace has all blocks.
  std::uint64_t sampled() const;

  /// The value of a key, or nothing if the header lacks it.
  std::optional<std::string_view> find(std::string_view key) const {
    for (const auto& [name, value] : metadata) {
      if (name == key) return value;
    }
    return std::nullopt;
  }
};

/// The totals that nearly every event changes.
struct RunningTotals {
  std::uint64_t events = 0;
  std::uint64_t allocations = 0;      ///< blocks made
  std::uint64_t allocated_bytes = 0;  ///< bytes asked for by them, in all
  std::uint64_t peak_live_blocks = 0;
  std::uint64_t peak_live_bytes = 0;
  std::uint64_t peak_live_bytes_event = 0;  ///< the event, counted from 1, that reached the peak first
  std::uint64_t end_live_blocks = 0;
  std::uint64_t end_live_bytes = 0;
};

/// A part of a recording, and how long the program's threads ran and waited in it. The stretches of a trace follow each
/// other from its start. They show how much slower the recorded run was than one without the recorder, or on a machine
/// of its own. A recorder that writes times states them.
struct RunStretch {
  std::uint64_t elapsed_ns = 0;
  std::uint64_t ran_ns = 0;     ///< processor time of all threads
  std::uint64_t waited_ns = 0;  ///< for a processor, all threads together
  std::uint64_t held_ns = 0;    ///< for the recorder, all threads together
  std::uint64_t busy_ns = 0;    ///< ran and waited, of the thread with the most; in joined stretches the sum

  bool operator==(const RunStretch&) const = default;
  RunStretch& operator+=(const RunStretch& more) {
    elapsed_ns += more.elapsed_ns;
    ran_ns += more.ran_ns;
    waited_ns += more.waited_ns;
    held_ns += more.held_ns;
    busy_ns += more.busy_ns;
    return *this;
  }
};

inline constexpr std::uint64_t stretches_limit = 1 << 16;                  ///< of a trace
inline constexpr std::uint64_t stretch_ns_limit = std::uint64_t{1} << 62;  ///< of each time of a stretch

/// The figures that a trace states at its end. Only a whole .cmt has them.
struct Totals : RunningTotals {
  std::array<std::uint64_t, kind_limit> by_kind{};  ///< by the number of the kind, known here or not
  std::uint64_t failed = 0;                         ///< refused calls
  std::uint64_t threads = 0;                        ///< number of threads with an event
  Repairs repairs;                    ///< lines or events that were dropped or altered when the trace was written
  bool truncated = false;             ///< the recording itself broke off
  std::vector<RunStretch> stretches;  ///< empty: not recorded
  std::uint64_t samples_lost = 0;     ///< of a sampled trace: blocks that were samples, and are not in it
};

}  // namespace cmt
