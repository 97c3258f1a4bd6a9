// The SQL of recordings: makes and checks the tables, writes changes, and forgets old moments.
#include "cmtwatch/recording/recording.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace cmt::watch {
namespace {

using process::Mapping;

constexpr std::int64_t application_id = 0x636d7477;  // "cmtw"

std::string schema() {
  return R"(
create table about (key text primary key, value any) strict, without rowid;
create table tick (
  id integer primary key,
  begin_ns integer not null,   -- since the recording began, monotonic
  end_ns integer not null,
  wall_ns integer not null,    -- since 1970
  cost_cpu_ns integer not null
) strict;
create table name (id integer primary key, text text not null unique) strict;
create table process (
  id integer primary key,
  pid integer not null,
  start_ticks integer not null,  -- after the machine's start, about.clock_ticks_per_second a second
  parent_pid integer not null,
  name_id integer not null references name,
  command text,                  -- words with blanks between
  first_tick integer not null references tick,
  last_tick integer not null references tick,
  unique (pid, start_ticks)
) strict;
create table process_sample (
  tick_id integer not null references tick,
  process_id integer not null references process
)" + sql_columns<ProcessSample>() +
         R"(  , primary key (process_id, tick_id)
) strict, without rowid;
create table counter_sample (    -- the processor's counters in user mode, since the process was first recorded
  tick_id integer not null references tick,
  process_id integer not null references process
)" + sql_columns<CounterRow>() +
         R"(  , primary key (process_id, tick_id)
) strict, without rowid;
create table mapping (
  id integer primary key,
  process_id integer not null references process,
  begin_address integer not null,
  end_address integer not null,
  permissions text not null,
  name_id integer references name,     -- null: anonymous
  zero_data_bytes integer              -- the first of them are zero-initialised data of the file before; null: none known
) strict;
create index mapping_of_process on mapping (process_id);
create table mapping_change (
  mapping_id integer not null references mapping,
  tick_id integer not null references tick
)" + sql_columns<Mapping>() +
         R"(  , primary key (mapping_id, tick_id)
) strict, without rowid;
create table system_sample (
  tick_id integer primary key references tick
)" + sql_columns<process::SystemMemory>() +
         R"() strict;
create table disk_sample (       -- since the machine's start; a row is written when one changed
  tick_id integer not null references tick,
  name_id integer not null references name
)" + sql_columns<process::Disk>() +
         R"(  , primary key (name_id, tick_id)
) strict, without rowid;
)";
}

/// The tables that recordings of cmt 0.1.0 lack. `create` is "create table" or "create table if not exists".
std::string group_schema(const std::string& create) {
  return "\n" + create + R"( control_group (
  id integer primary key,
  path text not null unique,       -- as /proc/PID/cgroup names it
  version integer not null         -- of control groups: 1 or 2
) strict;
)" + create +
         R"( group_sample (       -- of the control groups of the processes
  tick_id integer not null references tick,
  group_id integer not null references control_group
)" + sql_columns<GroupReading>() +
         R"(  , primary key (group_id, tick_id)
) strict, without rowid;
)";
}

/// The same for the table of processes whose mappings were not read again.
std::string kept_schema(const std::string& create) {
  return "\n" + create + R"( kept_sample (
  tick_id integer not null references tick,
  process_id integer not null references process,
  age_ns integer not null,         -- from the tick at which the mappings were read last to this one
  primary key (process_id, tick_id)
) strict, without rowid;
)";
}

/// The same for the programs that processes ran before their last one.
std::string program_schema(const std::string& create) {
  return "\n" + create + R"( earlier_program (
  process_id integer not null references process,
  until_tick integer not null,     -- the first at which the process ran the next program
  name text not null,
  command text,
  primary key (process_id, until_tick)
) strict, without rowid;
)";
}

using FigureArray = decltype(KnownMapping::figures);

FigureArray figures_of(const Mapping& mapping) {
  FigureArray figures{};
  std::size_t count = 0;
  const auto append = [&](std::string_view, std::uint64_t value, std::string_view) { figures[count++] = value; };
  describe(append, mapping);
  return figures;
}

