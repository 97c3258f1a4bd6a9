#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "cmt/event.h"
#include "preload/collector/packed.h"

namespace cmt::collector {

/// One event as a thread recorded it, before it has a place and a tag.
struct Recorded {
  std::uint64_t stamp = 0;
  std::uint32_t kind = 0;  ///< cmt::Kind, or a kind of record (protocol.h)
  bool given = false;      ///< a realloc that was given a block
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t count = 1;
  std::uint64_t alignment = 0;
  std::uint64_t usable = unknown;
};

inline std::uint64_t alignment_of(const Slot& slot) { return (std::uint64_t{1} << slot_alignment(slot.head)) >> 1; }

/// What came out of one ring and is not in the trace yet. The records of an event may arrive in two parts.
class Stream {
 public:
  void append(Packed records);

  /// Whether there is a whole event. What follows is of it.
  bool has_front() const { return has_front_; }
  std::uint64_t stamp() const { return last_stamp_; }
  std::uint32_t kind() const { return slot_kind(slot_.head); }
  /// The record that ends it, which says all unless has_more().
  const Slot& slot() const { return slot_; }
  bool has_more() const { return extended_; }
  Recorded front() const;
  const std::string& label() const { return label_; }
  /// Goes on to the next event.
  void pop() {
    has_front_ = false;
    begin_ = place_;
    epoch_before_ = epoch_;
    if (extended_) forget_extension();
    decode();
  }
  /// Hands one event after the other to `take`, with its stamp and the address in a record that comes soon, or 0: the
  /// front, which there has to be, and what follows, as long as their stamps are at most `bound`, one record says all,
  /// and `take` says that it took them. What it did not take is the front.
  template <class Take>
  void take_short(std::uint64_t bound, const Take& take);
  /// How many records were appended before the first one that is not in the trace.
  std::uint64_t settled() const { return in_transit.empty() ? begin_ : in_transit.front().place; }
  /// As of there, unless a realloc is in transit.
  std::uint32_t epoch() const { return static_cast<std::uint32_t>(epoch_before_ >> 32); }
  /// Where records of an earlier session go on.
  void resume(const Saved& saved);

  std::uint32_t thread = 0;
  /// Reallocs that have begun, the innermost last.
  struct Transit {
    std::uint64_t address;
    std::uint64_t place;  ///< of its record
  };
  std::vector<Transit> in_transit;
  std::uint64_t front_place() const { return begin_; }
  std::uint64_t blocked_on = 0;  ///< the address that the front waits for; 0: none
  bool is_queued = false;

 private:
  // Takes records until the one that ends an event. What those before it say is kept where they run out.
  void decode() {
    while (next_ < refill_at_ || refill()) {
      const Slot& slot = *next_++;
      ++place_;
      const std::uint32_t kind = slot_kind(slot.head);
      if (kind < record_stamp_high) return complete(slot);
      extend(slot, kind);
    }
  }

  void complete(const Slot& slot) {
    last_stamp_ = stamp_of(slot, last_stamp_);
    slot_ = slot;
    has_front_ = true;
  }

  // A signal handler may have recorded between its thread's look at the clock and the record.
  std::uint64_t stamp_of(const Slot& slot, std::uint64_t last) const {
    return std::max(epoch_ | (slot.body & 0xffffffff), last);
  }

  bool refill();
  void extend(const Slot& slot, std::uint32_t kind);
  void forget_extension();

  static constexpr std::ptrdiff_t ahead = 16, unpacked_max = 128;

  std::deque<Packed> chunks_;  // as they were appended; the first one is being read
  Unpacker unpacker_;          // of the first one
  std::vector<Slot> unpacked_;
  const Slot* next_ = nullptr;
  const Slot* end_ = nullptr;
  const Slot* refill_at_ = nullptr;  // short of the end while there is more, so that there are addresses ahead
  std::uint64_t place_ = 0;          // of `next_`: how many records were appended before it
  std::uint64_t begin_ = 0;          // of the front's first record
  std::uint64_t epoch_ = 0;
  std::uint64_t epoch_before_ = 0;  // at begin_
  std::uint64_t last_stamp_ = 0;
  Slot slot_{};
  bool has_front_ = false;
  bool extended_ = false;  // there is something in the next two
  Recorded extension_;
  std::string label_;
};

template <class Take>
void Stream::take_short(std::uint64_t bound, const Take& take) {
  while (has_front_ && !extended_ && last_stamp_ <= bound) {
    const Slot* next = next_;
    const Slot* const end = end_ - next > ahead ? end_ - ahead : next;
    Slot slot = slot_;
    std::uint64_t stamp = last_stamp_;
    bool taken;
    while ((taken = take(slot, stamp, next < end ? next[ahead].head >> slot_address_shift : 0))) {
      if (next >= refill_at_ || slot_kind(next->head) >= record_stamp_high) break;
      const std::uint64_t later = stamp_of(*next, stamp);
      if (later > bound) break;
      stamp = later;
      slot = *next++;
    }
    // The last one that was looked at is the front; if it was taken, what follows is for decode().
    place_ += static_cast<std::uint64_t>(next - next_);
    if (next != next_) begin_ = place_ - 1, epoch_before_ = epoch_;
    next_ = next;
    slot_ = slot;
    last_stamp_ = stamp;
    if (!taken) return;
    pop();
  }
}

}  // namespace cmt::collector
