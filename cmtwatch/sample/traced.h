#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cmt::watch {

/// A trace of one process that was watched.
struct InsideTrace {
  std::string path;
  std::string program;
  int pid = 0;
  std::int64_t begin_ns = 0;  ///< since the watch began
  std::uint64_t events = 0;
  std::uint64_t live_bytes_peak = 0;  ///< at any event, not only where a sample is
  bool whole = false;                 ///< false: it breaks off
};

/// What tracing a command amounts to.
struct Traced {
  std::vector<InsideTrace> traces{};          ///< by their begin
  std::uint64_t repairs = 0;                  ///< events that were lost or are in doubt
  std::optional<std::int64_t> cost_cpu_ns{};  ///< processor time of the collectors; none: not known
};

}  // namespace cmt::watch
