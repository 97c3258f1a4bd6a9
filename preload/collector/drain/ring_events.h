// The events of one ring, decoded from its records. The hard part is an event of several records whose end has not
// arrived yet, and a loop that hands out nearly all events without copying them.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cmt/event.h"
#include "preload/collector/drain/packed.h"
#include "preload/collector/pages/touched_blocks.h"
#include "preload/collector/ring_stacks.h"

namespace cmt::collector {

inline std::uint64_t alignment_of(const Slot& record) { return (std::uint64_t{1} << slot_alignment(record.head)) >> 1; }

/// The position from which a recovery needs the records of a ring, with the state after the records before.
struct ResumePoint {
  Saved saved;
  StackId stack = 0;  ///< the ring's last stack, in the table of RingStacks
};

/// The events of one ring that are not in the trace yet, oldest first. Most events are one record. Others have records
/// with further values before their last record: the *extension*, which may arrive earlier. Records of call stacks are
/// no part of an extension. They are taken out when records are unpacked, so an allocation with a new stack is an event
/// of one record too.
///
/// Positions count the records of the ring since its begin.
class RingEvents {
 public:
  /// `stacks`: those of the recording; null if it has none.
  explicit RingEvents(RingStacks* stacks = nullptr) {
    if (stacks != nullptr) stacks_ = std::make_unique<Stacks>(*stacks);
  }

  void append(Packed records) {
    if (records.count == 0) return;
    chunks_.push_back(std::move(records));
    if (chunks_.size() == 1) unpacker_ = Unpacker(chunks_.front());
    if (!has_front_) decode();
  }
  /// For a recovery, before the first append(): the records begin at `point`.
  void resume(const ResumePoint& point) {
    assert(chunks_.empty() && !has_front_);
    position_ = front_position_ = point.saved.position;
    thread = point.saved.thread;
    stamp_high_ = front_stamp_high_ = std::uint64_t{point.saved.stamp_high} << 32;
    if (!stacks_) return;
    stacks_->unpacked = position_;
    stacks_->chain.resume(point.stack);
    front_last_stack_ = point.stack;
  }

  /// Whether there is a whole event. The oldest one is the *front*. The functions down to pop() require it.
  bool has_front() const { return has_front_; }
  std::uint64_t stamp() const { return last_stamp_; }
  std::uint32_t kind() const { return slot_kind(last_record_.head); }
  /// The front's last record, which is all of the event unless has_extension().
  const Slot& last_record() const { return last_record_; }
  bool has_extension() const { return has_extension_; }
  /// Whether the front is a realloc that was given a block.
  bool has_old_block() const { return (last_record_.head & slot_has_old_block) != 0; }
  /// The front's call stack; 0: none, or not known.
  StackId stack() const { return stacks_ ? stacks_->of_event[index_of(next_) - 1] : 0; }
  /// The front as an event, without tags. Its time is the stamp. Its address is that of its last record, whatever this
  /// address means for the kind. A record that is no event has its kind, too. The label is valid until pop().
  Event front() const {
    Event event = extension_;
    event.kind = static_cast<Kind>(kind());
    event.thread = thread;
    event.address = last_record_.head >> slot_address_shift;
    event.time_ns = last_stamp_;
    event.label = label_;
    event.stack = stack();
    if (event.size == 0) event.size = last_record_.body >> 32;
    if (event.alignment == 0) event.alignment = alignment_of(last_record_);
    return event;
  }
  /// The front's report of its block's pages.
  const PagesReport& pages() const { return pages_; }
  std::uint64_t front_position() const { return front_position_; }
  /// Removes the front.
  void pop() {
    has_front_ = false;
    if (stacks_) {
      position_ = stacks_->ends[index_of(next_) - 1];
      front_last_stack_ = stacks_->last[index_of(next_) - 1];
    }
    front_position_ = position_;
    front_stamp_high_ = stamp_high_;
    if (has_extension_) clear_extension();
    decode();
  }
  /// How many records are readable after each record that pop_while() hands out: records that come soon, or old ones.
  static constexpr std::ptrdiff_t ahead = 16;
  /// Pops events of one record with stamps of at most `bound`, as long as apply(records, stacks, stamp_high, stamp)
  /// takes them. Most events pass this loop. The arguments of apply() are
  ///
  /// - some records, the front first,
  /// - their stacks, or null if they have none,
  /// - the stamps' upper bits,
  ///
  /// - the stamp before, which apply() replaces by the stamp of the last event that it has applied.
  ///
  /// apply() returns how many events it has applied; 0 if it does not take the front.
  template <class Apply>
  void pop_while(std::uint64_t bound, const Apply& apply) {
    while (has_front_ && !has_extension_ && last_stamp_ <= bound) {
      const Slot* const front = next_ - 1;
      const std::span<const Slot> records(front, std::max(next_, refill_at_));
      const StackId* const stacks = stacks_ ? &stacks_->of_event[index_of(front)] : nullptr;
      const std::size_t applied = apply(records, stacks, stamp_high_, last_stamp_);
      assert(applied <= records.size());
      if (applied == 0) return;
      next_ = front + applied;
      position_ += applied - 1;
      pop();
    }
  }

