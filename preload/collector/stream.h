#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cmt/event.h"
#include "preload/ring.h"

namespace cmt::collector {

/// One event as a thread recorded it, before it has a place and a tag.
struct Recorded {
  std::uint64_t stamp = 0;
  std::uint32_t kind = 0;  ///< cmt::Kind, or one of ring.h
  bool given = false;      ///< a realloc that was given a block
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t count = 1;
  std::uint64_t alignment = 0;
  std::uint64_t usable = unknown;
};

/// What came out of one ring and is not in the trace yet. The records of an event may arrive in two parts.
class Stream {
 public:
  void append(std::span<const Slot> records);

  /// Whether there is a whole event; front() is it.
  bool has_front() const { return has_front_; }
  const Recorded& front() const { return front_; }
  const std::string& label() const { return label_; }
  /// Goes on to the next event.
  void pop();
  /// The address in a record that comes soon, or 0.
  std::uint64_t address_ahead() const {
    constexpr std::size_t ahead = 12;
    return at_ + ahead < records_.size() ? records_[at_ + ahead].head >> slot_address_shift : 0;
  }
  /// How many records were appended before the first one that is not in the trace.
  std::uint64_t settled() const { return in_transit.empty() ? base_ + begin_ : in_transit.front().place; }
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
  std::uint64_t front_place() const { return base_ + begin_; }
  std::uint64_t blocked_on = 0;  ///< the address that the front waits for; 0: none
  bool is_queued = false;

 private:
  void decode();
  void extend(const Slot& slot, std::uint32_t kind);
  void complete(const Slot& slot, std::uint32_t kind);

  std::vector<Slot> records_;
  std::size_t at_ = 0;
  std::size_t begin_ = 0;   // of the front's records
  std::uint64_t base_ = 0;  // the place of records_[0]
  std::uint64_t epoch_ = 0;
  std::uint64_t epoch_before_ = 0;  // at begin_
  std::uint64_t last_stamp_ = 0;
  bool has_front_ = false;
  Recorded front_;
  std::string label_;
};

}  // namespace cmt::collector
