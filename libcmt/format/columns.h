#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cmt/event.h"
#include "libcmt/format/coding.h"

namespace cmt::format {

/// Streams of one number an event that most traces lack. Both are empty where no event of the block has a value; a
/// value that was not recorded is 0, any other one more than it.

/// What the encoders of such streams share.
class ColumnEncoder {
 public:
  /// The stream since the last finish(), not compressed.
  std::string finish() {
    std::string out;
    if (any_) out.swap(out_);
    out_.clear();
    any_ = false;
    unknown_before_ = 0;
    return out;
  }

  /// Takes so many values that were not recorded.
  void put_unknown(std::size_t count) {
    if (any_) {
      out_.append(count, '\0');
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
    if (!any_) out_.assign(unknown_before_, '\0');
    any_ = true;
    put_varint(out_, known ? zigzag(difference) + 1 : 0);
  }

 private:
  std::string out_;
  std::size_t unknown_before_ = 0;  // values before the first that is known
  bool any_ = false;
};

/// When each event happened: zigzag differences of nanoseconds.
class TimeEncoder : public ColumnEncoder {
 public:
  void add(const Event& event) {
    const bool known = event.time_ns != unknown;
    put(known, event.time_ns - last_);
    if (known) last_ = event.time_ns;
  }

  /// Of the last event that has one.
  std::uint64_t last_ns() const { return last_; }

 private:
  std::uint64_t last_ = 0;
};

class TimeDecoder {
 public:
  void start(std::string_view bytes, std::uint64_t last_ns) {
    cursor_ = Cursor(bytes);
    present_ = !bytes.empty();
    last_ = last_ns;
  }

  void fill(std::span<Event> events) {
    if (!present_) return;
    for (Event& event : events) {
      const std::uint64_t value = cursor_.varint();
      event.time_ns = value != 0 ? last_ += unzigzag(value - 1) : unknown;
    }
  }

  bool at_end() const { return cursor_.at_end(); }
  std::uint64_t offset() const { return cursor_.offset(); }

 private:
  Cursor cursor_{{}};
  std::uint64_t last_ = 0;
  bool present_ = false;
};

/// malloc_usable_size of each block made: its zigzag difference from the bytes asked for.
class UsableEncoder : public ColumnEncoder {
 public:
  void add(const Event& event) {
    if (event.tag != 0) put(event.usable != unknown, event.usable - event.bytes());
  }
};

class UsableDecoder {
 public:
  void start(std::string_view bytes) {
    cursor_ = Cursor(bytes);
    present_ = !bytes.empty();
  }

  void fill(std::span<Event> events) {
    if (!present_) return;
    for (Event& event : events) {
      const std::uint64_t value = event.tag != 0 ? cursor_.varint() : 0;
      event.usable = value != 0 ? event.bytes() + unzigzag(value - 1) : unknown;
    }
  }

  bool at_end() const { return cursor_.at_end(); }
  std::uint64_t offset() const { return cursor_.offset(); }

 private:
  Cursor cursor_{{}};
  bool present_ = false;
};

}  // namespace cmt::format
