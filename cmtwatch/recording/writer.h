#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "cmtwatch/recording/database.h"
#include "toolkit/process/counters.h"
#include "toolkit/process/smaps.h"
#include "toolkit/process/system.h"

namespace cmt::watch {

/// A mapping as it was written last.
struct KnownMapping {
  std::int64_t id = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::int64_t name_id = 0;  ///< 0: it has none
  std::array<char, 4> permissions{};
  int thread = 0;                          ///< whose stack it is; 0: nobody's
  std::array<std::uint64_t, 8> figures{};  ///< in the order of mapping_change's columns
};

/// A process's mappings, by rising address.
using KnownMappings = std::vector<KnownMapping>;

/// A process as its row in the recording has it.
struct ProcessRow {
  int pid = 0;
  std::uint64_t start_ticks = 0;
  int parent = 0;
  std::string name;
  std::string command;
};

/// A row of process_sample. What was not measured is nothing.
struct ProcessSample {
  using Figure = std::optional<std::uint64_t>;
  Figure size_bytes{}, resident_bytes{}, resident_file_bytes{};
  Figure proportional_bytes{}, private_bytes{}, swapped_bytes{};
  Figure read_bytes{}, written_bytes{};
  Figure minor_faults{}, major_faults{}, user_ticks{}, system_ticks{}, threads{};
  std::optional<std::int64_t> oom_score{}, oom_score_adjustment{};
  std::optional<bool> mappings_readable{};
};

/// Writes moments into a recording, of mappings and disks only what has changed since the last one:
///
///     RecordingWriter writer(database);
///     writer.begin_tick(now, wall);
///     const std::int64_t process = writer.process({.pid = 4711, ...});
///     RecordingWriter::Mappings now(writer, process, before);
///     for (const Mapping& mapping : mappings) now.add(mapping);
///     before = now.end();
///     writer.sample(process, {...});
///     writer.end_tick(now, cost);
///
/// A tick that was not ended is not in the recording. Memory: 120 bytes a mapping that there is, kept by the caller;
/// none for what has been. Throws DatabaseError.
class RecordingWriter {
 public:
  explicit RecordingWriter(Database& database);

  void begin_tick(std::int64_t begin_ns, std::int64_t wall_ns);
  /// `cost_ns`: processor time of the tick.
  void end_tick(std::int64_t end_ns, std::int64_t cost_ns);
  /// The tick that was begun last.
  std::int64_t tick() const { return tick_; }

  /// The id of a process, which becomes one that runs at this tick. One that an earlier run recorded keeps its row.
  std::int64_t process(const ProcessRow& row);
  /// Its mappings as they were written last; none of one that is new.
  KnownMappings known_mappings(std::int64_t process);
  /// It runs another program now.
  void rename(std::int64_t process, const std::string& name, const std::string& command);
  void sample(std::int64_t process, const ProcessSample& sample);
  void counters(std::int64_t process, const process::CounterValues& values);

  /// A process's mappings at this tick, given one after another by rising address, and those of before. Both are in
  /// order: one walk through them finds what is new, has changed or is gone.
  class Mappings {
   public:
    /// Both outlive it.
    Mappings(RecordingWriter& writer, std::int64_t process, const KnownMappings& before)
        : writer_(writer), process_(process), before_(before), old_(before.begin()) {
      known_.reserve(before.size());
    }

    void add(const process::Mapping& mapping);
    /// After the last. What to give as `before` next time.
    KnownMappings end();

   private:
    void end_old() { writer_.change_mapping((old_++)->id, nullptr); }

    RecordingWriter& writer_;
    std::int64_t process_;
    const KnownMappings& before_;
    KnownMappings::const_iterator old_;
    KnownMappings known_;
  };

  /// A mapping that turned out to be a thread's stack is named as kernels before 4.5 named it: "[stack:TID]".
  void name_stack(KnownMapping& mapping, int thread);

  void system(const process::SystemMemory& memory);
  void disks(const std::vector<process::Disk>& disks);

  /// Takes away what was before `tick`, but for what still holds then.
  void forget_before(std::int64_t tick);

 private:
  std::int64_t name_id(const std::string& name);
  KnownMapping add_mapping(std::int64_t process, const process::Mapping& mapping);
  void change_mapping(std::int64_t id, const std::array<std::uint64_t, 8>* figures);

  Database& database_;
  std::int64_t tick_;
  std::unordered_map<std::string, std::int64_t> names_;
  std::unordered_map<std::string, process::Disk> disks_;

  Statement add_tick_, end_tick_, add_name_, find_name_, add_process_, find_process_, known_mappings_, rename_,
      last_tick_, add_sample_, add_counters_, add_mapping_, add_change_, name_mapping_, add_system_, add_disk_;
};

}  // namespace cmt::watch
