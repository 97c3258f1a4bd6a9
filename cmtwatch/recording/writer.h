#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "cmtwatch/recording/recording.h"
#include "toolkit/process/smaps.h"
#include "toolkit/process/stat.h"
#include "toolkit/process/system.h"

namespace cmt::watch {

/// A mapping as the recording has it.
struct KnownMapping {
  std::int64_t id = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::int64_t name_id = 0;  ///< 0: it has none
  std::array<char, 4> permissions{};
  int thread = 0;                          ///< the thread whose stack it is; 0: it is none
  std::array<std::uint64_t, 8> figures{};  ///< in the order of mapping_change's columns
};

/// A process's mappings, by rising address.
using KnownMappings = std::vector<KnownMapping>;

/// Writes ticks into a recording; of mappings and disks only those that have changed since the last tick:
///
///     RecordingWriter writer(database);
///     writer.begin_tick(now, wall);
///     const std::int64_t process = writer.add_process({.pid = 4711, ...}, "sleep 10");
///     RecordingWriter::Mappings now(writer, process, before);
///     for (const Mapping& mapping : mappings) now.add(mapping);
///     before = now.finish();
///     writer.write_sample(process, {...});
///     writer.end_tick(now, cost);
///
/// A tick that was not ended is not in the recording. Memory: 120 bytes for each current mapping, kept by the caller.
/// Throws DatabaseError.
class RecordingWriter {
 public:
  explicit RecordingWriter(Database& database);

  void begin_tick(std::int64_t begin_ns, std::int64_t wall_ns);
  /// `cost_ns`: processor time of the tick.
  void end_tick(std::int64_t end_ns, std::int64_t cost_ns);
  /// The tick that was begun last.
  std::int64_t tick() const { return tick_; }

  /// The id of a process that runs at this tick. A process that an earlier run recorded keeps its row.
  std::int64_t add_process(const process::Stat& stat, const std::string& command);
  /// Its mappings as they were written last; none where the process is new.
  KnownMappings known_mappings(std::int64_t process);
  /// The process has executed another program.
  void rename_process(std::int64_t process, const std::string& name, const std::string& command);
  void write_sample(std::int64_t process, const ProcessSample& sample);
  void write_counters(std::int64_t process, const process::CounterValues& values);

  /// The mappings of a process at this tick, given one after another by rising address. They are compared with those of
  /// before, which are in the same order, in one pass: new, changed and vanished ones are written.
  class Mappings {
   public:
    /// Both outlive it.
    Mappings(RecordingWriter& writer, std::int64_t process, const KnownMappings& before)
        : writer_(writer), process_(process), before_(before), old_(before.begin()) {
      known_.reserve(before.size());
    }

    void add(const process::Mapping& mapping);
    /// After the last one. Returns the mappings to give as `before` next time.
    KnownMappings finish();

   private:
    void write_vanished() { writer_.change_mapping((old_++)->id, nullptr); }

    RecordingWriter& writer_;
    std::int64_t process_;
    const KnownMappings& before_;
    KnownMappings::const_iterator old_;
    KnownMappings known_;
  };

  /// Names a mapping that is a thread's stack as kernels before 4.5 did: "[stack:TID]".
  void name_stack(KnownMapping& mapping, int thread);

  void write_system(const process::SystemMemory& memory);
  void write_disks(const std::vector<process::Disk>& disks);

  /// Deletes the ticks before `tick`, but not figures that still hold then, and gives the space back. Where it throws,
  /// nothing is deleted.
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
