// cmtwatch export: writes a whole recording as one JSON document while it is read, in the memory of some rows.
//
// Rows are arrays of numbers whose columns are named once, at the top. As in the recording itself, mappings and disks
// have a row when they changed, everything else a row for each moment.

#include <unistd.h>

#include <optional>
#include <string>
#include <utility>

#include "cmtwatch/commands/subcommands.h"
#include "cmtwatch/recording/recording.h"
#include "cmtwatch/report/report_output.h"
#include "toolkit/database/database.h"
#include "toolkit/output/json.h"
#include "toolkit/output/numbers.h"

namespace cmt::watch {

namespace {

class Export {
 public:
  Export(database::Database& database, Destination& destination) : database_(database), destination_(destination) {}

  void write() {
    database_.execute("begin");  // so that a recording that is being written is read in one state
    json_.begin_object();
    json_.field("schema", "cmt.recording/1");
    write_about();
    write_columns();
    write_rows("ticks", ticks);
    write_rows("system", system);
    write_groups();
    write_disks();
    write_processes();
    json_.end_object();
    destination_.write(json_.take());
  }

 private:
  /// The rows of a table that belong to one `owner`, in the order of time.
  static std::string select(const std::string& figures, const std::string& table, const std::string& owner) {
    return "select tick_id, " + figures + " from " + table + " where " + owner + " = ? order by tick_id";
  }

  const std::string ticks = "select * from tick order by id";
  const std::string system = "select * from system_sample order by tick_id";
  const std::string disk_samples = select(sql_names<process::Disk>(), "disk_sample", "name_id");
  const std::string samples = select(sql_names<ProcessSample>(), "process_sample", "process_id");
  const std::string groups = select(sql_names<GroupReading>(), "group_sample", "group_id");
  const std::string counters = select(sql_names<CounterRow>(), "counter_sample", "process_id");
  const std::string changes = select(sql_names<process::Mapping>(), "mapping_change", "mapping_id");

  const std::string parts =
      "select tick_id, bytes, live_bytes from part_sample where process_id = ? and part_id = ? order by tick_id";

  const std::string kept = select("age_ns", "kept_sample", "process_id");

  void write_about() {
    json_.begin_object("about");
    database::Statement about(database_, "select key, value from about order by key");
    while (about.step()) write_field(about.text(0), about, 1);
    json_.end_object();
  }

  void write_field(const std::string& key, const database::Statement& row, int column) {
    row.is_number(column) ? json_.field(key, row.number(column)) : json_.field(key, row.text(column));
  }

  void write_columns() {
    json_.begin_object("columns");
    const std::pair<const char*, const std::string&> rows[] = {
        {"ticks", ticks},     {"system", system}, {"disks", disk_samples}, {"samples", samples}, {"counters", counters},
        {"changes", changes}, {"groups", groups}, {"parts", parts},        {"kept", kept}};
    for (const auto& [key, query] : rows) {
      if (query == groups && !has_groups(database_)) continue;
      if (query == parts && !has_parts(database_)) continue;
      if (query == kept && !has_kept(database_)) continue;
      json_.begin_array(key);
      const database::Statement statement(database_, query);
      for (int column = 0; column < statement.columns(); ++column) json_.value(statement.column_name(column));
      json_.end_array();
    }
    json_.end_object();
  }

  /// Recordings of cmt 0.1.0 have no groups.
  void write_groups() {
    if (!has_groups(database_)) return;
    json_.begin_array("groups");
    database::Statement paths(database_, "select id, path, version from control_group order by path");
    database::Statement rows(database_, groups);
    while (paths.step()) {
      json_.begin_object();
      json_.field("path", paths.text(1));
      json_.field("version", paths.number(2));
      write_rows("samples", rows, paths.number(0));
      json_.end_object();
    }
    json_.end_array();
  }

  void write_disks() {
    json_.begin_array("disks");
    database::Statement disks(database_,
                              "select id, text from name where id in (select name_id from disk_sample) order by text");
    database::Statement rows(database_, disk_samples);
    while (disks.step()) {
      json_.begin_object();
      json_.field("name", disks.text(1));
      write_rows("samples", rows, disks.number(0));
      json_.end_object();
    }
    json_.end_array();
  }

