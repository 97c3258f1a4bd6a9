/// Records on their way from the rings to the trace, in 5 to 8 bytes each instead of 16: hundreds of millions may have
/// to wait there, and what is moved through memory is felt by the program on the other processor.
///
/// A record is a code of two bytes, and then of each field the bytes that are not 0: the address as a difference from
/// the one before, the size, the stamp as a difference from the one before, the alignment. The code says how many there
/// are of each. Each piece stands for itself.
///
/// Rejected: a byte for a code that was met before (slower, for one byte of six); zstd -1 on whole records, 104 to 126
/// ns each.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "preload/ring.h"

namespace cmt::collector {

/// Records, packed, with some bytes behind them that mean nothing.
struct Packed {
  std::vector<std::uint8_t> bytes;
  std::size_t count = 0;
};

/// What both sides know of the records before.
struct PackedState {
  /// A code, from bit 0: kind (6 bits), given (1), and the lengths of address (3), size (3), stamp (2) and alignment
  /// (1), in bytes; those of the stamp are 0, 1, 2 and 4.
  enum : unsigned { given_at = 6, address_at = 7, size_at = 10, stamp_at = 13, alignment_at = 15 };
  static constexpr unsigned null_address = 7;  // in place of a length; the next one does not differ from it
  static constexpr unsigned address_bits = 48;

  static constexpr std::uint64_t low_bytes(unsigned count) { return (std::uint64_t{1} << 8 * count) - 1; }

  static bool has_stamp(std::uint32_t code) { return (code & 63) < record_epoch; }

  std::uint64_t last_address = 0;  // its lowest four bits, mostly 0, are the highest here
  std::uint32_t last_stamp = 0;
};

class Packer : PackedState {
 public:
  /// Adds records but for their bits "valid" and "parity", at most so many: what next(slot) fills in, until it says
  /// that there is none. Returns how many.
  template <class Next>
  std::size_t add_all(std::size_t records_max, const Next& next) {
    const std::size_t wanted = used_ + records_max * record_bytes_max;
    if (bytes_.size() < wanted) bytes_.resize(wanted * 2);
    PackedState state = *this;  // in registers
    std::uint8_t* to = bytes_.data() + used_;
    std::size_t added = 0;
    for (Slot slot; added != records_max && next(slot); ++added) to = put(to, state, slot.head, slot.body);
    static_cast<PackedState&>(*this) = state;
    used_ = static_cast<std::size_t>(to - bytes_.data());
    count_ += added;
    return added;
  }

  void add(std::uint64_t head, std::uint64_t body) {
    add_all(1, [&](Slot& slot) {
      slot = {head, body};
      return true;
    });
  }

  std::size_t count() const { return count_; }

  /// What was added since the last time.
  Packed take() {
    Packed all{{bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(used_ + slack)}, count_};
    static_cast<PackedState&>(*this) = PackedState{};
    used_ = count_ = 0;
    return all;
  }

  static constexpr std::size_t slack = 8;
  /// The most that a record takes, in bytes.
  static constexpr std::size_t record_bytes_max = 2 + 6 + 4 + 4 + 1 + slack;

 private:
  static std::uint8_t* put(std::uint8_t* to, PackedState& state, std::uint64_t head, std::uint64_t body) {
    const std::uint64_t alignment = head >> slot_alignment_shift & 63;
    std::uint32_t code = (head & 63) | (head & slot_given) >> 14 << given_at;
    const std::uint64_t difference = differ(state, head >> slot_address_shift);
    const auto size = static_cast<std::uint32_t>(body >> 32);
    const std::uint32_t stamp = static_cast<std::uint32_t>(body) - (has_stamp(code) ? state.last_stamp : 0);
    state.last_stamp = has_stamp(code) ? static_cast<std::uint32_t>(body) : state.last_stamp;
    const bool is_null = head >> slot_address_shift == 0;
    const unsigned address_bytes = length_of(difference), size_bytes = length_of(size);
    const unsigned stamp_length = length_of(stamp), stamp_bytes = stamp_length + (stamp_length == 3 ? 1 : 0);
    code |= (is_null ? null_address : address_bytes) << address_at | size_bytes << size_at;
    code |= (stamp_length < 3 ? stamp_length : 3) << stamp_at | (alignment != 0 ? 1u : 0u) << alignment_at;
    std::memcpy(to, &code, 2);
    to += 2;
    std::memcpy(to, &difference, sizeof difference);
    to += address_bytes;
    std::memcpy(to, &size, sizeof size);
    to += size_bytes;
    std::memcpy(to, &stamp, sizeof stamp);
    to += stamp_bytes;
    if (alignment != 0) *to++ = static_cast<std::uint8_t>(alignment);
    return to;
  }

  /// Of a number of less than 63 bits, in bytes; without a branch for 0.
  static unsigned length_of(std::uint64_t value) {
    return (63 - static_cast<unsigned>(__builtin_clzll(2 * value + 1)) + 7) / 8;
  }

  static std::uint64_t differ(PackedState& state, std::uint64_t address) {
    if (address == 0) return 0;
    const std::uint64_t turned = (address >> 4 | address << (address_bits - 4)) & low_bytes(6);
    const auto difference = static_cast<std::int64_t>((turned - state.last_address) << 16) >> 16;
    state.last_address = turned;
    return static_cast<std::uint64_t>(difference << 1 ^ difference >> 63) & low_bytes(6);
  }

  std::vector<std::uint8_t> bytes_ = std::vector<std::uint8_t>(4096);
  std::size_t used_ = 0, count_ = 0;
};

/// Reads what a Packer gave, which has to live as long.
class Unpacker : PackedState {
 public:
  Unpacker() = default;
  explicit Unpacker(const Packed& packed) : at_(packed.bytes.data()), left_(packed.count) {}

  std::size_t left() const { return left_; }

  /// The next record; there has to be one.
  Slot next() {
    --left_;
    const std::uint32_t code = load() & 0xffff;
    at_ += 2;
    const std::uint64_t address = take_address(code >> address_at & 7);
    const unsigned size_bytes = code >> size_at & 7, stamp_length = code >> stamp_at & 3;
    const unsigned stamp_bytes = (1u << stamp_length) >> 1;
    const std::uint64_t size = load() & low_bytes(size_bytes);
    at_ += size_bytes;
    const std::uint32_t base = has_stamp(code) ? last_stamp : 0;
    const std::uint32_t stamp = base + static_cast<std::uint32_t>(load() & low_bytes(stamp_bytes));
    at_ += stamp_bytes;
    if (has_stamp(code)) last_stamp = stamp;
    std::uint64_t head = address << slot_address_shift | (code & 63) | (code >> given_at & 1) << 14;
    if (code >> alignment_at != 0) head |= std::uint64_t{*at_++} << slot_alignment_shift;
    return {head, size << 32 | stamp};
  }

 private:
  std::uint64_t load() const {
    std::uint64_t value;
    std::memcpy(&value, at_, sizeof value);
    return value;
  }

  std::uint64_t take_address(unsigned length) {
    if (length == null_address) return 0;
    const std::uint64_t folded = load() & low_bytes(length);
    at_ += length;
    last_address = (last_address + (folded >> 1 ^ (0 - (folded & 1)))) & low_bytes(6);
    return (last_address << 4 | last_address >> (address_bits - 4)) & low_bytes(6);
  }

  const std::uint8_t* at_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace cmt::collector
