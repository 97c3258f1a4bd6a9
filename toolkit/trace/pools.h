/// The events of pools (format-spec/cmt.md, "Pools") for tools that count blocks: what they leave out, and the view of
/// one pool as if it were malloc.
#pragma once

#include <tsl/robin_map.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cmt/event.h"
#include "libcmt/number_hash.h"
#include "toolkit/output/fields.h"

namespace cmt::trace {

/// The events of a pool, and its blocks.
struct PoolCount {
  std::string name;
  std::uint64_t events = 0, live_blocks = 0, live_bytes = 0, peak_bytes = 0;
  std::optional<std::uint64_t> arena_bytes{};  ///< empty: not recorded
  bool has_earlier_arenas = false;             ///< there may be others, from before the recording
};

template <class Visitor, output::DescribedAs<PoolCount> P>
void describe(Visitor& field, P& pool) {
  field("name", pool.name, "of the pool");
  field("events", pool.events, "its events");
  field("live_blocks", pool.live_blocks, "its blocks that are live at the end");
  field("live_bytes", pool.live_bytes, "bytes asked for by them");
  field("peak_live_bytes", pool.peak_bytes, "the most live bytes");
  field("arena_bytes", pool.arena_bytes, "of its arenas at the end; null where not all of these were recorded");
}

/// Counts the events of pools, in some 40 bytes for each of their live blocks. Sums of pools and of malloc are never
/// added up.
class Pools {
 public:
  /// `chosen`: the pool whose events view() returns; empty: it returns those of malloc.
  explicit Pools(std::string chosen = {}) : chosen_(std::move(chosen)) {}

  /// To be called first where the process had run before its recording: its arenas from then are in no event.
  void note_earlier_arenas() { has_earlier_arenas_ = true; }

  /// Counts an event, if it is of a pool.
  void count(const Event& event) {
    if (is_of_pool(event.kind)) count_event(event);
  }
  /// The event that a tool counts, valid until the next call; null if it counts none. The events of a chosen pool
  /// become events of malloc, with numbers for tags.
  const Event* view(const Event& event) {
    if (chosen_.empty()) return &event;
    return view_chosen(event);
  }
  bool has_chosen() const { return !chosen_.empty(); }
  /// The live bytes of the chosen pool's arenas; empty if none were recorded so far, or not all of them.
  std::optional<std::uint64_t> arena_bytes() const {
    return arenas_ == none || has_earlier_arenas_ ? std::nullopt : std::optional(pools_[arenas_].live_bytes);
  }

  /// Whether the chosen pool, if there is one, has events.
  bool is_chosen_known() const;
  std::string names() const;
  /// A line for each pool of which a tool should speak: "3,700 events of pool python are not counted: …". If there are
  /// more than four, for the three with the highest peaks and for all others.
  std::vector<std::string> lines() const;
  /// The same as figures, for a report; empty if no events were left out.
  std::optional<std::vector<PoolCount>> not_counted() const;

 private:
  static constexpr std::size_t none = -1;
  struct Block {
    std::uint64_t size = 0;
    std::size_t pool = 0;
  };

  void count_event(const Event& event);
  const Event* view_chosen(const Event& event);
  PoolCount& pool_of(std::string_view name);
  std::vector<PoolCount> asked() const;
  std::string line_of(const PoolCount& pool) const;

  std::string chosen_;
  bool has_earlier_arenas_ = false;
  Event event_;  // as view() returned it
  std::vector<PoolCount> pools_;
  std::size_t last_ = 0;       // of the event before, in pools_
  std::size_t arenas_ = none;  // of the chosen pool, in pools_
  tsl::robin_map<std::uint64_t, Block, NumberHash> live_;
};

}  // namespace cmt::trace
