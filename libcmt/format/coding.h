// The one layer in which bytes of a .cmt are read and written: limits of the format, LEB128 numbers, the bounds-checked
// Cursor, and VarintWriter.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace cmt::format {

/// Constants and limits of format-spec/cmt.md; reader and writer share them.

inline constexpr std::string_view magic =
    "\x89"
    "CMT\r\n\x1a\n";
inline constexpr std::uint32_t version = 1;
inline constexpr std::uint32_t version_of_samples = 2;

/// How many bytes identify an input: the magic, or a legacy record.
inline constexpr std::size_t longest_start = 16;

inline constexpr std::uint32_t header_size_limit = 1 << 27;
inline constexpr std::uint32_t section_header_limit = 1 << 26;
inline constexpr std::uint64_t metadata_limit = 1024;
inline constexpr std::uint64_t metadata_key_limit = 256;
inline constexpr std::uint64_t metadata_value_limit = 65536;
inline constexpr std::uint64_t block_events_limit = 1 << 20;
inline constexpr std::uint64_t streams_limit = 64;
inline constexpr std::uint64_t stream_size_limit = 1 << 28;
inline constexpr std::uint64_t traits_limit = 255;
inline constexpr std::uint64_t further_operands_limit = 16;
inline constexpr std::uint64_t repair_kinds_limit = 64;
inline constexpr std::uint64_t module_path_limit = 65536;
inline constexpr std::uint64_t build_id_limit = 256;
inline constexpr std::size_t pools_limit = 4096;  // of a block
inline constexpr std::uint64_t pool_name_limit = 256;
/// A pool's operand has the pool in its low bits, and above them by how much the next number rises.
inline constexpr unsigned pool_bits = 16;
inline constexpr std::uint64_t pool_block_limit = std::uint64_t{1} << 48;
static_assert(pool_block_limit << pool_bits == 0 && pools_limit >> pool_bits == 0);
inline constexpr std::uint32_t nodes_limit = 1 << 24;  // of stacks, in a file
inline constexpr std::uint64_t stack_time_limit = (std::uint64_t{1} << 62) - 1;
/// An attachment below this is a number of frames that the last stack loses; from here on it counts nodes.
inline constexpr std::uint64_t attachment_steps = 128;

/// Numbers on the wire are LEB128: base 128, least significant group first, the high bit set on every byte but the
/// last.

inline constexpr std::size_t varint_max = 10;  ///< bytes

/// Writes a number to memory that has room for varint_max bytes, and returns where it ends.
inline char* put_varint(char* at, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) *at++ = static_cast<char>(value | 0x80);
  *at++ = static_cast<char>(value);
  return at;
}

inline void put_varint(std::string& out, std::uint64_t value) {
  std::array<char, varint_max> bytes;
  out.append(bytes.data(), static_cast<std::size_t>(put_varint(bytes.data(), value) - bytes.data()));
}

/// Reads a number that this program itself has written, without a bounds check, and advances `at`.
inline std::uint64_t take_own_varint(const char*& at) {
  auto byte = static_cast<unsigned char>(*at++);
  std::uint64_t value = byte & 0x7fu;
  for (unsigned shift = 7; byte >= 0x80; shift += 7) {
    byte = static_cast<unsigned char>(*at++);
    value |= std::uint64_t{byte & 0x7fu} << shift;
  }
  return value;
}

/// Skips such a number.
inline void skip_own_varint(const char*& at) {
  while (static_cast<unsigned char>(*at++) >= 0x80) {
  }
}

/// Bytes that put_varint() writes for a number of `bits` significant bits.
constexpr unsigned varint_size(unsigned bits) { return bits == 0 ? 1 : (bits + 6) / 7; }

/// Maps small numbers of either sign to small numbers: 0, -1, 1, -2 … to 0, 1, 2, 3 …
constexpr std::uint64_t zigzag(std::uint64_t difference) { return difference << 1 ^ (0 - (difference >> 63)); }

constexpr std::uint64_t unzigzag(std::uint64_t value) { return value >> 1 ^ (0 - (value & 1)); }

/// An error in decoded bytes. The layer above adds the file's name and the offset in the file.
class WireError : public std::runtime_error {
 public:
  WireError(std::uint64_t offset, const std::string& what) : std::runtime_error(what), offset_(offset) {}

  /// Counted from the begin of the decoded bytes.
  std::uint64_t offset() const { return offset_; }

 private:
  std::uint64_t offset_;
};

/// An offset as messages have it: "0x1f3".
inline std::string hex_text(std::uint64_t offset) {
  std::array<char, 16> digits;
  return "0x" + std::string(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), offset, 16).ptr);
}

