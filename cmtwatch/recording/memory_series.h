/// Reads the memory of a run over time from any file that cmtwatch compare takes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cmt::watch {

/// The memory of a run over time, from any of several tools.
struct MemorySeries {
  std::string name;
  std::string metric;                 ///< "pss", "rss", "pss or rss"…; "" where the file has none
  std::vector<std::int64_t> time_ns;  ///< rising, since the run's start
  std::vector<std::uint64_t> bytes;
  bool peak_missed = false;  ///< samples are known to have missed the peak

  /// The index of the largest; 0 if there is none.
  std::size_t peak_index() const;
};

/// Reads a series from a file of one of the kinds below. Processes are added up by MemorySum. Throws FormatError for
/// other files, DatabaseError and std::system_error.
///
/// - a recording
/// - JSON of schema cmt.watch/1, or cmt.recording/1 (an exported recording)
/// - LL-Tracket's JSON: pairs of milliseconds and MiB, newest first
MemorySeries read_series(const std::string& path);

/// From JSON text; `path` is for messages.
MemorySeries parse_series(std::string_view json, const std::string& path);

}  // namespace cmt::watch
