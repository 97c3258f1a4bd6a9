/// A recording is an SQLite file (application id "cmtw", user_version 2) with these tables:
///
///     `about`            Key, value: when the recording began, by which clock, how often it samples, what it measures.
///     `tick`             A moment: when it began and ended, on the monotonic clock since the start and on the wall
///                        clock, and what it cost.
///     `name`             Every name once: of mappings, processes and disks.
///     `process`          A row for each pid and start time; first and last tick.
///     `process_sample`   A row for each process and tick: figures of statm, io and stat, and the sums of its mappings.
///     `counter_sample`   A row for each process and tick: the processor's counters.
///     `mapping`          A range of a process's address space, with its permissions and name.
///     `mapping_change`   A mapping's figures from this tick on. A row is written when they change, so that an idle
///                        mapping costs nothing. All are null from the tick on at which the mapping is gone.
///     `system_sample`    A row for each tick: figures of meminfo.
///     `disk_sample`      The traffic of a disk, a row when that changed.
///     `control_group`    The path of a control group, and its version.
///     `group_sample`     A row for each control group of the processes and tick: what is charged to it.
///     `part`, `part_sample`  The parts of processes' memory (recorded_parts.h).
///     `kept_sample`      A row for each process and tick whose mappings were not read: those of an earlier tick count.
///     `earlier_program`  The name and command of a process up to the tick at which it ran another program.
///
/// Recordings of cmt 0.1.0 lack the last six tables.
///
/// A tick is one transaction, so that a recorder that is killed leaves whole ticks. While it records, SQLite keeps its
/// write-ahead log in two files beside the recording; they are removed at the end.
///
/// The rows that hold figures are described once, below: create table, insert, select and export follow from that.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cmtwatch/recording/recorded_parts.h"
#include "cmtwatch/sample/group.h"
#include "toolkit/database/database.h"
#include "toolkit/output/fields.h"
#include "toolkit/process/counters.h"
#include "toolkit/process/smaps.h"
#include "toolkit/process/stat.h"
#include "toolkit/process/system.h"

namespace cmt::process {

/// The figures of a mapping in mapping_change.
template <class Visitor, output::DescribedAs<Mapping> Figures>
void describe(Visitor& field, Figures& mapping) {
  field("resident_bytes", mapping.resident_bytes, "in memory; null, as all others: the mapping is gone");
  field("proportional_bytes", mapping.proportional_bytes, "each page divided by the processes that map it");
  field("private_bytes", mapping.private_bytes, "mapped by no other process");
  field("dirty_bytes", mapping.dirty_bytes, "written to since they were read, or of no file");
  field("referenced_bytes", mapping.referenced_bytes, "touched since clear_refs was written last");
  field("anonymous_bytes", mapping.anonymous_bytes, "of no file");
  field("huge_page_bytes", mapping.huge_page_bytes, "in transparent huge pages");
  field("swapped_bytes", mapping.swapped_bytes, "in swap");
}

/// A row of system_sample.
template <class Visitor, output::DescribedAs<SystemMemory> Row>
void describe(Visitor& field, Row& memory) {
  field("total_bytes", memory.total, "as the next ones, of /proc/meminfo");
  field("free_bytes", memory.free, "MemFree");
  field("available_bytes", memory.available, "MemAvailable");
  field("cached_bytes", memory.cached, "Cached");
  field("buffers_bytes", memory.buffers, "Buffers");
  field("anonymous_bytes", memory.anonymous, "AnonPages");
  field("shared_bytes", memory.shared, "Shmem");
  field("slab_bytes", memory.slab, "Slab");
  field("swap_total_bytes", memory.swap_total, "SwapTotal");
  field("swap_free_bytes", memory.swap_free, "SwapFree");
  field("swap_cached_bytes", memory.swap_cached, "SwapCached");
}

/// A row of disk_sample: since the machine's start.
template <class Visitor, output::DescribedAs<Disk> Row>
void describe(Visitor& field, Row& disk) {
  field("reads", disk.reads, "requests");
  field("read_bytes", disk.read_bytes, "by them");
  field("writes", disk.writes, "requests");
  field("written_bytes", disk.written_bytes, "by them");
  field("busy_ms", disk.busy_ms, "with a request under way");
}

}  // namespace cmt::process