  /// The stamp of a record after one with the stamp `last`. Stamps of a ring never fall, although a signal handler may
  /// record between its thread's reading of the clock and that thread's own record.
  static std::uint64_t stamp_of(const Slot& record, std::uint64_t high, std::uint64_t last) {
    return std::max(high | (record.body & 0xffffffff), last);
  }

  /// The position from which a recovery needs the records: the front, or the oldest realloc that has not returned.
  ResumePoint resume_point() const { return open_reallocs.empty() ? point_of_front() : open_reallocs.front().begin; }
  /// The position of the front's first record.
  ResumePoint point_of_front() const {
    return {{front_position_, thread, static_cast<std::uint32_t>(front_stamp_high_ >> 32)}, front_last_stack_};
  }

  // The state of the ring in EventOrder.
  struct OpenRealloc {
    std::uint64_t address;  ///< of the block that it was given
    ResumePoint begin{};    ///< at the record that says so
  };
  std::uint32_t thread = 0;
  std::vector<OpenRealloc> open_reallocs;  ///< begun and not returned, the innermost last
  std::uint64_t blocked_on = 0;            ///< the address that the front waits for; 0: none
  bool is_queued = false;

 private:
  // Reads records up to the one that ends an event. If the end has not arrived, the records that were read stay in the
  // extension.
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

  /// Unpacks the next records. Returns false if there are none.
  [[gnu::noinline]] bool refill() {
    assert(next_ <= end_);
    if (stacks_) stacks_->move_to_front(index_of(next_), index_of(end_));
    const std::ptrdiff_t most = stacks_ ? unpacked_max_with_stacks : unpacked_max;
    unpacked_.resize(static_cast<std::size_t>(most + ahead));
    Slot* to = std::copy(next_, end_, unpacked_.data());
    Slot* const limit = unpacked_.data() + most;
    Slot* const enough = stacks_ ? limit - most / 2 : limit;
    while (to < enough && !chunks_.empty()) {
      to = stacks_ ? unpack_without_stacks(to, limit) : to + unpacker_.unpack(to, static_cast<std::size_t>(limit - to));
      if (unpacker_.left() != 0) continue;
      chunks_.pop_front();
      if (!chunks_.empty()) unpacker_ = Unpacker(chunks_.front());
    }
    assert(to <= limit);
    next_ = unpacked_.data();
    end_ = to;
    refill_at_ = chunks_.empty() ? end_ : end_ - ahead;
    return next_ != end_;
  }