/// The one way in which bytes of a file are read. Checks every step against the end. Throws WireError.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : begin_(bytes.data()), at_(begin_), end_(begin_ + bytes.size()) {}

  bool at_end() const { return at_ == end_; }
  std::uint64_t offset() const { return static_cast<std::uint64_t>(at_ - begin_); }

  /// Always inline: GCC would call it in files with many uses, and a loop of numbers would take half as long again.
  [[gnu::always_inline]] std::uint64_t varint() {
    if (at_ != end_ && static_cast<signed char>(*at_) >= 0) return static_cast<std::uint64_t>(*at_++);
    if (end_ - at_ >= 2 && static_cast<signed char>(at_[1]) >= 0) {
      const std::uint64_t value = (static_cast<std::uint64_t>(at_[1]) << 7) | (static_cast<std::uint64_t>(*at_) & 0x7f);
      at_ += 2;
      return value;
    }
    return long_varint();
  }

  /// A varint that may not exceed `limit`; `what` names it in the message.
  std::uint64_t varint(std::uint64_t limit, const char* what) {
    const std::uint64_t at = offset();
    const std::uint64_t value = varint();
    if (value > limit) throw WireError(at, std::string(what) + " " + std::to_string(value) + " is above its limit");
    return value;
  }

  std::string_view bytes(std::uint64_t count) {
    if (count > static_cast<std::uint64_t>(end_ - at_)) throw WireError(offset(), "cut off");
    assert(at_ <= end_);
    const std::string_view taken(at_, count);
    at_ += count;
    return taken;
  }

  std::uint32_t u32() { return fixed<std::uint32_t>(); }
  std::uint64_t u64() { return fixed<std::uint64_t>(); }

 private:
  template <class Integer>
  Integer fixed() {
    Integer value;
    std::memcpy(&value, bytes(sizeof value).data(), sizeof value);
    return value;
  }

  std::uint64_t long_varint() {
    std::uint64_t value = 0;
    const std::uint64_t start = offset();
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) throw WireError(start, "a number is cut off");
      const auto byte = static_cast<unsigned char>(*at_++);
      if (shift == 63 && byte > 1) break;
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw WireError(start, "a number of more than 64 bits");
  }

  const char* begin_;
  const char* at_;
  const char* end_;
};

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "fixed integers on the wire are little-endian, and copied");

inline void put_u32(std::string& out, std::uint32_t value) { out.append(reinterpret_cast<const char*>(&value), 4); }
inline void put_u64(std::string& out, std::uint64_t value) { out.append(reinterpret_cast<const char*>(&value), 8); }

/// Puts many varints into a string. The string's own functions would check their room for every byte.
class VarintWriter {
 public:
  /// `expected`: a guess of the bytes in all.
  explicit VarintWriter(std::size_t expected = 0) : out_(expected + room_min, '\0') {}

  void put(std::uint64_t value) {
    if (out_.size() - size_ < room_min) grow(room_min);
    char* const at = out_.data() + size_;
    *at = static_cast<char>(value);
    size_ += value < 0x80 ? 1 : static_cast<std::size_t>(put_at(at, value) - at);
  }

  void put(std::string_view bytes) {
    if (out_.size() - size_ < bytes.size()) grow(bytes.size());
    std::copy(bytes.begin(), bytes.end(), out_.data() + size_);
    size_ += bytes.size();
  }

  /// Puts a number for each item of [from, to) as long as number_of(item, number) returns true. Returns the first item
  /// for which number_of() returned false, or `to`.
  template <class Item, class NumberOf>
  const Item* put_while(const Item* from, const Item* to, const NumberOf& number_of) {
    while (from != to) {
      if (out_.size() - size_ < room_min) grow(room_min);
      assert(out_.size() - size_ >= room_min);
      const auto room = static_cast<std::ptrdiff_t>((out_.size() - size_) / varint_max);
      const Item* const end = from + std::min(to - from, room);
      char* at = out_.data() + size_;
      std::uint64_t number;
      while (from != end && number_of(*from, number)) at = put_at(at, number), ++from;
      size_ = static_cast<std::size_t>(at - out_.data());
      if (from != end) return from;
    }
    return to;
  }

  /// Bytes put so far.
  std::size_t size() const { return size_; }

  /// Returns all that was put, and starts afresh.
  std::string take() {
    assert(size_ <= out_.size());
    out_.resize(size_);
    size_ = 0;
    return std::exchange(out_, {});
  }

 private:
  static constexpr std::size_t room_min = 64 * varint_max;

  static char* put_at(char* at, std::uint64_t value) {
    if (value < std::uint64_t{1} << 28) return put_short_at(at, static_cast<std::uint32_t>(value));
    return put_varint(at, value);
  }

  /// The encoding of a number of at most four bytes: how many bytes, and their high bits. Indexed by significant bits.
  struct ShortForm {
    std::uint32_t high_bits;
    std::uint32_t bytes;
  };
  static constexpr std::array<ShortForm, 29> short_forms = [] {
    std::array<ShortForm, 29> all{};
    for (unsigned bits = 0; bits < all.size(); ++bits) {
      const unsigned bytes = varint_size(bits);
      all[bits] = {0x808080u & ((1u << 8 * (bytes - 1)) - 1), bytes};
    }
    return all;
  }();

  // Up to four bytes, without a branch that depends on how many.
  static char* put_short_at(char* at, std::uint32_t value) {
    assert(value < std::uint32_t{1} << 28);
    const ShortForm form = short_forms[static_cast<unsigned>(std::bit_width(value | 1))];
    const std::uint32_t spread =
        (value & 0x7f) | (value & 0x3f80) << 1 | (value & 0x1fc000) << 2 | (value & 0xfe00000) << 3 | form.high_bits;
    std::memcpy(at, &spread, sizeof spread);
    return at + form.bytes;
  }

  void grow(std::size_t room) { out_.resize(std::max(out_.size() * 2, size_ + room)); }

  std::string out_;  // longer than the bytes that were put
  std::size_t size_ = 0;
};

}  // namespace cmt::format
