// Writes the parts of processes into a recording, and reads them.
#include "cmtwatch/recording/recorded_parts.h"

namespace cmt::watch {

std::string part_schema(const std::string& create) {
  return "\n" + create + R"( part (
  id integer primary key,
  part text not null,              -- a word for scripts, as in cmt.explain/1
  name text not null,              -- the same for people, or the owner
  is_likely integer not null,      -- 1: the owner is a guess
  unique (part, name)
) strict;
)" + create +
         R"( part_sample (        -- of processes that were looked at
  tick_id integer not null references tick,
  process_id integer not null references process,
  part_id integer not null references part,
  bytes integer not null,          -- resident; negative only for `changed`
  live_bytes integer,              -- of an owner's memory, what is in use; null: not known
  primary key (process_id, tick_id, part_id)
) strict, without rowid;
)";
}

bool has_parts(database::Database& database) {
  return database.number("select count(*) from sqlite_schema where name in ('part', 'part_sample')") != 0;
}

PartWriter::PartWriter(database::Database& database)
    : database_(database),
      add_(database, "insert into part (part, name, is_likely) values (?, ?, ?)"),
      find_(database, "select id from part where part = ? and name = ?"),
      add_sample_(database,
                  "insert into part_sample values (?, ?, ?, ?, ?) on conflict do update set bytes = bytes + "
                  "excluded.bytes, live_bytes = live_bytes + excluded.live_bytes") {}

void PartWriter::write(std::int64_t tick, std::int64_t process, const std::vector<explain::Part>& parts) {
  for (const explain::Part& part : parts) {
    const std::string key = explain::part_key(part), name = explain::part_name(part);
    auto id = find_.bind(key).bind(name).run();
    if (!id) {
      add_.bind(key).bind(name).bind(static_cast<std::int64_t>(part.is_likely)).run();
      id = database_.last_row();
    }
    add_sample_.bind(tick).bind(process).bind(*id).bind(part.bytes).bind(part.live_bytes).run();
  }
}

}  // namespace cmt::watch
