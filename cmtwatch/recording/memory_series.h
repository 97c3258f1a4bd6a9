#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cmt::watch {

/// How much memory a run had over time, whoever measured it.
struct MemorySeries {
  std::string name;
  std::string metric;                 ///< "pss", "rss", "pss or rss"…; "" where the file does not say
  std::vector<std::int64_t> time_ns;  ///< rising, since the run's start
  std::vector<std::uint64_t> bytes;

  /// The place of the largest; 0 where there is none.
  std::size_t peak() const;
};

/// From a recording (its processes added up as Summed does), from JSON of schema cmt.watch/1 or cmt.recording/1 (an
/// exported recording: the same), or from LL-Tracket's JSON: pairs of milliseconds and MiB, newest first. Throws
/// FormatError for anything else, DatabaseError and std::system_error.
MemorySeries read_series(const std::string& path);

/// From JSON text; `path` is for messages.
MemorySeries parse_series(std::string_view json, const std::string& path);

}  // namespace cmt::watch