  /// Unpacks records up to `limit` and takes those of stacks out. Returns the end of the others.
  Slot* unpack_without_stacks(Slot* to, const Slot* limit) {
    Stacks& stacks = *stacks_;
    std::size_t index = index_of(to);
    std::uint64_t position = stacks.unpacked;
    unpacker_.unpack_while([&](const Slot& record, bool is_long) {
      ++position;
      const std::uint32_t kind = slot_kind(record.head);
      if (is_long && kind >= record_void && kind <= record_frames) {
        stacks.chain.take_record(record, kind);
        if (kind != record_void) return true;
      }
      assert(index < stacks.of_event.size());
      stacks.of_event[index] = stacks.chain.stack_of_next(kind);
      stacks.last[index] = stacks.chain.last();
      stacks.ends[index++] = position;
      *to++ = record;
      return to != limit;
    });
    stacks.unpacked = position;
    return to;
  }

  std::size_t index_of(const Slot* unpacked) const { return static_cast<std::size_t>(unpacked - unpacked_.data()); }

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
    if (kind >= record_block) return extend_pages(record, kind);
    if (kind != record_piece) return;
    char text[piece_bytes];
    label_.append(text, piece_of_slot(&record, text));
  }

  void extend_pages(const Slot& record, std::uint32_t kind) {
    if (kind == record_since) pages_.since = record.body;
    if (kind == record_block) {
      pages_.is_there = true;
      pages_.flags = record.body & block_flags_mask;
      pages_.bytes = record.body >> block_bytes_shift;
    }
    if (kind != record_page_run) return;
    const std::uint32_t flags = slot_alignment(record.head);
    pages_.runs.push_back({record.head >> slot_address_shift, record.body, (flags & 1) != 0, (flags & 2) != 0});
  }

  [[gnu::noinline]] void clear_extension() {
    has_extension_ = false;
    if (pages_.is_there) pages_ = PagesReport{};
    extension_ = Event{};
    label_.clear();
  }

  static constexpr std::ptrdiff_t unpacked_max = 128, unpacked_max_with_stacks = 256;

  /// The stacks of a ring in a recording with call stacks. The arrays are parallel to unpacked_.
  struct Stacks {
    explicit Stacks(RingStacks& all) : chain(all) {}
    void move_to_front(std::size_t from, std::size_t end) {
      std::copy(of_event.begin() + from, of_event.begin() + end, of_event.begin());
      std::copy(last.begin() + from, last.begin() + end, last.begin());
      std::copy(ends.begin() + from, ends.begin() + end, ends.begin());
    }

    StackChain chain;
    std::uint64_t unpacked = 0;  // the position after the records that were unpacked
    std::array<StackId, unpacked_max_with_stacks> of_event{};
    std::array<StackId, unpacked_max_with_stacks> last{};        // the ring's last stack then
    std::array<std::uint64_t, unpacked_max_with_stacks> ends{};  // the position after the record
  };

  std::unique_ptr<Stacks> stacks_;  // null: the recording has no stacks
  std::deque<Packed> chunks_;       // as they were appended; the first one is being unpacked
  Unpacker unpacker_;               // of the first chunk
  std::vector<Slot> unpacked_;      // some records, and room for pop_while() to look ahead
  const Slot* next_ = nullptr;
  const Slot* end_ = nullptr;
  const Slot* refill_at_ = nullptr;     // before the end while there is more, so that pop_while() finds addresses ahead
  std::uint64_t position_ = 0;          // of `next_`; in a recording with stacks at pop() alone
  std::uint64_t front_position_ = 0;    // of the front's first record
  std::uint64_t stamp_high_ = 0;        // the stamps' upper 32 bits
  std::uint64_t front_stamp_high_ = 0;  // the same, at front_position_
  StackId front_last_stack_ = 0;        // the ring's last stack, at front_position_
  std::uint64_t last_stamp_ = 0;
  Slot last_record_{};
  bool has_front_ = false;
  bool has_extension_ = false;  // in extension_, label_ and pages_
  Event extension_;
  std::string label_;
  PagesReport pages_;
};

}  // namespace cmt::collector
