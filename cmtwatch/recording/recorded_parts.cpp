// Writes the parts of processes into a recording, and reads them.
#include "cmtwatch/recording/recorded_parts.h"

#include <algorithm>
#include <map>
#include <utility>

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

std::optional<PartLook> last_look(database::Database& database, std::int64_t process, std::int64_t tick) {
  if (!has_parts(database)) return std::nullopt;
  // An amount below 0 is read apart, so that both are checked.
  database::Statement select(
      database,
      "select look.begin_ns, moment.begin_ns, part, name, is_likely, max(bytes, 0), max(-bytes, 0), live_bytes "
      "from part_sample join part on part.id = part_id join tick as look on look.id = tick_id "
      "join tick as moment on moment.id = ?2 where process_id = ?1 and tick_id = (select max(tick_id) from part_sample "
      "where process_id = ?1 and tick_id <= ?2) order by bytes desc, part_id");
  select.bind(process).bind(tick);
  std::optional<PartLook> look;
  while (select.step()) {
    if (!look) look = {.begin_ns = select.time_ns(0), .age_ns = select.time_ns(1) - select.time_ns(0)};
    look->parts.push_back(
        {.part = select.text(2),
         .name = select.text(3),
         .is_likely = select.value<bool>(4),
         .bytes = static_cast<std::int64_t>(select.amount(5)) - static_cast<std::int64_t>(select.amount(6)),
         .live_bytes = select.bytes_or_null(7)});
  }
  return look;
}

PartSeries read_part_series(database::Database& database) {
  constexpr std::size_t bands_max = 8;
  if (!has_parts(database)) return {};
  struct SparseBand {
    std::uint64_t most = 0;
    std::vector<std::pair<std::size_t, std::uint64_t>> bytes{};  // by the number of the look
  };
  std::map<std::pair<std::string, std::string>, SparseBand> found;
  PartSeries series;
  std::optional<std::int64_t> last_tick;
  database::Statement select(database,
                             "select tick_id, begin_ns, part, name, sum(max(bytes, 0)) as bytes from part_sample join "
                             "part on part.id = part_id join tick on tick.id = tick_id group by tick_id, part_id "
                             "order by tick_id");
  while (select.step()) {
    if (last_tick != select.number(0)) series.time_ns.push_back(select.time_ns(1));
    last_tick = select.number(0);
    SparseBand& band = found[{select.text(2), select.text(3)}];
    band.bytes.emplace_back(series.time_ns.size() - 1, select.amount(4));
    band.most = std::max(band.most, band.bytes.back().second);
  }
  std::vector<std::pair<std::uint64_t, std::pair<std::string, std::string>>> order;
  for (const auto& [names, band] : found) order.emplace_back(band.most, names);
  std::sort(order.rbegin(), order.rend());
  for (std::size_t i = 0; i < order.size() && order[i].first != 0; ++i) {
    const bool is_named = i + 1 < bands_max || order.size() <= bands_max;
    const auto& [part, name] = order[i].second;
    if (is_named) series.bands.push_back({part, name});
    if (i + 1 == bands_max && !is_named) series.bands.push_back({"others", "others"});
    PartSeries::Band& band = series.bands.back();
    band.bytes.resize(series.time_ns.size());
    for (const auto& [look, bytes] : found[order[i].second].bytes) band.bytes[look] += bytes;
  }
  return series;
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