namespace cmt::watch {

constexpr int recording_version = 2;

/// Throws DatabaseError if the file is not a recording, or has an unknown version. `path` is for the message.
void check_recording(database::Database& database, const std::string& path);

/// Whether a recording that was checked has control groups.
bool has_groups(database::Database& database);
/// Whether it has the table of processes whose mappings were not read again.
bool has_kept(database::Database& database);
/// Whether it has the table of the programs that processes ran before their last one.
bool has_programs(database::Database& database);

/// Reads path, version and figures of a group from the columns that group_columns() names, from `column` on.
std::string group_columns();
GroupReading read_group_row(const database::Statement& statement, int column);

/// Makes the tables in an empty file, or checks a recording that is continued, and prepares it for writing. Throws
/// DatabaseError.
void prepare_recording(database::Database& database, const std::string& path);

/// Moves the write-ahead log into the file. If another process reads the recording, an empty log file remains.
void close_recording(database::Database& database);

/// A row of process_sample. A figure that was not measured is null.
struct ProcessSample {
  using Figure = std::optional<std::uint64_t>;
  Figure size_bytes{}, resident_bytes{}, resident_file_bytes{}, resident_bytes_mark{};
  Figure mapped_resident_bytes{}, proportional_bytes{}, private_bytes{}, swapped_bytes{};
  process::Traffic traffic{};
  Figure minor_faults{}, major_faults{}, user_ticks{}, system_ticks{}, threads{};
  std::optional<std::int64_t> oom_score{}, oom_score_adjustment{};
  std::optional<bool> mappings_readable{};
};

template <class Visitor, output::DescribedAs<ProcessSample> Row>
void describe(Visitor& field, Row& row) {
  field("size_bytes", row.size_bytes, "address space");
  field("resident_bytes", row.resident_bytes, "by statm");
  field("resident_file_bytes", row.resident_file_bytes, "files and shared memory");
  field("resident_bytes_mark", row.resident_bytes_mark, "the kernel's VmHWM; null: not recorded");
  field("mapped_resident_bytes", row.mapped_resident_bytes, "of all mappings together, like the next three");
  field("proportional_bytes", row.proportional_bytes, "each page divided by the processes that map it");
  field("private_bytes", row.private_bytes, "mapped by no other process");
  field("swapped_bytes", row.swapped_bytes, "in swap");
  field("read_bytes", row.traffic.read_bytes, "from disks, since its start; null: may not be read");
  field("written_bytes", row.traffic.written_bytes, "to disks");
  field("read_call_bytes", row.traffic.read_call_bytes, "by system calls, from disks or not, since its start");
  field("written_call_bytes", row.traffic.written_call_bytes, "the same written");
  field("minor_faults", row.minor_faults, "page faults since its start that read nothing");
  field("major_faults", row.major_faults, "page faults since its start that read from a disk");
  field("user_ticks", row.user_ticks, "processor time, about.clock_ticks_per_second a second");
  field("system_ticks", row.system_ticks, "the same in the kernel");
  field("threads", row.threads, "of the process");
  field("oom_score", row.oom_score, "the kernel ends the process with the highest when memory is short");
  field("oom_score_adjustment", row.oom_score_adjustment, "what was added to it");
  field("mappings_readable", row.mappings_readable, "0: smaps could not be read; 1: it was; null: not to be recorded");
}

/// A row of counter_sample: counts since the process was first recorded, in user mode.
struct CounterRow {
  process::CounterValues values{};
};

template <class Visitor, output::DescribedAs<CounterRow> Row>
void describe(Visitor& field, Row& row) {
  for (std::size_t i = 0; i < row.values.size(); ++i)
    field(process::counter_names[i], row.values[i], "of the processor");
}

/// Texts of SQL for a table whose columns are the fields of T:
///
///     database.execute("create table disk_sample (tick_id integer\n" + sql_columns<Disk>() + ") strict");
///     Statement add(database, "insert into disk_sample values (?, " + sql_parameters<Disk>() + ")");
///     bind_fields(add.bind(tick), disk).run();
///     Statement select(database, "select tick_id, " + sql_names<Disk>() + " from disk_sample");
///     while (select.step()) read_fields(select, 1, disk);
///
/// The texts that `text_of(key, doc)` returns for the fields, with `separator` between them.
template <class T, class TextOf>
std::string sql_fields(const T& row, std::string_view separator, TextOf text_of) {
  std::string text;
  const auto append = [&](std::string_view key, const auto&, std::string_view doc) {
    text.append(text.empty() ? "" : separator).append(text_of(std::string(key), std::string(doc)));
  };
  describe(append, row);
  return text;
}

/// "  , reads integer  -- requests\n…", for create table, after its other columns.
template <class T>
std::string sql_columns(const T& row = {}) {
  return sql_fields(row, "",
                    [](const auto& key, const auto& doc) { return "  , " + key + " integer  -- " + doc + "\n"; });
}

/// "reads, read_bytes, …".
template <class T>
std::string sql_names(const T& row = {}) {
  return sql_fields(row, ", ", [](const auto& key, const auto&) { return key; });
}

/// "?, ?, …".
template <class T>
std::string sql_parameters(const T& row = {}) {
  return sql_fields(row, ", ", [](const auto&, const auto&) { return "?"; });
}

/// Binds the next parameters to a row's fields.
template <class T>
database::Statement& bind_fields(database::Statement& statement, const T& row) {
  const auto bind = [&](std::string_view, const auto& value, std::string_view) { statement.bind(value); };
  describe(bind, row);
  return statement;
}

/// Assigns the columns from `column` on to a row's fields.
template <class T>
void read_fields(const database::Statement& statement, int column, T& row) {
  const auto read = [&]<class Value>(std::string_view, Value& value, std::string_view) {
    value = statement.value<Value>(column++);
  };
  describe(read, row);
}

/// Adds a mapping's figures to the sums of its process.
void add_to_totals(const process::Mapping& mapping, ProcessSample& sample);

/// A mapping as a recording has it.
struct RecordedMapping : process::Mapping {
  std::uint64_t zero_data_bytes = 0;  ///< its first bytes that are data of the file before; 0 if none are known
};

/// The columns of table mapping, joined with name, that read_mapping() wants one after another.
constexpr char mapping_columns[] = "begin_address, end_address, permissions, text, zero_data_bytes";

/// Without its figures.
RecordedMapping read_mapping(const database::Statement& statement, int column);

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

/// Writes ticks into a recording; of mappings and disks only those that have changed since the last tick. `cmtwatch
/// import` is a short example. A tick that was not ended is not in the recording. Memory: 120 bytes for each current
/// mapping, kept by the caller. Throws DatabaseError.
class RecordingWriter {
 public:
  explicit RecordingWriter(database::Database& database);

