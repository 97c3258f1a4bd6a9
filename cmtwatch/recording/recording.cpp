#include "cmtwatch/recording/recording.h"

namespace cmt::watch {
namespace {

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
  name_id integer references name      -- null: anonymous
) strict;
create index mapping_of_process on mapping (process_id);
create table mapping_change (
  mapping_id integer not null references mapping,
  tick_id integer not null references tick
)" + sql_columns<process::Mapping>() +
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

}  // namespace

void check_recording(Database& database, const std::string& path) {
  if (database.number("pragma application_id") != application_id)
    throw DatabaseError(path + ": not a recording of cmtwatch");
  const std::int64_t version = database.number("pragma user_version");
  if (version != recording_version)
    throw DatabaseError(path + ": a recording of version " + std::to_string(version) +
                        ", which this cmtwatch does not know");
}

void prepare_recording(Database& database, const std::string& path) {
  const bool empty = database.number("select count(*) from sqlite_schema") == 0;
  if (!empty) check_recording(database, path);
  if (empty) database.execute("pragma auto_vacuum = incremental; pragma page_size = 4096");
  database.execute(
      "pragma journal_mode = wal; pragma synchronous = normal; pragma cache_size = -4096; "
      "pragma wal_autocheckpoint = 500");
  if (!empty) return;
  database.execute("begin");
  database.execute(schema());
  database.execute("pragma application_id = " + std::to_string(application_id));
  database.execute("pragma user_version = " + std::to_string(recording_version));
  database.execute("commit");
}

void close_recording(Database& database) {
  database.execute("pragma busy_timeout = 500; pragma wal_checkpoint(truncate)");
  database.execute_unless_busy("pragma journal_mode = delete");
}

}  // namespace cmt::watch