bool is_same_range(const KnownMapping& known, const Mapping& mapping) {
  return known.end == mapping.end &&
         std::string_view(known.permissions.data(), known.permissions.size()) == mapping.permissions;
}

/// The statements that forget all before tick ?1, in this order.
std::vector<std::string> forget_statements() {
  return {
      // A mapping or disk whose figures did not change at that tick gets its last row from before as a row of that
      // tick.
      "insert or ignore into mapping_change select mapping_id, ?1, " + sql_names<process::Mapping>() +
          " from (select *, max(tick_id) from mapping_change where tick_id < ?1 group by mapping_id) "
          "where resident_bytes is not null",
      "delete from mapping_change where tick_id < ?1",
      "insert or ignore into disk_sample select ?1, name_id, " + sql_names<process::Disk>() +
          " from (select *, max(tick_id) from disk_sample where tick_id < ?1 group by name_id)",
      "delete from disk_sample where tick_id < ?1",
      "delete from process_sample where tick_id < ?1",
      "delete from counter_sample where tick_id < ?1",
      "delete from system_sample where tick_id < ?1",
      "delete from group_sample where tick_id < ?1",
      "delete from part_sample where tick_id < ?1",
      "delete from kept_sample where tick_id < ?1",
      "delete from earlier_program where until_tick <= ?1",
      "update process set first_tick = ?1 where first_tick < ?1 and last_tick >= ?1",
      "delete from mapping_change where mapping_id in "
      "(select mapping.id from mapping join process on process.id = process_id where last_tick < ?1)",
      "delete from process where last_tick < ?1",
      "delete from tick where id < ?1",
  };
}

/// Deletes mappings and names that no row refers to any more.
constexpr char delete_unreferenced[] =
    "delete from mapping where not exists (select 1 from mapping_change where mapping_id = mapping.id);"
    "delete from name where id not in (select name_id from mapping where name_id is not null "
    "union select name_id from process union select name_id from disk_sample)";

/// A table or index of a file as one text: its sort, its columns, and what holds for them.
std::string shape_of(database::Database& database, const std::string& name) {
  database::Statement select(
      database,
      "select ifnull((select type || wr || strict from pragma_table_list where schema = 'main' and name = ?1), '') || "
      "ifnull((select type || tbl_name from sqlite_schema where name = ?1), '') || "
      "ifnull((select group_concat(name || type || \"notnull\" || pk || hidden) from pragma_table_xinfo(?1)), '') || "
      "ifnull((select group_concat(name) from pragma_index_info(?1)), '')");
  select.bind(name);
  std::string shape;
  while (select.step()) shape = select.text(0);
  return shape;
}

}  // namespace

void add_to_totals(const Mapping& mapping, ProcessSample& sample) {
  sample.mapped_resident_bytes = sample.mapped_resident_bytes.value_or(0) + mapping.resident_bytes;
  sample.proportional_bytes = sample.proportional_bytes.value_or(0) + mapping.proportional_bytes;
  sample.private_bytes = sample.private_bytes.value_or(0) + mapping.private_bytes;
  sample.swapped_bytes = sample.swapped_bytes.value_or(0) + mapping.swapped_bytes;
}

RecordedMapping read_mapping(const database::Statement& statement, int column) {
  return {{.begin = static_cast<std::uint64_t>(statement.number(column)),
           .end = static_cast<std::uint64_t>(statement.number(column + 1)),
           .permissions = statement.text(column + 2),
           .name = statement.text(column + 3)},
          statement.value<std::uint64_t>(column + 4)};
}

