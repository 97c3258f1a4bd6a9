#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cmtreport/input/read_json.h"

namespace cmt::report {

/// The memory of all processes of a recording at each moment: proportional, or where that is not known resident.
class RecordedSums {
 public:
  void add(std::int64_t tick, std::optional<std::uint64_t> proportional, std::optional<std::uint64_t> resident);

  /// As cmt.kinds/1 has it; `ticks`: number and time of each.
  Json series(const std::vector<std::pair<std::int64_t, std::uint64_t>>& ticks) const;

 private:
  std::map<std::int64_t, std::uint64_t> sums_;
  bool has_proportional_ = false, has_resident_ = false;
};

/// Whether a file is one of SQLite.
bool is_database(const std::string& path);

/// The series of a recording that cmtwatch has written, its database itself. It may come from anyone: views and
/// triggers are off, and a statement that works longer than a file of its size warrants ends. Throws FormatError.
Json read_recording(const std::string& path);

}  // namespace cmt::report