  void write_processes() {
    json_.begin_array("processes");
    database::Statement processes(
        database_,
        "select process.id, pid, start_ticks, parent_pid, text as name, coalesce(command, '') as "
        "command, first_tick, last_tick "
        "from process join name on name.id = name_id order by process.id");
    database::Statement sample_rows(database_, samples), counter_rows(database_, counters);
    while (processes.step()) {
      json_.begin_object();
      for (int column = 1; column < processes.columns(); ++column)
        write_field(processes.column_name(column), processes, column);
      write_rows("samples", sample_rows, processes.number(0));
      write_rows("counters", counter_rows, processes.number(0));
      write_kept(processes.number(0));
      write_parts(processes.number(0));
      write_mappings(processes.number(0));
      json_.end_object();
    }
    json_.end_array();
  }

  /// Recordings of cmt 0.1.0 have mappings that were read at each moment.
  void write_kept(std::int64_t process) {
    if (!has_kept(database_)) return;
    database::Statement rows(database_, kept);
    write_rows("kept", rows, process);
  }

  /// Recordings of cmt 0.1.0 have no parts.
  void write_parts(std::int64_t process) {
    if (!has_parts(database_)) return;
    json_.begin_array("parts");
    database::Statement kinds(
        database_,
        "select id, part, name, is_likely from part where exists (select 1 from part_sample where "
        "process_id = ? and part_id = part.id) order by id");
    database::Statement rows(database_, parts);
    kinds.bind(process);
    while (kinds.step()) {
      json_.begin_object();
      json_.field("part", kinds.text(1));
      json_.field("name", kinds.text(2));
      json_.field("is_likely", kinds.value<bool>(3));
      write_rows("samples", rows.bind(process), kinds.number(0));
      json_.end_object();
    }
    json_.end_array();
  }

  void write_mappings(std::int64_t process) {
    json_.begin_array("mappings");
    database::Statement mappings(database_,
                                 std::string("select mapping.id, ") + mapping_columns +
                                     " from mapping "
                                     "left join name on name.id = name_id where process_id = ? order by mapping.id");
    database::Statement rows(database_, changes);
    mappings.bind(process);
    while (mappings.step()) {
      json_.begin_object();
      json_.field("begin", output::hex(static_cast<std::uint64_t>(mappings.number(1))));
      json_.field("end", output::hex(static_cast<std::uint64_t>(mappings.number(2))));
      json_.field("permissions", mappings.text(3));
      const std::string name = mappings.text(4);
      json_.field("name", name.empty() ? std::nullopt : std::optional(name));
      json_.field("zero_data_bytes", mappings.number_or_null(5));
      write_rows("changes", rows, mappings.number(0));
      json_.end_object();
    }
    json_.end_array();
  }

  void write_rows(const char* key, const std::string& query) {
    database::Statement rows(database_, query);
    write_rows(key, rows);
  }

  void write_rows(const char* key, database::Statement& rows, std::int64_t owner) { write_rows(key, rows.bind(owner)); }

  void write_rows(const char* key, database::Statement& rows) {
    json_.begin_array(key);
    while (rows.step()) {
      json_.begin_array();
      for (int column = 0; column < rows.columns(); ++column) json_.value(rows.number_or_null(column));
      json_.end_array();
      drain();
    }
    json_.end_array();
  }

  void drain() {
    constexpr std::size_t bytes_at_once = 1 << 16;
    if (json_.size() >= bytes_at_once) destination_.write(json_.drain());
  }

  database::Database& database_;
  Destination& destination_;
  output::JsonWriter json_;
};

int export_recording(const command::CommandLine& line) {
  const std::string path = parse_recording(line);
  if (!line.has("json")) throw command::UsageError("--json is missing: the form to write");
  database::Database database(path, database::Database::Mode::read);
  check_recording(database, path);
  Destination destination(line.value("output", ""), STDOUT_FILENO, Destination::Names::whole);
  Export(database, destination).write();
  destination.commit();
  return 0;
}

}  // namespace

Subcommand export_subcommand() {
  return {.name = "export",
          .summary = "write all data of a recording as JSON",
          .help = R"(Usage: cmtwatch export [OPTION]... --json FILE

Writes all data of a recording, in the memory of a few rows.

  --json             write JSON
  -o, --output=FILE  write to FILE instead of standard output
)",
          .run = export_recording};
}

}  // namespace cmt::watch
