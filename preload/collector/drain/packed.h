// Packs records between the rings and the trace: most take 8 bytes instead of 16. Hundreds of millions of records may
// have to wait, and memory traffic slows the program on the other processors.
//
// A record is short, one word, if
//
// - its address and its stamp are near those of the record before,
// - its size is not large,
// - it has no alignment.
//
// Other records are long: two words, the record itself. Each Packed is decoded by itself.
//
// Rejected:
//
// - Two bytes that state how many bytes of each field follow: 5 to 8 bytes a record, but 10 ns for both directions
//   instead of 4.
//
// - A byte for such a code that was met before: slower still, to save one byte of six.
//
// - zstd -1 on whole records: 104 to 126 ns.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "preload/protocol.h"

namespace cmt::collector {

struct Packed {
  std::unique_ptr<std::uint64_t[]> words;
  std::size_t size = 0;   ///< words
  std::size_t count = 0;  ///< records

  std::size_t bytes() const { return size * sizeof words[0]; }
};

/// The record before, which packer and unpacker both know.
struct PackedState {
  /// A short record, from bit 0: 1, kind (7 bits), has_old_block (1), the stamp's difference (11), size (16), the
  /// address's difference in units of 8 bytes (28, signed). The first word of a long one: 0, kind and alignment (13),
  /// nothing, has_old_block, address (48).
  enum : unsigned { kind_at = 1, old_block_at = 8, stamp_at = 9, size_at = 20, address_at = 36 };
  static constexpr unsigned stamp_bits = size_at - stamp_at, size_bits = address_at - size_at;
  static constexpr unsigned address_bits = 64 - address_at, address_unit_bits = 3;

  static constexpr std::uint64_t kind_and_alignment = slot_valid - 1;
  static_assert(slot_kind_mask >> (old_block_at - kind_at) == 0, "a short record has room for each kind");
  static_assert(kind_and_alignment << kind_at < slot_has_old_block, "a long record's fields do not overlap");

  static bool has_stamp(std::uint64_t kind) { return kind < record_stamp_high; }

  void note_long_record(std::uint64_t head, std::uint64_t body) {
    if (!has_stamp(slot_kind(head))) return;
    last_stamp = static_cast<std::uint32_t>(body);
    if (head >> slot_address_shift != 0) last_address = head >> slot_address_shift;
  }

  std::uint64_t last_address = 0;
  std::uint32_t last_stamp = 0;
};

class Packer : PackedState {
 public:
  /// Appends the records that next(slot) fills in, without their bits "valid" and "parity". Stops when next() returns
  /// false, or after `records_max`. Returns how many.
  template <class Next>
  std::size_t append_while(std::size_t records_max, const Next& next) {
    const std::size_t wanted = used_ + records_max * record_words_max;
    if (words_.size() < wanted) words_.resize(wanted * 2);
    PackedState state = *this;  // in registers
    std::uint64_t* to = words_.data() + used_;
    std::size_t appended = 0;
    for (Slot slot; appended != records_max && next(slot); ++appended) to = put(to, state, slot.head, slot.body);
    static_cast<PackedState&>(*this) = state;
    used_ = static_cast<std::size_t>(to - words_.data());
    assert(used_ <= words_.size());
    count_ += appended;
    return appended;
  }

  void append(std::uint64_t head, std::uint64_t body) {
    append_while(1, [&](Slot& slot) {
      slot = {head, body};
      return true;
    });
  }

  /// The words appended since the last call of finish() or clear(). Valid until the next append.
  std::span<const std::uint64_t> words() const { return {words_.data(), used_}; }
  std::size_t count() const { return count_; }
  void clear() {
    static_cast<PackedState&>(*this) = PackedState{};
    used_ = count_ = 0;
  }

  /// Returns all that was appended since the last call.
  Packed finish() {
    Packed all{std::make_unique_for_overwrite<std::uint64_t[]>(used_), used_, count_};
    std::copy_n(words_.begin(), used_, all.words.get());
    clear();
    return all;
  }

