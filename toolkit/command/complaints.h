#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "cmt/error.h"

namespace cmt::command {

/// What is wrong with a trace, for a reader of messages: the first ten are told with their place, all are counted, and
/// end() tells the number.
class Complaints {
 public:
  /// `say` gets one line a call, without its end. Where `strict`, a complaint is a FormatError instead.
  Complaints(bool strict, std::function<void(const std::string&)> say) : strict_(strict), say_(std::move(say)) {}

  /// Says where the event stands that is gone through now: `here` is asked where a complaint is told.
  void at(std::function<std::string()> here) { here_ = std::move(here); }
  std::string here() const { return here_ ? here_() : ""; }

  /// A complaint about that event.
  void add(const std::string& what) {
    if (strict_) throw FormatError(here(), what);
    if (++count_ <= told_max) say_(here() + ": " + what);
  }

  void add(const std::string& place, const std::string& what) {
    if (strict_) throw FormatError(place, what);
    if (++count_ <= told_max) say_(place + ": " + what);
  }

  std::uint64_t count() const { return count_; }

  /// The count, where there is anything to count.
  void end() const {
    if (count_ != 0) say_(std::to_string(count_) + (count_ == 1 ? " defect" : " defects") + " in the trace");
  }

 private:
  static constexpr std::uint64_t told_max = 10;

  bool strict_;
  std::function<void(const std::string&)> say_;
  std::function<std::string()> here_;
  std::uint64_t count_ = 0;
};

}  // namespace cmt::command
