/// The events of pools (format-spec/cmt.md, "Pools") for tools that count blocks: what they leave out, and the view of
/// one pool as if it were malloc.
#pragma once

#include <tsl/robin_map.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cmt/event.h"
#include "libcmt/number_hash.h"

namespace cmt::trace {

/// Counts the events of pools, in some 40 bytes for each of their live blocks. Sums of pools and of malloc are never
/// added up.
class Pools {
 public:
  /// `chosen`: the pool whose events view() returns; empty: it returns those of malloc.
  explicit Pools(std::string chosen = {}) : chosen_(std::move(chosen)) {}

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

  /// Whether the chosen pool, if there is one, has events.
  bool is_chosen_known() const;
  std::string names() const;
  /// A line for each pool of which a tool should speak: "3,700 events of pool python are not counted: …".
  std::vector<std::string> lines() const;

 private:
  struct Pool {
    std::string name;
    std::uint64_t events = 0, live_blocks = 0, live_bytes = 0, peak_bytes = 0;
  };
  struct Block {
    std::uint64_t size = 0;
    std::size_t pool = 0;
  };

  void count_event(const Event& event);
  const Event* view_chosen(const Event& event);
  Pool& pool_of(std::string_view name);
  std::string line_of(const Pool& pool) const;

  std::string chosen_;
  Event event_;  // as view() returned it
  std::vector<Pool> pools_;
  std::size_t last_ = 0;  // of the event before, in pools_
  tsl::robin_map<std::uint64_t, Block, NumberHash> live_;
};

}  // namespace cmt::trace
