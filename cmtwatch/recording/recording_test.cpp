// Rows are read back as they were written, and a file with other tables or impossible numbers is refused.
#include "cmtwatch/recording/recording.h"

#include <doctest/doctest.h>

#include "cmtwatch/recording/moment.h"

using namespace cmt;
using namespace cmt::watch;

TEST_CASE("recording: one description gives columns, names and parameters") {
  CHECK(sql_names<cmt::process::Disk>() == "reads, read_bytes, writes, written_bytes, busy_ms");
  CHECK(sql_parameters<cmt::process::Disk>() == "?, ?, ?, ?, ?");
  CHECK(sql_columns<cmt::process::Disk>().substr(0, 17) == "  , reads integer");
  CHECK(sql_names<CounterRow>() == "instructions, cycles, cache_misses, l1_data_misses, data_tlb_misses");
}

namespace {

/// Makes a recording in memory, changes it, and returns why it is refused.
std::string refusal(const std::string& changes) {
  database::Database database(":memory:", database::Database::Mode::write);
  prepare_recording(database, "x");
  database.execute(changes);
  try {
    check_recording(database, "x");
  } catch (const database::DatabaseError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("recording: a file of other tables than ours is refused") {
  CHECK(refusal("") == "");
  CHECK(refusal("create view of_my_own as select * from tick; create index mine on tick (wall_ns)") == "");
  const std::string refused = "x: not a recording of cmtwatch: ", reason = " is not what version 2 has";
  CHECK(refusal("alter table tick rename to t; create view tick as select * from t") == refused + "tick" + reason);
  CHECK(refusal("drop index mapping_of_process") == refused + "mapping_of_process" + reason);
  CHECK(refusal("alter table name add column more integer generated always as (length(text))") ==
        refused + "name" + reason);
  CHECK(refusal("drop table disk_sample") == refused + "disk_sample" + reason);
}

TEST_CASE("recording: a moment has the programs that ran then") {
  database::Database database(":memory:", database::Database::Mode::write);
  prepare_recording(database, "x");
  RecordingWriter writer(database);
  std::int64_t process = 0;
  for (const char* const name : {"sh", "python", "app"}) {
    writer.begin_tick(writer.tick() * 1000, 0);
    if (process == 0) {
      process::Stat stat;
      stat.pid = 7;
      stat.name = name;
      process = writer.add_process(stat, std::string(name) + " -x");
    } else {
      writer.rename_process(process, name, std::string(name) + " -x");
    }
    writer.write_sample(process, {});
    writer.end_tick(writer.tick() * 1000, 0);
  }
  const auto command_at = [&](std::int64_t tick) { return load_moment(database, tick, {}).processes.at(0).command; };
  CHECK(command_at(1) == "sh -x");
  CHECK(command_at(2) == "python -x");
  CHECK(command_at(3) == "app -x");
  CHECK(load_moment(database, 2, {}).processes.at(0).name == "python");
  check_recording(database, "x");
  writer.forget_before(2);
  CHECK(database.number("select count(*) from earlier_program") == 1);
  CHECK(command_at(2) == "python -x");
  database.execute("drop table earlier_program");
  check_recording(database, "x");
  CHECK(command_at(2) == "app -x");
}

TEST_CASE("recording: numbers that no machine has are refused, and triggers do not run") {
  database::Database database(":memory:", database::Database::Mode::write);
  database.execute(
      "create table t (bytes integer, begin_ns integer); "
      "create trigger more after insert on t begin insert into t values (2, 2); end; "
      "insert into t values (-1, 9000000000000000000), (1 << 53, -1), (5, 6)");
  database::Statement select(database, "select bytes, begin_ns from t");
  REQUIRE(select.step());
  CHECK_THROWS_WITH_AS(select.amount(0), ":memory:: bytes is -1 somewhere, which no machine has",
                       database::DatabaseError);
  CHECK_THROWS_WITH_AS(select.time_ns(1),
                       ":memory:: begin_ns is 9000000000000000000 somewhere, which is no time of a recording",
                       database::DatabaseError);
  REQUIRE(select.step());
  CHECK_THROWS_AS(select.value<std::uint64_t>(0), database::DatabaseError);
  CHECK(select.time_ns(1) == -1);
  REQUIRE(select.step());
  CHECK(select.amount(0) == 5);
  CHECK_FALSE(select.step());
}

TEST_CASE("recording: a statement that reads endlessly is ended") {
  database::Database database(":memory:", database::Database::Mode::read);
  CHECK_THROWS_WITH_AS(
      database.number("with recursive n (i) as (select 1 union all select i + 1 from n) select count(*) from n"),
      ":memory:: takes longer to read than a recording of its size", database::DatabaseError);
  CHECK(database.number("select 7") == 7);
}

TEST_CASE("recording: a row that is written is read back, null included") {
  database::Database database(":memory:", database::Database::Mode::write);
  database.execute("create table sample (tick_id integer\n" + sql_columns<ProcessSample>() + ") strict");
  database::Statement add(database, "insert into sample values (?, " + sql_parameters<ProcessSample>() + ")");
  ProcessSample written;
  written.size_bytes = 4096;
  written.oom_score_adjustment = -1000;
  written.mappings_readable = false;
  bind_fields(add.bind(7), written).run();
  database::Statement select(database, "select tick_id, " + sql_names<ProcessSample>() + " from sample");
  REQUIRE(select.step());
  ProcessSample read;
  read.threads = 3;
  read_fields(select, 1, read);
  CHECK(read.size_bytes == 4096);
  CHECK(read.oom_score_adjustment == -1000);
  CHECK(read.mappings_readable == false);
  CHECK_FALSE(read.threads);
}
