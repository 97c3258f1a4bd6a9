// The drainer: empties the rings in time, so that no thread of the program has to wait, with little memory and few
// wake-ups.
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "preload/collector/collector.h"
#include "preload/collector/drain/backlog.h"
#include "preload/collector/pages/page_watcher.h"

namespace cmt::collector {

/// Computes when to drain rings that fill fast: when the fullest is a quarter full. Times are in ns of one clock.
class DrainPace {
 public:
  void begin_pass(std::uint64_t now) {
    period_ = now - began_;
    began_ = now;
    fullest_ = 0;
  }
  /// Notes that a ring held `records` and had room for `slots`.
  void note_ring(std::uint64_t records, std::uint64_t slots) {
    fullest_ = std::max(fullest_, static_cast<double>(records) / static_cast<double>(slots));
  }
  /// The estimate falls at once and rises slowly. A full ring has kept its thread waiting for an unknown time, so the
  /// last pass is weaker evidence than earlier passes.
  void end_pass() {
    if (fullest_ == 0) return;
    time_to_fill_ = std::min({time_to_fill_ * 1.125, static_cast<double>(period_) / fullest_, longest});
  }

  /// How long to sleep from now on. Returns nullopt if the rings fill so slowly that the bell is early enough.
  std::optional<std::uint64_t> sleep_ns(std::uint64_t now) const {
    constexpr double wanted = 1.0 / 4, little = 1.0 / 64;
    constexpr std::uint64_t least = 10'000, most = 1'000'000;
    const auto due = static_cast<std::uint64_t>(time_to_fill_ * wanted);
    if (fullest_ < little || due > most) return std::nullopt;
    return std::max(due, now - began_ + least) - (now - began_);
  }

 private:
  static constexpr double longest = 1e9;

  std::uint64_t began_ = 0, period_ = 0;
  double time_to_fill_ = longest;  // of the fullest ring
  double fullest_ = 0;             // the part of the ring that the pass found filled
};

/// Moves records from the rings to the backlog, and raises the limits up to which the program's threads may write.
///
/// Threads: used by one, the drainer. Memory order, against the program's threads (protocol.h):
///
/// - `soft` and `limit` rise by stores after the reads of the slots that may then be overwritten. `tail` may rise later
///   than `limit`.
/// - `limit` is stored before `waiting` is read, and a thread stores `waiting` before it reads `limit`, all seq_cst. So
///   a thread sees the new limit or is woken.
///
/// - `soft` is stored before `paused` and `verdict` are read, and whoever changes these stores 0 to `soft` afterwards,
///   all seq_cst. So `soft` ends as 0.
class Drainer {
 public:
  /// `hints`: receives the record_blocks that are read; null: nobody watches the pages of large blocks.
  Drainer(RingMemory& memory, Backlog& backlog, LargeBlockHints* hints = nullptr)
      : memory_(memory), backlog_(backlog), hints_(hints) {}

  /// Reads each ring once, puts the records and then the cut into the backlog, and returns how many records. If the
  /// backlog has no room and not `must`, reads no ring and returns nullopt: a cut requires that all rings have been
  /// read.
  std::optional<std::size_t> pass(bool must = false);

  /// Skips slots that were never published, if published ones follow. Returns whether there were such slots. To be
  /// called only if nobody will publish them any more, and pass() has found nothing.
  bool skip_unpublished();

  /// How long to sleep before the next pass. Returns nullopt if the bell is early enough.
  std::optional<std::uint64_t> sleep_ns() const { return pace_.sleep_ns(clock_ns()); }

  /// The processors of the threads whose rings the last pass found at least a sixteenth full.
  const cpu_set_t& busy_processors() const { return busy_; }

 private:
  /// How much of a ring is read, writable and backed by memory, as positions.
  struct RingState {
    std::uint64_t slots = 0;  ///< as they were first: the program may write to its own number
    std::uint64_t tail = 0;
    std::uint64_t limit = 0;  ///< as in the ring
    std::uint64_t quiet_since_ns = 0;
    std::uint64_t released = 0;    ///< of a crowded ring: the memory before this position was given back
    bool is_fully_backed = false;  ///< all of its slots have memory, and may be written
    bool is_crowded = false;       ///< it has only a page or two of memory, because there are so many rings
    bool is_shrinking = false;     ///< its limit is lowered, and its memory is given back after the next quiet second
  };

  std::size_t drain_ring(std::uint32_t number, std::uint64_t now_ns);
  std::size_t read_records(Ring& ring, RingState& state);
  void raise_limit(Ring& ring, RingState& state, std::size_t moved);
  void raise_limit_to_saved(Ring& ring, RingState& state);
  void back_next_page(Ring& ring, RingState& state);
  void shrink_if_quiet(Ring& ring, RingState& state, std::uint64_t now_ns);
  void set_limit(Ring& ring, RingState& state, std::uint64_t limit);
  bool may_grow(std::uint64_t bytes) const;
  RingState initial_state(const Ring& ring) const;

  RingMemory& memory_;
  Backlog& backlog_;
  LargeBlockHints* const hints_;
  std::vector<Slot> blocks_;       // for hints_
  std::vector<RingState> states_;  // by ring
  Packer packer_;
  DrainPace pace_;
  cpu_set_t busy_{};
  std::uint64_t fully_backed_bytes_ = 0;
};

/// Moves a thread, 0 for the caller, from a busy processor to another allowed one, if there is one. The thread may come
/// back later: the processor of a waiting program is free.
void leave_busy_processors(const cpu_set_t& allowed, const cpu_set_t& busy, int processor, pid_t thread);

/// The drainer's thread: drains the rings in time, until the process has ended and the rings are empty, or the session
/// is finished. Returns the processor time that it took, in ns. `outputs`: descriptors of the trace's files. `hints`:
/// as of Drainer.
std::uint64_t run_drainer(RingMemory& memory, Backlog& backlog, const SessionState& state,
                          const std::vector<int>& outputs, LargeBlockHints* hints);

}  // namespace cmt::collector
