/// Reads the memory of all processes from a recording of cmtwatch, which is a SQLite file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cmtreport/input/read_json.h"

namespace cmt::report {

/// Sums up the memory of all processes of a recording at each moment: proportional memory, or resident memory where the
/// proportional is unknown.
class RecordedSums {
 public:
  void add(std::int64_t tick, std::optional<std::uint64_t> proportional, std::optional<std::uint64_t> resident);

  /// Returns the sums in the form of cmt.kinds/1. `ticks` has the number and time of each moment.
  Json series(const std::vector<std::pair<std::int64_t, std::uint64_t>>& ticks) const;

 private:
  std::map<std::int64_t, std::uint64_t> sums_;
  bool has_proportional_ = false, has_resident_ = false;
};

/// Adds up the parts of all processes of a recording at each look (cmtwatch record --explain).
class RecordedParts {
 public:
  /// Bytes below 0 are not drawn: give 0 for them.
  void add(std::int64_t tick, const std::string& name, std::uint64_t bytes);

  /// Adds `parts_time_ns` and `parts` of cmt.kinds/1 to a series: the largest parts, and the rest as "others".
  void add_to(Json& series, const std::vector<std::pair<std::int64_t, std::uint64_t>>& ticks) const;

 private:
  std::map<std::string, std::map<std::int64_t, std::uint64_t>> bytes_;  // by part and tick
  std::set<std::int64_t> looks_;
};

/// Whether a file is a SQLite database.
bool is_database(const std::string& path);

/// Reads the database of cmtwatch. It may come from anyone: views and triggers are off, and a statement ends if it
/// works longer than a file of that size warrants. Throws FormatError.
Json read_recording(const std::string& path);

/// Whether one of the processes of such a database has this id. Throws FormatError.
bool has_process(const std::string& path, std::uint64_t pid);

}  // namespace cmt::report
