/// Messages about the defects of a trace. A damaged trace may have millions, so only the first ten are printed, and the
/// first of each kind.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "cmt/error.h"
#include "cmt/reader.h"
#include "libcmt/trace/first_defects.h"

namespace cmt::command {

/// Reports the first ten defects of a trace and the first of each kind with their places, and at the end the number of
/// all. Takes no memory for the others.
class Complaints {
 public:
  /// `say` gets one line a call, without its end. If `strict`, the first defect is thrown as a FormatError instead.
  Complaints(bool strict, std::function<void(const std::string&)> say) : strict_(strict), say_(std::move(say)) {}

  /// `place` returns the place of the current event, for messages.
  void set_place(std::function<std::string()> place) { place_ = std::move(place); }
  std::string place() const { return place_ ? place_() : ""; }

  /// A defect at that place.
  void add(const std::string& what) {
    if (strict_) throw FormatError(place(), what);
    if (is_said(what)) say_(place() + ": " + what);
    ++count_;
  }
  void add(const std::string& where, const std::string& what) { add(Defect{where, what}); }
  /// A defect that the reader has found.
  void add(const Defect& defect) {
    if (strict_) throw FormatError(defect.place, defect.what);
    if (is_said(defect.what)) say_(defect.place + ": " + defect.what);
    count_ += defect.count;
  }

  std::uint64_t count() const { return count_; }

  /// Says the count, unless it is 0.
  void say_count() const {
    if (count_ != 0) say_(std::to_string(count_) + (count_ == 1 ? " defect" : " defects") + " in the trace");
  }

 private:
  bool is_said(const std::string& what) { return !first_.counted_by(what); }

  bool strict_;
  std::function<void(const std::string&)> say_;
  std::function<std::string()> place_;
  std::uint64_t count_ = 0;
  FirstDefects first_;
};

}  // namespace cmt::command