void check_recording(database::Database& database, const std::string& path) {
  if (database.number("pragma application_id") != application_id)
    throw database::DatabaseError(path + ": not a recording of cmtwatch");
  const std::int64_t version = database.number("pragma user_version");
  if (version != recording_version)
    throw database::DatabaseError(path + ": a recording of version " + std::to_string(version) +
                                  ", which this cmtwatch does not know");
  // A table may have become a view or have other columns, so that our statements do other work than ours.
  database::Database wanted(":memory:", database::Database::Mode::write);
  wanted.execute(schema());
  if (has_groups(database)) wanted.execute(group_schema("create table"));
  if (has_parts(database)) wanted.execute(part_schema("create table"));
  if (has_kept(database)) wanted.execute(kept_schema("create table"));
  if (has_programs(database)) wanted.execute(program_schema("create table"));
  database::Statement names(wanted, "select name from sqlite_schema where sql is not null");
  while (names.step()) {
    const std::string name = names.text(0);
    if (shape_of(database, name) != shape_of(wanted, name))
      throw database::DatabaseError(path + ": not a recording of cmtwatch: " + name + " is not what version " +
                                    std::to_string(version) + " has");
  }
}

bool has_groups(database::Database& database) {
  return database.number("select count(*) from sqlite_schema where name in ('control_group', 'group_sample')") != 0;
}

bool has_kept(database::Database& database) {
  return database.number("select count(*) from sqlite_schema where name = 'kept_sample'") != 0;
}

bool has_programs(database::Database& database) {
  return database.number("select count(*) from sqlite_schema where name = 'earlier_program'") != 0;
}

std::string group_columns() { return "path, version, " + sql_names<GroupReading>(); }

GroupReading read_group_row(const database::Statement& statement, int column) {
  GroupReading group;
  group.memory.path = statement.text(column);
  group.memory.version = statement.value<unsigned>(column + 1);
  read_fields(statement, column + 2, group);
  return group;
}

void prepare_recording(database::Database& database, const std::string& path) {
  const bool empty = database.number("select count(*) from sqlite_schema") == 0;
  if (!empty) check_recording(database, path);
  if (empty) database.execute("pragma auto_vacuum = incremental; pragma page_size = 4096");
  database.execute(
      "pragma journal_mode = wal; pragma synchronous = normal; pragma cache_size = -4096; "
      "pragma wal_autocheckpoint = 500");
  const auto added = [](const std::string& create) {
    return group_schema(create) + part_schema(create) + kept_schema(create) + program_schema(create);
  };
  if (!empty) return database.execute(added("create table if not exists"));
  database.execute("begin");
  database.execute(schema() + added("create table"));
  database.execute("pragma application_id = " + std::to_string(application_id));
  database.execute("pragma user_version = " + std::to_string(recording_version));
  database.execute("commit");
}

void close_recording(database::Database& database) {
  database.execute("pragma busy_timeout = 500; pragma wal_checkpoint(truncate)");
  database.execute_unless_busy("pragma journal_mode = delete");
}

RecordingWriter::RecordingWriter(database::Database& database)
    : database_(database),
      parts_(database),
      tick_(database.number("select max(id) from tick")),
      add_tick_(database, "insert into tick values (?, ?, ?, ?, 0)"),
      end_tick_(database, "update tick set end_ns = ?, cost_cpu_ns = ? where id = ?"),
      add_name_(database, "insert into name (text) values (?)"),
      find_name_(database, "select id from name where text = ?"),
      add_process_(database,
                   "insert into process (pid, start_ticks, parent_pid, name_id, command, first_tick, last_tick) "
                   "values (?, ?, ?, ?, ?, ?, ?)"),
      find_process_(database, "select id from process where pid = ? and start_ticks = ?"),
      known_mappings_(database,
                      "select id, begin_address, end_address, permissions, name_id, (select text from name where "
                      "name.id = name_id), " +
                          sql_names<Mapping>() +
                          " from mapping join mapping_change on mapping_id = mapping.id "
                          "where process_id = ? and resident_bytes is not null and tick_id = "
                          "(select max(tick_id) from mapping_change where mapping_id = mapping.id)"),
      add_program_(database,
                   "insert or ignore into earlier_program select process.id, ?, text, command from process join name "
                   "on name.id = name_id where process.id = ?"),
      rename_(database, "update process set name_id = ?, command = ? where id = ?"),
      last_tick_(database, "update process set last_tick = ? where id = ?"),
      add_sample_(database, "insert into process_sample values (?, ?, " + sql_parameters<ProcessSample>() + ")"),
      add_counters_(database, "insert into counter_sample values (?, ?, " + sql_parameters<CounterRow>() + ")"),
      add_mapping_(database,
                   "insert into mapping (process_id, begin_address, end_address, permissions, name_id) "
                   "values (?, ?, ?, ?, ?)"),
      add_change_(database, "insert into mapping_change (mapping_id, tick_id, " + sql_names<Mapping>() +
                                ") values (?, ?, " + sql_parameters<Mapping>() + ")"),
      name_mapping_(database, "update mapping set name_id = ? where id = ?"),
      zero_data_(database, "update mapping set zero_data_bytes = ? where id = ?"),
      add_system_(database, "insert into system_sample values (?, " + sql_parameters<process::SystemMemory>() + ")"),
      add_disk_(database, "insert into disk_sample values (?, ?, " + sql_parameters<process::Disk>() + ")"),
      add_group_(database, "insert into control_group (path, version) values (?, ?)"),
      find_group_(database, "select id from control_group where path = ?"),
      add_group_sample_(database, "insert into group_sample values (?, ?, " + sql_parameters<GroupReading>() + ")"),
      add_kept_(database, "insert into kept_sample values (?, ?, ?)") {}

