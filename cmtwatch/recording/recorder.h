/// Reads processes and the machine from /proc into a recording.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cmtwatch/recording/recording.h"
#include "cmtwatch/sample/process_set.h"
#include "toolkit/process/counters.h"
#include "toolkit/process/proc_file.h"
#include "toolkit/process/stat.h"

namespace cmt::watch {

/// The figures that are recorded, beside those of statm and stat.
struct Measures {
  bool mappings = true;   ///< smaps: each mapping
  bool stacks = true;     ///< which mappings are stacks of threads, by their stack pointers; needs mappings
  bool totals = false;    ///< smaps_rollup: the sums of all mappings; implied by mappings
  bool io = true;         ///< a process's disk traffic
  bool oom = true;        ///< the scores by which the kernel chooses a process to end when memory is short
  bool system = true;     ///< the machine's memory
  bool disks = true;      ///< the machine's disks
  bool groups = true;     ///< the control groups of the processes
  bool counters = false;  ///< the processor's counters
};

/// For messages.
constexpr char measure_names[] = "mappings, stacks, totals, io, oom, system, disks, groups, counters, statm or all";

/// Parses names separated by commas. "statm" adds nothing, because it is always recorded; "stacks" implies mappings.
/// Returns nullopt if a name is unknown.
std::optional<Measures> parse_measures(std::string_view names);

/// The names, for the recording.
std::string names_of(const Measures& measures);

/// The processes of which some figures are missing or in doubt.
struct FiguresMissing {
  std::string reason{};       ///< of the last such process
  std::size_t processes = 0;  ///< without the figures
  std::size_t asked = 0;      ///< processes that were tried

  /// "Operation not permitted" if no process has any, else "1 of 57 processes: Operation not permitted".
  std::string text() const;
};

/// Reads the figures of processes and of the machine, and writes them into the tick that was begun. Throws
/// DatabaseError.
class Recorder {
 public:
  /// Whether to record another process that has got the pid of one that ended.
  enum class OnReuse { leave_out, record };

  /// `shares_parent_memory`: it is between vfork and execve, so that its memory counts as its parent's. `partly`: its
  /// mappings may not be read.
  enum class Outcome { gone, shares_parent_memory, partly, wholly };

  /// `smaps_every`: the mappings of a process whose statm, page faults and threads are those of the last reading are
  /// read again only at each so many ticks. Processes take turns, so that no tick reads all.
  Recorder(RecordingWriter& writer, Measures measures, const process::GroupFolders& folders, OnReuse on_reuse,
           std::int64_t smaps_every = 1);

  /// Records a process at the tick that began at `now_ns`. Figures that may not be read are null in the recording.
  Outcome record_process(int pid, std::int64_t now_ns = 0);

  /// Records the parts of the resident memory of a process that was recorded at this tick. Costs some 0.3 s for 1 GB of
  /// small blocks. Unless all its threads `are_stopped`, those that run are stopped for a moment.
  void record_parts(int pid, bool are_stopped);

  /// Records the machine. Files that this kernel lacks give no row.
  void record_system();

  /// Records the control groups of the processes that were recorded at this tick.
  void record_groups();

  /// Forgets the processes that were not recorded at this tick.
  void forget_ended();

  /// The sum over the processes that were recorded since the last call.
  MemorySum take_sum();

  /// How often mappings were asked for so far, and how often they were kept from an earlier tick.
  std::uint64_t readings() const { return readings_; }
  std::uint64_t readings_kept() const { return readings_kept_; }

  /// Over all processes so far.
  const FiguresMissing& counters_missing() const { return counters_missing_; }
  const FiguresMissing& parts_missing() const { return parts_missing_; }
  const FiguresMissing& parts_doubtful() const { return parts_doubtful_; }

 private:
  struct KnownProcess {
    std::int64_t id = 0;
    std::uint64_t start_ticks = 0;
    std::string name;
    std::int64_t last_tick = 0;
    KnownMappings mappings{};
    std::optional<ProcessSample> read{};              ///< at the last tick at which its mappings were read
    std::int64_t read_ns = 0;                         ///< that tick's begin
    std::unordered_map<int, std::uint64_t> stacks{};  ///< by thread, where the mapping of its stack begins
    std::vector<process::Counters> counters{};        ///< of the threads that it had at first
    bool parts_asked = false, parts_missing = false, parts_doubtful = false;
  };

  bool shares_parent_memory(const process::Stat& stat) const;
  Outcome record_known(const process::ProcessFolder& folder, const process::Stat& stat, KnownProcess& process);
  KnownProcess* find_process(const process::ProcessFolder& folder, const process::Stat& stat);
  KnownProcess& add_process(const process::ProcessFolder& folder, const process::Stat& stat);
  void open_counters(KnownProcess& process, int pid);
  bool keeps_mappings(const KnownProcess& process, const ProcessSample& sample) const;
  Outcome record_mappings(const process::ProcessFolder& folder, int pid, KnownProcess& process, ProcessSample& sample);
  void find_stacks(const process::ProcessFolder& folder, int pid, KnownProcess& process);
  void record_counters(const KnownProcess& process);

  RecordingWriter& writer_;
  Measures measures_;
  std::string root_;
  OnReuse on_reuse_;
  std::int64_t smaps_every_;
  std::int64_t now_ns_ = 0;
  std::uint64_t readings_ = 0, readings_kept_ = 0;
  std::string buffer_;
  MemorySum sum_;
  GroupSums groups_;
  FiguresMissing counters_missing_, parts_missing_, parts_doubtful_;
  std::map<int, KnownProcess> processes_;
};

}  // namespace cmt::watch
