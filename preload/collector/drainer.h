#pragma once

#include <sched.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "preload/collector/backlog.h"
#include "preload/collector/ring_memory.h"
#include "preload/collector/pace.h"

namespace cmt::collector {

/// The clocks that stamps and times are from.
std::uint64_t clock_stamp(const Control& control);
std::uint64_t clock_ns();

/// Moves records out of the rings, and says how far threads may write.
class Drainer {
 public:
  Drainer(Memory& memory, Backlog& backlog) : memory_(memory), backlog_(backlog) {}

  /// Reads each ring once, and puts what was there, and the cut, into the backlog. How many records; nothing, and no
  /// ring is read, where the backlog has no room, unless it `must`: a cut is one only if all rings were read.
  std::optional<std::size_t> pass(bool must = false);

  /// Where nothing is waited for any more, and a pass has found nothing: goes past places that were never published,
  /// where there is something behind them. Whether there was.
  bool skip_unpublished();

  /// How long until the next pass, in ns; nothing where it can wait for the bell.
  std::optional<std::uint64_t> nap_ns() const { return pace_.nap(clock_ns()); }

  /// Where the threads run whose rings the last pass found well filled.
  const cpu_set_t& busy_processors() const { return busy_; }

  /// Makes each thread look at the control block at its next event.
  void call_threads();

 private:
  /// What is known of a ring here alone.
  struct Lane {
    std::uint64_t tail = 0;
    std::uint64_t limit = 0;  ///< as in the ring
    std::uint64_t quiet_since_ns = 0;
    std::uint64_t released = 0;  ///< of a crowded ring: what lies before was given back
    bool is_whole = false;       ///< all of it is backed, and may be written
    bool is_crowded = false;     ///< one of many: has a page, or two
    bool is_shrinking = false;
  };

  std::size_t drain(std::uint32_t number, std::uint64_t now_ns);
  std::size_t read(Ring& ring, Lane& lane);
  void advance(Ring& ring, Lane& lane, std::size_t moved);
  void give_back_saved(Ring& ring, Lane& lane);
  void open_page(Ring& ring, Lane& lane);
  void rest(Ring& ring, Lane& lane, std::uint64_t now_ns);
  bool calls_threads() const;
  void set_limit(Ring& ring, Lane& lane, std::uint64_t limit);
  bool may_grow(std::uint64_t bytes) const;
  void open_lane(const Ring& ring, Lane& lane);

  Memory& memory_;
  Backlog& backlog_;
  std::vector<Lane> lanes_;
  Packer packer_;
  Pace pace_;
  cpu_set_t busy_{};
  std::uint64_t whole_bytes_ = 0;
};

}  // namespace cmt::collector
