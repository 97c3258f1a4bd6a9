/// The rows of a recording's tables that hold figures, each described once: create table, insert, select and export
/// follow from the descriptions.
///
///     database.execute("create table disk_sample (tick_id integer\n" + sql_columns<DiskRow>() + ") strict");
///     Statement add(database, "insert into disk_sample values (?, " + sql_parameters<DiskRow>() + ")");
///     bind_fields(add.bind(tick), row).run();
///     Statement select(database, "select tick_id, " + sql_names<DiskRow>() + " from disk_sample");
///     while (select.step()) read_fields(select, 1, row);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include "cmtwatch/recording/database.h"
#include "toolkit/output/fields.h"
#include "toolkit/process/counters.h"
#include "toolkit/process/smaps.h"
#include "toolkit/process/system.h"

namespace cmt::watch {

/// A row of process_sample. A figure that was not measured is null.
struct ProcessSample {
  using Figure = std::optional<std::uint64_t>;
  Figure size_bytes{}, resident_bytes{}, resident_file_bytes{};
  Figure proportional_bytes{}, private_bytes{}, swapped_bytes{};
  Figure read_bytes{}, written_bytes{};
  Figure minor_faults{}, major_faults{}, user_ticks{}, system_ticks{}, threads{};
  std::optional<std::int64_t> oom_score{}, oom_score_adjustment{};
  std::optional<bool> mappings_readable{};
};

template <class Visitor, output::DescribedAs<ProcessSample> Row>
void describe(Visitor& field, Row& row) {
  field("size_bytes", row.size_bytes, "address space");
  field("resident_bytes", row.resident_bytes, "by statm");
  field("resident_file_bytes", row.resident_file_bytes, "files and shared memory");
  field("proportional_bytes", row.proportional_bytes, "of all mappings together, like the next two");
  field("private_bytes", row.private_bytes, "mapped by no other process");
  field("swapped_bytes", row.swapped_bytes, "in swap");
  field("read_bytes", row.read_bytes, "from disks, since its start; null: may not be read");
  field("written_bytes", row.written_bytes, "to disks");
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

/// The figures of a mapping in mapping_change. `M` is process::Mapping, const or not.
template <class M>
struct MappingFigures {
  M& mapping;
};
const process::Mapping empty_mapping;

template <class Visitor, class M>
void describe(Visitor& field, const MappingFigures<M>& figures) {
  field("resident_bytes", figures.mapping.resident_bytes, "in memory; null, as all others: the mapping is gone");
  field("proportional_bytes", figures.mapping.proportional_bytes, "each page divided by the processes that map it");
  field("private_bytes", figures.mapping.private_bytes, "mapped by no other process");
  field("dirty_bytes", figures.mapping.dirty_bytes, "written to since they were read, or of no file");
  field("referenced_bytes", figures.mapping.referenced_bytes, "touched since clear_refs was written last");
  field("anonymous_bytes", figures.mapping.anonymous_bytes, "of no file");
  field("huge_page_bytes", figures.mapping.huge_page_bytes, "in transparent huge pages");
  field("swapped_bytes", figures.mapping.swapped_bytes, "in swap");
}

/// A row of system_sample.
struct SystemRow {
  process::SystemMemory memory{};
};

template <class Visitor, output::DescribedAs<SystemRow> Row>
void describe(Visitor& field, Row& row) {
  field("total_bytes", row.memory.total, "as the next ones, of /proc/meminfo");
  field("free_bytes", row.memory.free, "MemFree");
  field("available_bytes", row.memory.available, "MemAvailable");
  field("cached_bytes", row.memory.cached, "Cached");
  field("buffers_bytes", row.memory.buffers, "Buffers");
  field("anonymous_bytes", row.memory.anonymous, "AnonPages");
  field("shared_bytes", row.memory.shared, "Shmem");
  field("slab_bytes", row.memory.slab, "Slab");
  field("swap_total_bytes", row.memory.swap_total, "SwapTotal");
  field("swap_free_bytes", row.memory.swap_free, "SwapFree");
  field("swap_cached_bytes", row.memory.swap_cached, "SwapCached");
}

/// A row of disk_sample: since the machine's start.
struct DiskRow {
  process::Disk disk{};
};

template <class Visitor, output::DescribedAs<DiskRow> Row>
void describe(Visitor& field, Row& row) {
  field("reads", row.disk.reads, "requests");
  field("read_bytes", row.disk.read_bytes, "by them");
  field("writes", row.disk.writes, "requests");
  field("written_bytes", row.disk.written_bytes, "by them");
  field("busy_ms", row.disk.busy_ms, "with a request under way");
}

namespace detail {

/// Collects a text for each field.
template <class MakeText>
struct SqlText {
  MakeText make;
  std::string text{};

  template <class T>
  void operator()(std::string_view key, T&&, std::string_view doc) {
    text += make(std::string(key), doc);
  }
};

template <class T, class MakeText>
std::string sql_text(const T& row, MakeText make) {
  SqlText<MakeText> fields{make};
  describe(fields, row);
  return fields.text;
}

struct BindFields {
  Statement& statement;

  template <class T>
  void operator()(std::string_view, const T& value, std::string_view) {
    statement.bind(value);
  }
};

struct ReadFields {
  const Statement& statement;
  int column;

  template <class T>
  void operator()(std::string_view, T& value, std::string_view) {
    value = statement.value<T>(column++);
  }
};

}  // namespace detail

/// "  , reads integer  -- requests\n…", for create table, behind its other columns.
template <class T>
std::string sql_columns(const T& row = {}) {
  return detail::sql_text(row, [](const std::string& key, std::string_view doc) {
    return "  , " + key + " integer  -- " + std::string(doc) + "\n";
  });
}

/// "reads, read_bytes, …".
template <class T>
std::string sql_names(const T& row = {}) {
  return detail::sql_text(row, [](const std::string& key, std::string_view) { return ", " + key; }).substr(2);
}

/// "?, ?, …".
template <class T>
std::string sql_parameters(const T& row = {}) {
  return detail::sql_text(row, [](const std::string&, std::string_view) { return ", ?"; }).substr(2);
}

/// Binds the next parameters to a row's fields.
template <class T>
Statement& bind_fields(Statement& statement, const T& row) {
  detail::BindFields fields{statement};
  describe(fields, row);
  return statement;
}

/// Assigns the columns from `first` on to a row's fields.
template <class T>
void read_fields(const Statement& statement, int first, T&& row) {
  detail::ReadFields fields{statement, first};
  describe(fields, row);
}

inline std::string mapping_columns() { return sql_columns(MappingFigures<const process::Mapping>{empty_mapping}); }
inline std::string mapping_names() { return sql_names(MappingFigures<const process::Mapping>{empty_mapping}); }

}  // namespace cmt::watch
