// The streams of times and of usable sizes of a .cmt.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cmt/event.h"
#include "libcmt/format/coding.h"

namespace cmt::format {

/// Each stream has one number an event, and is empty if no event of the block has a value. The number 0 means that no
/// value was recorded. Any other number is one more than the value.

/// The common part of both encoders.
class ColumnEncoder {
 public:
  /// Returns the stream since the last finish(), not compressed.
  std::string finish() {
    std::string out = out_.take();
    any_ = false;
    unknown_before_ = 0;
    return out;
  }

  /// Appends values that were not recorded.
  void put_unknown(std::size_t count) {
    if (any_) {
      for (; count != 0; --count) out_.put(std::uint64_t{0});
    } else {
      unknown_before_ += count;
    }
  }

 protected:
  void put(bool known, std::uint64_t difference) {
    if (!known && !any_) {
      ++unknown_before_;
      return;
    }
    if (!std::exchange(any_, true)) put_unknown(unknown_before_);
    out_.put(known ? zigzag(difference) + 1 : 0);
  }

 private:
  VarintWriter out_;
  std::size_t unknown_before_ = 0;  // values before the first that is known
  bool any_ = false;
};

/// The time of each event: zigzag differences of nanoseconds. A difference of 2^63 has no code, so such a time becomes
/// unknown. (Times of the format are below 2^62.)
class TimeEncoder : public ColumnEncoder {
 public:
  void add(std::uint64_t time_ns) {
    const std::uint64_t difference = time_ns - last_;
    const bool known = time_ns != unknown && difference != std::uint64_t{1} << 63;
    put(known, difference);
    if (known) last_ = time_ns;
  }

  /// The time of the last event that has one.
  std::uint64_t last_ns() const { return last_; }

 private:
  std::uint64_t last_ = 0;
};

/// The common part of both decoders.
class ColumnDecoder {
 public:
  bool at_end() const { return cursor_.at_end(); }
  std::uint64_t offset() const { return cursor_.offset(); }

 protected:
  void start(std::string_view bytes) {
    cursor_ = Cursor(bytes);
    present_ = !bytes.empty();
  }

  Cursor cursor_{{}};
  bool present_ = false;
};

class TimeDecoder : public ColumnDecoder {
 public:
  void start(std::string_view bytes, std::uint64_t last_ns) {
    ColumnDecoder::start(bytes);
    last_ = last_ns;
  }

  void fill(std::span<Event> events) {
    if (!present_) return;
    for (Event& event : events) {
      const std::uint64_t value = cursor_.varint();
      event.time_ns = value != 0 ? last_ += unzigzag(value - 1) : unknown;
    }
  }

 private:
  std::uint64_t last_ = 0;
};

/// The usable size of each block made: the zigzag difference from the bytes requested.
class UsableEncoder : public ColumnEncoder {
 public:
  void add(const Event& event) {
    if (event.tag != 0) put(event.usable != unknown, event.usable - event.bytes());
  }
};

class UsableDecoder : public ColumnDecoder {
 public:
  using ColumnDecoder::start;

  void fill(std::span<Event> events) {
    if (!present_) return;
    for (Event& event : events) {
      const std::uint64_t value = event.tag != 0 ? cursor_.varint() : 0;
      event.usable = value != 0 ? event.bytes() + unzigzag(value - 1) : unknown;
    }
  }
};

}  // namespace cmt::format
