/// Records on their way from the rings to the trace, in 4 to 7 bytes each instead of 16: hundreds of millions may have
/// to wait there, and what is moved through memory is felt by the program on the other processor.
///
/// A record is a code, and then of each field the bytes that are not 0: the address as a difference from the one
/// before, the size, the stamp as a difference from the one before, the alignment. The code says how many there are of
/// each, and is one byte where it was met before: its place among those met. Each piece stands for itself.
///
/// Rejected: zstd -1 on whole records, 104 to 126 ns each.
#pragma once

#include <array>
#include <bit>
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
class PackedState {
 protected:
  /// A code, from bit 0: kind (6 bits), given (1), and the lengths of address (3), size (3), stamp (2) and alignment
  /// (1), in bytes; those of the stamp are 0, 1, 2 and 4.
  enum : unsigned { given_at = 6, address_at = 7, size_at = 10, stamp_at = 13, alignment_at = 15 };
  static constexpr unsigned null_address = 7;  // in place of a length; the next one does not differ from it
  static constexpr unsigned address_bits = 48;

  static constexpr std::uint64_t low_bytes(unsigned count) { return (std::uint64_t{1} << 8 * count) - 1; }

  static bool has_stamp(std::uint32_t code) { return (code & 63) < record_epoch; }

  std::uint8_t meet(std::uint32_t code) {
    last_ = last_ == 255 ? 1 : last_ + 1;
    codes_[last_] = static_cast<std::uint16_t>(code);
    return last_;
  }

  std::array<std::uint16_t, 256> codes_{};  // from 1 on
  std::uint64_t address_ = 0;               // its lowest four bits, mostly 0, are the highest here
  std::uint32_t stamp_ = 0;
  std::uint8_t last_ = 0;  // place that was given to a code; in place of one, 0 stands before a new code
};

class Packer : PackedState {
 public:
  /// Takes a record but for its bits "valid" and "parity".
  void add(std::uint64_t head, std::uint64_t body) {
    if (bytes_.size() < used_ + record_bytes_max) bytes_.resize(bytes_.size() * 2 + 4096);
    std::uint8_t* to = bytes_.data() + used_;
    const std::uint64_t address = head >> slot_address_shift;
    const std::uint64_t alignment = head >> slot_alignment_shift & 63;
    std::uint32_t code = (head & 63) | (head & slot_given) >> 14 << given_at;
    const std::uint64_t difference = differ(address, code);
    const auto size = static_cast<std::uint32_t>(body >> 32);
    const std::uint32_t stamp = static_cast<std::uint32_t>(body) - (has_stamp(code) ? stamp_ : 0);
    if (has_stamp(code)) stamp_ = static_cast<std::uint32_t>(body);
    const unsigned size_bytes = length_of(size), stamp_length = length_of(stamp);
    const unsigned stamp_bytes = stamp_length + (stamp_length == 3 ? 1 : 0);
    code |= size_bytes << size_at | static_cast<unsigned>(std::bit_width(stamp_bytes)) << stamp_at;
    code |= (alignment != 0 ? 1u : 0u) << alignment_at;
    to = put_code(to, code);
    std::memcpy(to, &difference, sizeof difference);
    to += address_bytes(code);
    std::memcpy(to, &size, sizeof size);
    to += size_bytes;
    std::memcpy(to, &stamp, sizeof stamp);
    to += stamp_bytes;
    if (alignment != 0) *to++ = static_cast<std::uint8_t>(alignment);
    used_ = static_cast<std::size_t>(to - bytes_.data());
    ++count_;
  }

  std::size_t count() const { return count_; }

  /// What was added since the last time.
  Packed take() {
    Packed all{{bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(used_)}, count_};
    all.bytes.resize(used_ + slack);
    static_cast<PackedState&>(*this) = PackedState{};
    places_of_.fill(0);
    used_ = count_ = 0;
    return all;
  }

  static constexpr std::size_t slack = 8;
  /// The most that a record takes, in bytes.
  static constexpr std::size_t record_bytes_max = 3 + 6 + 4 + 4 + 1 + slack;

 private:
  /// Of a number of less than 63 bits, in bytes; without a branch for 0.
  static unsigned length_of(std::uint64_t value) {
    return (63 - static_cast<unsigned>(__builtin_clzll(2 * value + 1)) + 7) / 8;
  }

  std::uint64_t differ(std::uint64_t address, std::uint32_t& code) {
    if (address == 0) {
      code |= null_address << address_at;
      return 0;
    }
    const std::uint64_t turned = (address >> 4 | address << (address_bits - 4)) & low_bytes(6);
    const auto difference = static_cast<std::int64_t>((turned - address_) << 16) >> 16;
    const auto folded = static_cast<std::uint64_t>(difference << 1 ^ difference >> 63) & low_bytes(6);
    address_ = turned;
    code |= length_of(folded) << address_at;
    return folded;
  }

  static unsigned address_bytes(std::uint32_t code) {
    const unsigned length = code >> address_at & 7;
    return length == null_address ? 0 : length;
  }

  std::uint8_t* put_code(std::uint8_t* to, std::uint32_t code) {
    std::uint8_t& place = places_of_[code * 0x9e3779b1u >> 22];
    if (place != 0 && codes_[place] == code) {
      *to = place;
      return to + 1;
    }
    place = meet(code);
    to[0] = 0;
    std::memcpy(to + 1, &codes_[place], 2);
    return to + 3;
  }

  std::array<std::uint8_t, 1024> places_of_{};  // by a hash of the code; 0: not met
  std::vector<std::uint8_t> bytes_;
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
    const std::uint8_t place = *at_++;
    const std::uint32_t code = place != 0 ? codes_[place] : new_code();
    const std::uint64_t address = take_address(code >> address_at & 7);
    const unsigned size_bytes = code >> size_at & 7, stamp_length = code >> stamp_at & 3;
    const unsigned stamp_bytes = (1u << stamp_length) >> 1;
    const std::uint64_t size = load() & low_bytes(size_bytes);
    at_ += size_bytes;
    const std::uint32_t base = has_stamp(code) ? stamp_ : 0;
    const std::uint32_t stamp = base + static_cast<std::uint32_t>(load() & low_bytes(stamp_bytes));
    at_ += stamp_bytes;
    if (has_stamp(code)) stamp_ = stamp;
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

  std::uint32_t new_code() {
    const auto code = static_cast<std::uint16_t>(load());
    at_ += 2;
    meet(code);
    return code;
  }

  std::uint64_t take_address(unsigned length) {
    if (length == null_address) return 0;
    const std::uint64_t folded = load() & low_bytes(length);
    at_ += length;
    address_ = (address_ + (folded >> 1 ^ (0 - (folded & 1)))) & low_bytes(6);
    return (address_ << 4 | address_ >> (address_bits - 4)) & low_bytes(6);
  }

  const std::uint8_t* at_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace cmt::collector
