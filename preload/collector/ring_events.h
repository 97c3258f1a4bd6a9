#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "cmt/event.h"
#include "preload/collector/packed.h"

namespace cmt::collector {

inline std::uint64_t alignment_of(const Slot& record) { return (std::uint64_t{1} << slot_alignment(record.head)) >> 1; }

/// The events of one ring that are not in the trace yet, oldest first. Decodes records to events: most are one record;
/// others have records with further values before their last one (the extension), and those may arrive earlier.
///
/// Positions count the records of the ring since its begin.
class RingEvents {
 public:
  void append(Packed records) {
    if (records.count == 0) return;
    chunks_.push_back(std::move(records));
    if (chunks_.size() == 1) unpacker_ = Unpacker(chunks_.front());
    if (!has_front_) decode();
  }
  /// Before the first append(): the records are those from a position on, of a recovery.
  void resume(const Saved& saved) {
    position_ = front_position_ = saved.position;
    thread = saved.thread;
    stamp_high_ = front_stamp_high_ = std::uint64_t{saved.stamp_high} << 32;
  }

  /// Whether there is a whole event. The functions down to pop() are about the oldest, the front.
  bool has_front() const { return has_front_; }
  std::uint64_t stamp() const { return last_stamp_; }
  std::uint32_t kind() const { return slot_kind(last_record_.head); }
  /// Its last record, which says all of it unless has_extension().
  const Slot& last_record() const { return last_record_; }
  bool has_extension() const { return has_extension_; }
  /// Whether it is a realloc that was given a block.
  bool has_old_block() const { return (last_record_.head & slot_has_old_block) != 0; }
  /// With the stamp for a time, and the address of its record, whatever that is to its kind. Without tags. A record
  /// that is no event has its kind too. The label is valid until pop().
  Event front() const {
    Event event = extension_;
    event.kind = static_cast<Kind>(kind());
    event.thread = thread;
    event.address = last_record_.head >> slot_address_shift;
    event.time_ns = last_stamp_;
    event.label = label_;
    if (event.size == 0) event.size = last_record_.body >> 32;
    if (event.alignment == 0) event.alignment = alignment_of(last_record_);
    return event;
  }
  std::uint64_t front_position() const { return front_position_; }
  /// Removes it.
  void pop() {
    has_front_ = false;
    front_position_ = position_;
    front_stamp_high_ = stamp_high_;
    if (has_extension_) clear_extension();
    decode();
  }
  /// How many records there are behind one that pop_while() hands out; they come soon, or are old ones.
  static constexpr std::ptrdiff_t ahead = 16;
  /// Pops events of one record with stamps of at most `bound` as long as apply(records, stamp_high, stamp) takes them.
  /// It is given some records, the front first, the stamps' upper bits, and the stamp before, and returns how many
  /// events it has applied; `stamp` is then that of the last one. 0: it does not take the front. This is the loop that
  /// most events pass.
  template <class Apply>
  void pop_while(std::uint64_t bound, const Apply& apply) {
    while (has_front_ && !has_extension_ && last_stamp_ <= bound) {
      const Slot* const front = next_ - 1;
      const std::span<const Slot> records(front, std::max(next_, refill_at_));
      const std::size_t applied = apply(records, stamp_high_, last_stamp_);
      if (applied == 0) return;
      next_ = front + applied;
      position_ += applied - 1;
      pop();
    }
  }

  /// The stamp of a record behind one with the stamp `last`. Stamps of a ring never fall: a signal handler may have
  /// recorded after its thread read the clock and before that thread's own record.
  static std::uint64_t stamp_of(const Slot& record, std::uint64_t high, std::uint64_t last) {
    return std::max(high | (record.body & 0xffffffff), last);
  }

  /// From where on a recovery needs the records: the front, or the oldest realloc that has not returned.
  Saved resume_point() const {
    return {open_reallocs.empty() ? front_position_ : open_reallocs.front().position, thread,
            static_cast<std::uint32_t>(front_stamp_high_ >> 32)};
  }

  // The state of the ring in EventOrder.
  struct OpenRealloc {
    std::uint64_t address;   ///< of the block that it was given
    std::uint64_t position;  ///< of the record that says so
  };
  std::uint32_t thread = 0;
  std::vector<OpenRealloc> open_reallocs;  ///< begun and not returned, the innermost last
  std::uint64_t blocked_on = 0;            ///< the address that the front waits for; 0: none
  bool is_queued = false;

 private:
  // Reads records up to the one that ends an event. What is read of an event whose end is not there is kept.
  void decode() {
    while (next_ < refill_at_ || refill()) {
      const Slot& record = *next_++;
      ++position_;
      const std::uint32_t kind = slot_kind(record.head);
      if (kind < record_stamp_high) return complete(record);
      extend(record, kind);
    }
  }

  void complete(const Slot& record) {
    last_stamp_ = stamp_of(record, stamp_high_, last_stamp_);
    last_record_ = record;
    has_front_ = true;
  }

  // The rare functions are not inlined into decode().

  /// Unpacks the next records. False where there are none.
  [[gnu::noinline]] bool refill() {
    unpacked_.resize(unpacked_max + ahead);
    Slot* to = std::copy(next_, end_, unpacked_.data());
    Slot* const limit = unpacked_.data() + unpacked_max;
    while (to != limit && !chunks_.empty()) {
      to += unpacker_.unpack(to, static_cast<std::size_t>(limit - to));
      if (unpacker_.left() != 0) break;
      chunks_.pop_front();
      if (!chunks_.empty()) unpacker_ = Unpacker(chunks_.front());
    }
    next_ = unpacked_.data();
    end_ = to;
    refill_at_ = chunks_.empty() ? end_ : end_ - ahead;
    return next_ != end_;
  }

  [[gnu::noinline]] void extend(const Slot& record, std::uint32_t kind) {
    if (kind == record_stamp_high) {
      stamp_high_ = record.body << 32;
      return;
    }
    // A void record may have replaced the last one of an event.
    if (kind == record_void) return clear_extension();
    has_extension_ = true;
    if (kind == record_count) extension_.count = record.body;
    if (kind == record_size) extension_.size = record.body;
    if (kind == record_alignment) extension_.alignment = record.body;
    if (kind == record_usable_size) extension_.usable = record.body;
    if (kind != record_piece) return;
    char text[piece_bytes];
    label_.append(text, piece_of_slot(&record, text));
  }

  [[gnu::noinline]] void clear_extension() {
    has_extension_ = false;
    extension_ = Event{};
    label_.clear();
  }

  static constexpr std::ptrdiff_t unpacked_max = 128;

  std::deque<Packed> chunks_;   // as they were appended; the first one is being unpacked
  Unpacker unpacker_;           // of the first one
  std::vector<Slot> unpacked_;  // unpacked_max of them, and room for pop_while() to look ahead
  const Slot* next_ = nullptr;
  const Slot* end_ = nullptr;
  const Slot* refill_at_ = nullptr;     // before the end while there is more, so that pop_while() finds addresses ahead
  std::uint64_t position_ = 0;          // of `next_`
  std::uint64_t front_position_ = 0;    // of the front's first record
  std::uint64_t stamp_high_ = 0;        // the stamps' upper 32 bits
  std::uint64_t front_stamp_high_ = 0;  // the same, at front_position_
  std::uint64_t last_stamp_ = 0;
  Slot last_record_{};
  bool has_front_ = false;
  bool has_extension_ = false;  // in the next two
  Event extension_;
  std::string label_;
};

}  // namespace cmt::collector
