#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cmtwatch/recording/database.h"
#include "cmtwatch/sample/summed.h"
#include "toolkit/process/smaps.h"

namespace cmt::watch {

/// A process as it was at a moment of a recording.
struct RecordedProcess {
  int pid = 0;
  std::string name;
  std::string command;
  std::optional<std::uint64_t> resident_bytes;  ///< by statm
  std::optional<std::uint64_t> size_bytes;
  std::optional<std::uint64_t> proportional_bytes;
  std::optional<std::int64_t> oom_score;
  std::optional<bool> mappings_readable;   ///< none: they were not to be recorded
  std::vector<process::Mapping> mappings;  ///< by rising address
};

/// The machine as it was at a moment.
struct RecordedMachine {
  using Bytes = std::optional<std::uint64_t>;
  Bytes total_bytes, available_bytes, swap_total_bytes, swap_free_bytes;
};

/// A moment of a recording.
struct Moment {
  std::int64_t tick = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t wall_ns = 0;
  std::optional<RecordedMachine> machine{};
  std::vector<RecordedProcess> processes;  ///< the largest first

  Summed sum() const;
};

/// Which processes are meant: one of a pid, or all.
using Whose = std::optional<int>;

/// The tick at which those processes had most memory together, as Moment::sum() counts it; nothing where they are not
/// in the recording.
std::optional<std::int64_t> peak_tick(Database& database, Whose whose);

/// The tick at which the machine had least memory available; nothing where that was not recorded.
std::optional<std::int64_t> worst_tick(Database& database);

/// The last tick that had begun at a time since the recording began, or the first where none had; nothing where there
/// are none.
std::optional<std::int64_t> tick_at(Database& database, std::int64_t time_ns);

Moment load_moment(Database& database, std::int64_t tick, Whose whose);

}  // namespace cmt::watch