  /// The size of a long record.
  static constexpr std::size_t record_words_max = 2, record_bytes_max = 16;

 private:
  static std::uint64_t* put(std::uint64_t* to, PackedState& state, std::uint64_t head, std::uint64_t body) {
    constexpr std::uint64_t far = std::uint64_t{1} << (address_bits + address_unit_bits - 1);
    const std::uint64_t kind = slot_kind(head), alignment = slot_alignment(head),
                        old_block = (head & slot_has_old_block) / slot_has_old_block;
    const std::uint64_t address = head >> slot_address_shift, size = body >> 32,
                        from_last = address - state.last_address;
    const std::uint32_t later = static_cast<std::uint32_t>(body) - state.last_stamp;
    const std::uint64_t too_large = (from_last + far) >> (address_bits + address_unit_bits) | size >> size_bits |
                                    later >> stamp_bits | alignment | (from_last & 7) | (has_stamp(kind) ? 0 : 1);
    if (too_large != 0) {
      *to++ = (head & kind_and_alignment) << kind_at | (head & slot_has_old_block) | address << slot_address_shift;
      *to++ = body;
      state.note_long_record(head, body);
      return to;
    }
    *to++ = 1 | kind << kind_at | old_block << old_block_at | std::uint64_t{later} << stamp_at | size << size_at |
            from_last >> address_unit_bits << address_at;
    state.last_address = address;
    state.last_stamp = static_cast<std::uint32_t>(body);
    return to;
  }

  std::vector<std::uint64_t> words_ = std::vector<std::uint64_t>(1024);
  std::size_t used_ = 0, count_ = 0;
};

/// Reads the records of a Packed, which must outlive the Unpacker.
class Unpacker : PackedState {
 public:
  Unpacker() = default;
  explicit Unpacker(const Packed& packed) : at_(packed.words.get()), left_(packed.count) {}

  std::size_t left() const { return left_; }

  /// Reads the next records, at most so many. Returns how many.
  std::size_t unpack(Slot* to, std::size_t records_max) {
    const std::size_t count = std::min(records_max, left_);
    PackedState state = *this;  // in registers
    const std::uint64_t* at = at_;
    for (std::size_t i = 0; i < count; ++i) at = take(at, state, to[i]);
    static_cast<PackedState&>(*this) = state;
    at_ = at;
    left_ -= count;
    return count;
  }

  /// Reads records and calls visit(record, is_long) with each, until visit() returns false.
  template <class Visit>
  void unpack_while(const Visit& visit) {
    PackedState state = *this;  // in registers
    const std::uint64_t* at = at_;
    std::size_t left = left_;
    for (bool goes_on = true; goes_on && left != 0; --left) {
      const bool is_long = (*at & 1) == 0;
      Slot record;
      at = take(at, state, record);
      goes_on = visit(record, is_long);
    }
    static_cast<PackedState&>(*this) = state;
    at_ = at;
    left_ = left;
  }

 private:
  static const std::uint64_t* take(const std::uint64_t* at, PackedState& state, Slot& slot) {
    const std::uint64_t word = *at++;
    if ((word & 1) == 0) {
      slot = {(word >> kind_at & kind_and_alignment) | (word & (slot_has_old_block | ~std::uint64_t{0xffff})), *at++};
      state.note_long_record(slot.head, slot.body);
      return at;
    }
    const auto from_last = static_cast<std::int64_t>(word) >> address_at;
    state.last_address += static_cast<std::uint64_t>(from_last) << address_unit_bits;
    state.last_stamp += static_cast<std::uint32_t>(word >> stamp_at & ((1u << stamp_bits) - 1));
    const std::uint64_t size = word >> size_at & ((1u << size_bits) - 1);
    slot = {state.last_address << slot_address_shift | (word >> kind_at & slot_kind_mask) |
                (word >> old_block_at & 1) * slot_has_old_block,
            size << 32 | state.last_stamp};
    return at;
  }

  const std::uint64_t* at_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace cmt::collector
