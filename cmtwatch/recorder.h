#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "cmtwatch/database.h"
#include "process/proc_file.h"
#include "process/smaps.h"
#include "process/stat.h"

namespace cmt::watch {

/// Writes moments into a recording: for each process what has changed since the last.
///
///     Recorder recorder(database, "/proc");
///     recorder.begin_tick(now, wall);
///     recorder.record(4711);
///     recorder.end_tick(now, cost);
///
/// Memory: the figures of the mappings that there are, 200 bytes each; none for what has been. Throws DatabaseError; a
/// tick that was not ended is not in the recording.
class Recorder {
 public:
  Recorder(Database& database, std::string root);

  void begin_tick(std::int64_t begin_ns, std::int64_t wall_ns);

  /// A process. False where it is gone. What of it may not be read is null in the recording.
  bool record(int pid);

  /// What meminfo says.
  void record_system();

  /// `cost_ns`: processor time of the tick.
  void end_tick(std::int64_t end_ns, std::int64_t cost_ns);

  /// Takes away what was before `tick`, but for what still holds then.
  void forget_before(std::int64_t tick);

  std::int64_t tick() const { return tick_; }

  /// Of this tick, over all processes recorded.
  std::uint64_t resident_bytes() const { return resident_bytes_; }

 private:
  struct KnownMapping {
    std::int64_t id;
    process::Mapping mapping;
    std::int64_t seen;  ///< the last tick
  };
  struct KnownProcess {
    std::int64_t id;
    std::uint64_t start_ticks;
    process::ProcessFolder folder;
    std::map<std::uint64_t, KnownMapping> mappings;  ///< by first address
  };

  KnownProcess* find(int pid, const process::Stat& stat);
  std::int64_t id_of(int pid, const process::Stat& stat, const process::ProcessFolder& folder);
  std::int64_t name_id(const std::string& name);
  bool record_mappings(KnownProcess& process);
  void record_mapping(KnownProcess& process, process::Mapping&& mapping);
  void write_change(std::int64_t mapping, const process::Mapping* figures);
  void record_sample(KnownProcess& process, const process::Stat& stat, bool mappings_readable);

  Database& database_;
  std::string root_;
  std::string buffer_;
  std::int64_t tick_;
  std::uint64_t resident_bytes_ = 0;
  std::map<int, KnownProcess> processes_;
  std::unordered_map<std::string, std::int64_t> names_;

  Statement add_tick_, end_tick_, add_name_, find_name_, add_process_, find_process_, last_tick_, add_mapping_,
      add_change_, add_sample_, add_system_;
};

}  // namespace cmt::watch
