#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "cmt/error.h"
#include "cmt/reader.h"

namespace cmt::command {

/// Says what is wrong with a trace: the first ten defects with their place, and in the end how many there were.
class Complaints {
 public:
  /// `say` gets one line a call, without its end. Where `strict`, the first defect is thrown as a FormatError instead.
  Complaints(bool strict, std::function<void(const std::string&)> say) : strict_(strict), say_(std::move(say)) {}

  /// `place` returns the place of the event that is looked at now, for messages.
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

/// A trace that a tool reads event by event, and its defects.
class TraceInput {
 public:
  /// `say` gets a line for each of the first defects, and one where the trace breaks off.
  TraceInput(const std::string& path, ReadOptions options, std::function<void(const std::string&)> say);

  /// Throws FormatError where times were not recorded.
  void require_times(const std::string& needed_by) const;

  /// Calls `visit` with every event and its index in the batch.
  template <class Visit>
  void for_each(Visit visit) {
    for (auto events = reader_.read(); !events.empty(); events = reader_.read()) {
      is_empty_ = false;
      for (std::size_t i = 0; i < events.size(); ++i) visit(events[current_ = i], i);
    }
    if (reader_.truncated()) say_(path_ + ": breaks off before its end");
    if (is_empty_ && !reader_.truncated()) say_(path_ + ": the trace is empty");
  }

  /// The line of an event: as it is in the input, or else, also where it holds
  /// characters that a terminal would obey, in canonical form. Valid until the next call.
  std::string_view line(const Event& event, std::size_t i);

  Complaints& complaints() { return complaints_; }
  const Header& header() const { return reader_.header(); }
  bool truncated() const { return reader_.truncated(); }

 private:
  ReadOptions with_complaints(ReadOptions options);

  std::string path_;
  bool is_empty_ = true;     // as far as it was read
  std::size_t current_ = 0;  // the event that is visited, in its batch
  std::string own_line_;
  std::function<void(const std::string&)> say_;
  Complaints complaints_;
  Reader reader_;
};

}  // namespace cmt::command
