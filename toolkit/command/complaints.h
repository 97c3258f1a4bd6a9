/// Messages about the defects of a trace. A damaged trace may have millions, so only the first ten are printed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "cmt/error.h"

namespace cmt::command {

/// Reports the first ten defects of a trace with their places, and at the end the number of all.
class Complaints {
 public:
  /// `say` gets one line a call, without its end. If `strict`, the first defect is thrown as a FormatError instead.
  Complaints(bool strict, std::function<void(const std::string&)> say) : strict_(strict), say_(std::move(say)) {}

  /// `place` returns the place of the current event, for messages.
  void set_place(std::function<std::string()> place) { place_ = std::move(place); }
  std::string place() const { return place_ ? place_() : ""; }

  /// A defect at that place.
  void add(const std::string& what) { add(strict_ || count_ < said_max ? place() : "", what); }
  void add(const std::string& where, const std::string& what) {
    if (strict_) throw FormatError(where, what);
    if (++count_ <= said_max) say_(where + ": " + what);
  }

  std::uint64_t count() const { return count_; }

  /// Says the count, unless it is 0.
  void say_count() const {
    if (count_ != 0) say_(std::to_string(count_) + (count_ == 1 ? " defect" : " defects") + " in the trace");
  }

 private:
  static constexpr std::uint64_t said_max = 10;

  bool strict_;
  std::function<void(const std::string&)> say_;
  std::function<std::string()> place_;
  std::uint64_t count_ = 0;
};

}  // namespace cmt::command
