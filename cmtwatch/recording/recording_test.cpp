#include "cmtwatch/recording/recording.h"

#include <doctest/doctest.h>

using namespace cmt::watch;

TEST_CASE("recording: one description gives columns, names and parameters") {
  CHECK(sql_names<cmt::process::Disk>() == "reads, read_bytes, writes, written_bytes, busy_ms");
  CHECK(sql_parameters<cmt::process::Disk>() == "?, ?, ?, ?, ?");
  CHECK(sql_columns<cmt::process::Disk>().substr(0, 17) == "  , reads integer");
  CHECK(sql_names<CounterRow>() == "instructions, cycles, cache_misses, l1_data_misses, data_tlb_misses");
}

TEST_CASE("recording: a row that is written is read back, null included") {
  Database database(":memory:", Database::Mode::write);
  database.execute("create table sample (tick_id integer\n" + sql_columns<ProcessSample>() + ") strict");
  Statement add(database, "insert into sample values (?, " + sql_parameters<ProcessSample>() + ")");
  ProcessSample written;
  written.size_bytes = 4096;
  written.oom_score_adjustment = -1000;
  written.mappings_readable = false;
  bind_fields(add.bind(7), written).run();
  Statement select(database, "select tick_id, " + sql_names<ProcessSample>() + " from sample");
  REQUIRE(select.step());
  ProcessSample read;
  read.threads = 3;
  read_fields(select, 1, read);
  CHECK(read.size_bytes == 4096);
  CHECK(read.oom_score_adjustment == -1000);
  CHECK(read.mappings_readable == false);
  CHECK_FALSE(read.threads);
}