  void begin_tick(std::int64_t begin_ns, std::int64_t wall_ns);
  /// `cost_ns`: processor time of the tick.
  void end_tick(std::int64_t end_ns, std::int64_t cost_ns);
  /// The tick that was begun last.
  std::int64_t tick() const { return tick_; }

  /// The id of a process that runs at this tick. A process that an earlier run recorded keeps its row.
  std::int64_t add_process(const process::Stat& stat, const std::string& command);
  /// Its mappings as they were written last; empty if the process is new.
  KnownMappings known_mappings(std::int64_t process);
  /// The process has executed another program.
  void rename_process(std::int64_t process, const std::string& name, const std::string& command);
  void write_sample(std::int64_t process, const ProcessSample& sample);
  /// The mappings of a process were read so long before this tick, and not at it.
  void write_kept(std::int64_t process, std::int64_t age_ns);
  void write_counters(std::int64_t process, const process::CounterValues& values);
  void write_parts(std::int64_t process, const std::vector<explain::Part>& parts) {
    parts_.write(tick_, process, parts);
  }

  /// The mappings of a process at this tick, given one after another by rising address. One pass compares them with the
  /// previous ones, which are in the same order, and writes new, changed and vanished ones.
  class Mappings {
   public:
    /// Both outlive it.
    Mappings(RecordingWriter& writer, std::int64_t process, const KnownMappings& before)
        : writer_(writer), process_(process), before_(before), old_(before.begin()) {
      known_.reserve(before.size());
    }

    /// Returns the row's id if the row is new, else 0.
    std::int64_t add(const process::Mapping& mapping);
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

  /// RecordedMapping::zero_data_bytes.
  void write_zero_data(std::int64_t mapping, std::uint64_t bytes);

  void write_system(const process::SystemMemory& memory);
  void write_disks(const std::vector<process::Disk>& disks);
  void write_group(const GroupReading& group);

  /// Deletes the ticks before `tick`, but not figures that are still valid then, and frees the space. If it throws,
  /// nothing is deleted.
  void forget_before(std::int64_t tick);

 private:
  std::int64_t name_id(const std::string& name);
  KnownMapping add_mapping(std::int64_t process, const process::Mapping& mapping);
  void change_mapping(std::int64_t id, const std::array<std::uint64_t, 8>* figures);

  database::Database& database_;
  PartWriter parts_;
  std::int64_t tick_;
  std::unordered_map<std::string, std::int64_t> names_;
  std::unordered_map<std::string, process::Disk> disks_;

  database::Statement add_tick_, end_tick_, add_name_, find_name_, add_process_, find_process_, known_mappings_,
      add_program_, rename_, last_tick_, add_sample_, add_counters_, add_mapping_, add_change_, name_mapping_,
      zero_data_, add_system_, add_disk_, add_group_, find_group_, add_group_sample_, add_kept_;
};

}  // namespace cmt::watch
