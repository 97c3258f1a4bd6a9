#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "cmtwatch/recording/measures.h"
#include "cmtwatch/recording/writer.h"
#include "cmtwatch/sample/summed.h"
#include "toolkit/process/counters.h"
#include "toolkit/process/proc_file.h"
#include "toolkit/process/stat.h"

namespace cmt::watch {

/// Reads what is to be recorded of processes and of the machine, and writes it.
///
///     Recorder recorder(writer, {}, "/proc", Recorder::OnReuse::end);
///     writer.begin_tick(now, wall);
///     recorder.record(4711);
///     recorder.record_system();
///     writer.end_tick(now, cost);
///
/// Throws DatabaseError.
class Recorder {
 public:
  /// What a pid means whose process has ended, and another has got: nobody, or that one.
  enum class OnReuse { end, go_on };

  /// What came of a process. `lent`: it still runs in its parent's memory, which counts there, and has no sample of its
  /// own. `partly`: its mappings were wanted and may not be read.
  enum class Outcome { gone, lent, partly, wholly };

  Recorder(RecordingWriter& writer, Measures measures, std::string root, OnReuse on_reuse);

  /// A process. What of it may not be read is null in the recording.
  Outcome record(int pid);

  /// The machine. What is not there has no row.
  void record_system();

  /// Those that were not recorded at this tick will not be again.
  void forget_ended();

  /// Of the processes that were recorded since the last call.
  Summed take_sum();

  /// Among all processes so far.
  const CountersMissing& counters_missing() const { return counters_missing_; }

 private:
  struct KnownProcess {
    std::int64_t id = 0;
    std::uint64_t start_ticks = 0;
    std::string name;
    std::int64_t last_tick = 0;
    KnownMappings mappings{};
    std::unordered_map<int, std::uint64_t> stacks{};  ///< where the mapping begins that is a thread's stack
    std::vector<process::Counters> counters{};        ///< of the threads that there were at first
  };

  bool is_lent(const process::Stat& stat) const;
  Outcome record(const process::ProcessFolder& folder, const process::Stat& stat, KnownProcess& process);
  KnownProcess* find(const process::ProcessFolder& folder, const process::Stat& stat);
  KnownProcess& add(const process::ProcessFolder& folder, const process::Stat& stat);
  void open_counters(KnownProcess& process, int pid);
  Outcome record_mappings(const process::ProcessFolder& folder, int pid, KnownProcess& process, ProcessSample& sample);
  void find_stacks(const process::ProcessFolder& folder, int pid, KnownProcess& process);
  void record_counters(const KnownProcess& process);

  RecordingWriter& writer_;
  Measures measures_;
  std::string root_;
  OnReuse on_reuse_;
  std::string buffer_;
  Summed sum_;
  CountersMissing counters_missing_;
  std::map<int, KnownProcess> processes_;
};

}  // namespace cmt::watch
