#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "cmt/reader.h"
#include "toolkit/command/complaints.h"

namespace cmt::command {

/// The trace that a tool goes through event by event, with what is wrong with it.
class TraceInput {
 public:
  /// `say` gets a line for every complaint that is told, and one where the trace breaks off.
  TraceInput(const std::string& path, ReadOptions options, std::function<void(const std::string&)> say);

  /// Throws FormatError where times were not recorded.
  void require_times(const std::string& what_for) const;

  /// Calls `visit` with every event and its place in the batch.
  template <class Visit>
  void for_each(Visit visit) {
    for (auto events = reader_.read(); !events.empty(); events = reader_.read()) {
      for (std::size_t i = 0; i < events.size(); ++i) visit(events[current_ = i], i);
    }
    if (reader_.truncated()) say_(path_ + ": breaks off before its end");
  }

  /// The line that an event is shown as: the input's own, or else the canonical one. Valid until the next call.
  std::string_view line(const Event& event, std::size_t i);

  Complaints& complaints() { return complaints_; }
  const Header& header() const { return reader_.header(); }
  bool truncated() const { return reader_.truncated(); }

 private:
  ReadOptions with_complaints(ReadOptions options);

  std::string path_;
  std::size_t current_ = 0;  // the event that is visited, in its batch
  std::string own_line_;
  std::function<void(const std::string&)> say_;
  Complaints complaints_;
  Reader reader_;
};

}  // namespace cmt::command