void RecordingWriter::begin_tick(std::int64_t begin_ns, std::int64_t wall_ns) {
  ++tick_;
  database_.execute("begin immediate");
  add_tick_.bind(tick_).bind(begin_ns).bind(begin_ns).bind(wall_ns).run();
}

void RecordingWriter::end_tick(std::int64_t end_ns, std::int64_t cost_ns) {
  end_tick_.bind(end_ns).bind(cost_ns).bind(tick_).run();
  database_.execute("commit");
}

std::int64_t RecordingWriter::add_process(const process::Stat& stat, const std::string& command) {
  if (const auto id = find_process_.bind(stat.pid).bind(stat.start_ticks).run()) return *id;
  add_process_.bind(stat.pid).bind(stat.start_ticks).bind(stat.parent).bind(name_id(stat.name)).bind(command);
  add_process_.bind(tick_).bind(tick_).run();
  return database_.last_row();
}

/// The name of a thread's stack is ours, not one of smaps, so it is not kept as the mapping's name.
KnownMappings RecordingWriter::known_mappings(std::int64_t process) {
  constexpr std::string_view stack = "[stack:";
  KnownMappings mappings;
  known_mappings_.bind(process);
  while (known_mappings_.step()) {
    KnownMapping mapping{.id = known_mappings_.number(0),
                         .begin = static_cast<std::uint64_t>(known_mappings_.number(1)),
                         .end = static_cast<std::uint64_t>(known_mappings_.number(2)),
                         .name_id = known_mappings_.number(4)};
    known_mappings_.text(3).copy(mapping.permissions.data(), mapping.permissions.size());
    const std::string name = known_mappings_.text(5);
    if (name.compare(0, stack.size(), stack) == 0) {
      std::from_chars(name.data() + stack.size(), name.data() + name.size(), mapping.thread);
      mapping.name_id = 0;
    }
    for (std::size_t i = 0; i < mapping.figures.size(); ++i)
      mapping.figures[i] = static_cast<std::uint64_t>(known_mappings_.number(6 + static_cast<int>(i)));
    mappings.push_back(mapping);
  }
  std::sort(mappings.begin(), mappings.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  return mappings;
}

void RecordingWriter::rename_process(std::int64_t process, const std::string& name, const std::string& command) {
  add_program_.bind(tick_).bind(process).run();
  rename_.bind(name_id(name)).bind(command).bind(process).run();
}

void RecordingWriter::write_sample(std::int64_t process, const ProcessSample& sample) {
  bind_fields(add_sample_.bind(tick_).bind(process), sample).run();
  last_tick_.bind(tick_).bind(process).run();
}

void RecordingWriter::write_kept(std::int64_t process, std::int64_t age_ns) {
  add_kept_.bind(tick_).bind(process).bind(age_ns).run();
}

void RecordingWriter::write_counters(std::int64_t process, const process::CounterValues& values) {
  bind_fields(add_counters_.bind(tick_).bind(process), CounterRow{values}).run();
}

std::int64_t RecordingWriter::Mappings::add(const Mapping& mapping) {
  while (old_ != before_.end() && old_->begin < mapping.begin) write_vanished();
  const bool at_same_place = old_ != before_.end() && old_->begin == mapping.begin;
  if (!at_same_place || !is_same_range(*old_, mapping) ||
      old_->name_id != (mapping.name.empty() ? 0 : writer_.name_id(mapping.name))) {
    if (at_same_place) write_vanished();
    known_.push_back(writer_.add_mapping(process_, mapping));
    return known_.back().id;
  }
  known_.push_back(*old_++);
  const auto figures = figures_of(mapping);
  if (known_.back().figures != figures) writer_.change_mapping(known_.back().id, &figures);
  known_.back().figures = figures;
  return 0;
}

KnownMappings RecordingWriter::Mappings::finish() {
  while (old_ != before_.end()) write_vanished();
  return std::move(known_);
}

KnownMapping RecordingWriter::add_mapping(std::int64_t process, const Mapping& mapping) {
  KnownMapping known{.begin = mapping.begin, .end = mapping.end, .figures = figures_of(mapping)};
  mapping.permissions.copy(known.permissions.data(), known.permissions.size());
  if (!mapping.name.empty()) known.name_id = name_id(mapping.name);
  const auto name = known.name_id == 0 ? std::nullopt : std::optional(known.name_id);
  add_mapping_.bind(process).bind(mapping.begin).bind(mapping.end).bind(mapping.permissions).bind(name).run();
  known.id = database_.last_row();
  change_mapping(known.id, &known.figures);
  return known;
}

void RecordingWriter::change_mapping(std::int64_t id, const std::array<std::uint64_t, 8>* figures) {
  add_change_.bind(id).bind(tick_);
  for (std::size_t i = 0; i < KnownMapping().figures.size(); ++i)
    figures ? add_change_.bind((*figures)[i]) : add_change_.bind_null();
  add_change_.run();
}

void RecordingWriter::name_stack(KnownMapping& mapping, int thread) {
  mapping.thread = thread;
  name_mapping_.bind(name_id("[stack:" + std::to_string(thread) + "]")).bind(mapping.id).run();
}

void RecordingWriter::write_zero_data(std::int64_t mapping, std::uint64_t bytes) {
  zero_data_.bind(bytes).bind(mapping).run();
}

std::int64_t RecordingWriter::name_id(const std::string& name) {
  constexpr std::size_t names_max = 20'000;
  if (const auto known = names_.find(name); known != names_.end()) return known->second;
  if (names_.size() == names_max) names_.clear();
  auto id = find_name_.bind(name).run();
  if (!id) {
    add_name_.bind(name).run();
    id = database_.last_row();
  }
  return names_[name] = *id;
}

void RecordingWriter::write_system(const process::SystemMemory& memory) {
  bind_fields(add_system_.bind(tick_), memory).run();
}

/// A disk without any traffic has no row.
void RecordingWriter::write_disks(const std::vector<process::Disk>& disks) {
  for (const process::Disk& disk : disks) {
    process::Disk& before = disks_.try_emplace(disk.name, process::Disk{.name = disk.name}).first->second;
    if (before == disk) continue;
    before = disk;
    bind_fields(add_disk_.bind(tick_).bind(name_id(disk.name)), disk).run();
  }
}

void RecordingWriter::write_group(const GroupReading& group) {
  auto id = find_group_.bind(group.memory.path).run();
  if (!id) {
    add_group_.bind(group.memory.path).bind(static_cast<std::int64_t>(group.memory.version)).run();
    id = database_.last_row();
  }
  bind_fields(add_group_sample_.bind(tick_).bind(*id), group).run();
}

/// Names that are no longer in the recording may not be remembered.
void RecordingWriter::forget_before(std::int64_t tick) {
  database_.execute("begin immediate");
  for (const std::string& text : forget_statements()) database::Statement(database_, text).bind(tick).run();
  database_.execute(delete_unreferenced);
  database_.execute("commit; pragma incremental_vacuum");
  names_.clear();
}

}  // namespace cmt::watch
