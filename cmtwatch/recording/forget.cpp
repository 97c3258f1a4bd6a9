#include "cmtwatch/recording/forget.h"

namespace cmt::watch {
namespace {

/// In this order; ?1 is the first tick that stays.
constexpr const char* steps[] = {
    // The last row of before becomes one of that tick, unless it has one of its own: of mappings that are still there,
    "insert or ignore into mapping_change "
    "select mapping_id, ?1, resident_bytes, proportional_bytes, private_bytes, dirty_bytes, referenced_bytes, "
    "anonymous_bytes, huge_page_bytes, swapped_bytes "
    "from (select *, max(tick_id) from mapping_change where tick_id < ?1 group by mapping_id) "
    "where resident_bytes is not null",
    "delete from mapping_change where tick_id < ?1",
    // and of disks.
    "insert or ignore into disk_sample select ?1, name_id, reads, read_bytes, writes, written_bytes, busy_ms "
    "from (select *, max(tick_id) from disk_sample where tick_id < ?1 group by name_id)",
    "delete from disk_sample where tick_id < ?1",
    "delete from process_sample where tick_id < ?1",
    "delete from counter_sample where tick_id < ?1",
    "delete from system_sample where tick_id < ?1",
    "update process set first_tick = ?1 where first_tick < ?1 and last_tick >= ?1",
    "delete from mapping_change where mapping_id in "
    "(select mapping.id from mapping join process on process.id = process_id where last_tick < ?1)",
    "delete from process where last_tick < ?1",
    "delete from tick where id < ?1",
};

/// What nothing belongs to any more.
constexpr char loose_ends[] =
    "delete from mapping where not exists (select 1 from mapping_change where mapping_id = mapping.id);"
    "delete from name where id not in (select name_id from mapping where name_id is not null "
    "union select name_id from process union select name_id from disk_sample)";

}  // namespace

void forget_before(Database& database, std::int64_t tick) {
  database.execute("begin immediate");
  for (const char* const step : steps) {
    Statement statement(database, step);
    statement.bind(tick).run();
  }
  database.execute(loose_ends);
  database.execute("commit; pragma incremental_vacuum");
}

}  // namespace cmt::watch
