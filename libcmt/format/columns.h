#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cmt/event.h"
#include "format/cursor.h"

namespace cmt::format {

/// Streams of one number an event that most traces lack. Both are empty where no event of the block has a value; a
/// value that was not recorded is 0, any other one more than it.

/// When each event happened: zigzag differences of nanoseconds.
class TimeEncoder {
 public:
  void add(const Event& event) {
    const bool known = event.time_ns != unknown;
    put_varint(out_, known ? zigzag(event.time_ns - last_) + 1 : 0);
    if (known) last_ = event.time_ns;
    any_ |= known;
  }

  std::string finish() {
    std::string out;
    if (any_) out.swap(out_);
    out_.clear();
    any_ = false;
    return out;
  }

  /// Of the last event that has one.
  std::uint64_t last_ns() const { return last_; }

 private:
  std::string out_;
  std::uint64_t last_ = 0;
  bool any_ = false;
};

class TimeDecoder {
 public:
  void start(std::string_view bytes, std::uint64_t last_ns) {
    cursor_ = Cursor(bytes);
    present_ = !bytes.empty();
    last_ = last_ns;
  }

  void fill(Event& event) {
    if (!present_) return;
    if (const std::uint64_t value = cursor_.varint(); value != 0) event.time_ns = last_ += unzigzag(value - 1);
  }

  bool at_end() const { return cursor_.at_end(); }
  std::uint64_t offset() const { return cursor_.offset(); }

 private:
  Cursor cursor_{{}};
  std::uint64_t last_ = 0;
  bool present_ = false;
};

/// malloc_usable_size of each block made: its zigzag difference from the bytes asked for.
class UsableEncoder {
 public:
  void add(const Event& event) {
    if (event.tag == 0) return;
    const bool known = event.usable != unknown;
    put_varint(out_, known ? zigzag(event.usable - event.bytes()) + 1 : 0);
    any_ |= known;
  }

  std::string finish() {
    std::string out;
    if (any_) out.swap(out_);
    out_.clear();
    any_ = false;
    return out;
  }

 private:
  std::string out_;
  bool any_ = false;
};

class UsableDecoder {
 public:
  void start(std::string_view bytes) {
    cursor_ = Cursor(bytes);
    present_ = !bytes.empty();
  }

  void fill(Event& event) {
    if (!present_ || event.tag == 0) return;
    if (const std::uint64_t value = cursor_.varint(); value != 0) event.usable = event.bytes() + unzigzag(value - 1);
  }

  bool at_end() const { return cursor_.at_end(); }
  std::uint64_t offset() const { return cursor_.offset(); }

 private:
  Cursor cursor_{{}};
  bool present_ = false;
};

}  // namespace cmt::format
