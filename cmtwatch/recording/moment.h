/// One moment of a recording, for the subcommands peak, show and play.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cmtwatch/recording/recording.h"
#include "cmtwatch/sample/process_set.h"
#include "toolkit/output/fields.h"

namespace cmt::watch {

/// A process at a moment of a recording.
struct RecordedProcess {
  int pid = 0;
  std::string name;
  std::string command;
  std::optional<std::uint64_t> resident_bytes;  ///< by statm
  std::optional<std::uint64_t> size_bytes;
  std::optional<std::uint64_t> proportional_bytes;
  std::optional<std::uint64_t> mapped_resident_bytes;
  std::optional<std::int64_t> oom_score;
  std::optional<bool> mappings_readable;  ///< nullopt: they were not to be recorded
  std::vector<RecordedMapping> mappings;  ///< by rising address
  std::optional<PartLook> explanation{};  ///< the last one; nullopt: it was not looked at
  std::int64_t mappings_age_ns = 0;       ///< how long before the moment they were read
};

template <class Visitor, output::DescribedAs<RecordedProcess> P>
void describe(Visitor& field, P& process) {
  field("pid", process.pid, "the process");
  field("name", process.name, "the kernel's name for it");
  field("command", process.command, "its words with blanks between");
  field("resident_bytes", process.resident_bytes, "by statm");
  field("size_bytes", process.size_bytes, "address space");
  field("proportional_bytes", process.proportional_bytes, "of all mappings together");
  field("mapped_resident_bytes", process.mapped_resident_bytes, "resident, of all mappings together");
  field("oom_score", process.oom_score, "the kernel ends the process with the highest when memory is short");
  field("mappings_readable", process.mappings_readable, "null: they were not to be recorded");
}

/// The machine at a moment.
struct RecordedMachine {
  using Bytes = std::optional<std::uint64_t>;
  Bytes total_bytes, available_bytes, swap_total_bytes, swap_free_bytes;
};

template <class Visitor, output::DescribedAs<RecordedMachine> M>
void describe(Visitor& field, M& machine) {
  field("total_bytes", machine.total_bytes, "memory");
  field("available_bytes", machine.available_bytes, "without swapping");
  field("swap_total_bytes", machine.swap_total_bytes, "swap");
  field("swap_free_bytes", machine.swap_free_bytes, "unused swap");
}

/// The metric by which the peak of a recording is found.
enum class PeakMetric {
  pss,  ///< proportional sets if they are recorded, else resident ones: MemorySum
  rss,  ///< resident sets by the mappings
  /// Resident sets by statm. The kernel counts them per processor, so they are off by some tens of pages.
  statm
};

constexpr const char* peak_metric_names = "pss, rss or statm";  ///< for messages
std::optional<PeakMetric> peak_metric_named(std::string_view name);

/// A moment of a recording.
struct Moment {
  std::int64_t tick = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t wall_ns = 0;
  std::optional<RecordedMachine> machine{};
  std::vector<GroupReading> groups{};      ///< the largest first
  std::vector<RecordedProcess> processes;  ///< the largest first

  MemorySum sum() const;
  /// The sum by another metric; nullopt if no process has it.
  std::optional<std::uint64_t> sum_by(PeakMetric metric) const;
};

/// The pid of one process, or nullopt for all processes.
using PidOrAll = std::optional<int>;

/// Returns the first tick at which those processes had most memory together. Returns nullopt if the recording has no
/// such process, or none with that metric.
std::optional<std::int64_t> peak_tick(database::Database& database, PidOrAll pid, PeakMetric metric = PeakMetric::pss);

/// A process that peaked between two moments: VmHWM rose during the recording, clearly above the figure of every
/// moment.
struct MissedPeak {
  int pid = 0;
  std::string name;
  std::uint64_t resident_bytes = 0;

  /// "between moments python3 (4711) had up to 63.1 MiB resident (VmHWM)".
  std::string text() const;
};

/// Returns the missed peaks of these processes, the largest first. The kernel's figure is off by some tens of pages.
std::vector<MissedPeak> missed_peaks(database::Database& database, PidOrAll pid);

/// Returns the tick at which the machine had least memory available, or nullopt if that was not recorded.
std::optional<std::int64_t> least_available_tick(database::Database& database);

/// Returns the last tick that began at or before a time, else the first; nullopt if there are none. `clock`:
/// "begin_ns", since the recording began, or "wall_ns".
std::optional<std::int64_t> tick_at(database::Database& database, std::int64_t time_ns, const std::string& clock);

Moment load_moment(database::Database& database, std::int64_t tick, PidOrAll pid);

}  // namespace cmt::watch
