#include "cmtwatch/recording/moment.h"

namespace cmt::watch {
namespace {

std::optional<std::int64_t> first_number(Statement& statement) {
  std::optional<std::int64_t> number;
  while (statement.step()) number = statement.number_or_null(0);
  return number;
}

std::vector<process::Mapping> load_mappings(Database& database, std::int64_t process, std::int64_t tick) {
  Statement select(database,
                   "select begin_address, end_address, permissions, text, resident_bytes, proportional_bytes, "
                   "private_bytes, dirty_bytes, referenced_bytes, anonymous_bytes, huge_page_bytes, swapped_bytes "
                   "from mapping join mapping_change on mapping_id = mapping.id left join name on name.id = name_id "
                   "where process_id = ? and resident_bytes is not null and tick_id = "
                   "(select max(tick_id) from mapping_change where mapping_id = mapping.id and tick_id <= ?) "
                   "order by begin_address");
  select.bind(process).bind(tick);
  std::vector<process::Mapping> mappings;
  while (select.step()) {
    const auto number = [&](int column) { return static_cast<std::uint64_t>(select.number(column)); };
    process::Mapping mapping;
    mapping.begin = number(0);
    mapping.end = number(1);
    mapping.permissions = select.text(2);
    mapping.name = select.text(3);
    mapping.resident_bytes = number(4);
    mapping.proportional_bytes = number(5);
    mapping.private_bytes = number(6);
    mapping.dirty_bytes = number(7);
    mapping.referenced_bytes = number(8);
    mapping.anonymous_bytes = number(9);
    mapping.huge_page_bytes = number(10);
    mapping.swapped_bytes = number(11);
    mappings.push_back(std::move(mapping));
  }
  return mappings;
}

std::optional<RecordedMachine> load_machine(Database& database, std::int64_t tick) {
  Statement select(database,
                   "select total_bytes, available_bytes, swap_total_bytes, swap_free_bytes from system_sample "
                   "where tick_id = ?");
  select.bind(tick);
  std::optional<RecordedMachine> machine;
  while (select.step())
    machine = {select.bytes_or_null(0), select.bytes_or_null(1), select.bytes_or_null(2), select.bytes_or_null(3)};
  return machine;
}

}  // namespace

Summed Moment::sum() const {
  Summed sum;
  for (const RecordedProcess& process : processes) sum.add(process.proportional_bytes, process.resident_bytes);
  return sum;
}

std::optional<std::int64_t> peak_tick(Database& database, Whose whose) {
  Statement select(
      database,
      "select tick_id from process_sample join process on process.id = process_id where pid = ?1 or ?1 is "
      "null group by tick_id order by sum(coalesce(proportional_bytes, resident_bytes)) desc, tick_id limit 1");
  whose ? select.bind(*whose) : select.bind_null();
  return first_number(select);
}

std::optional<std::int64_t> worst_tick(Database& database) {
  Statement select(database,
                   "select tick_id from system_sample where available_bytes is not null order by available_bytes, "
                   "tick_id limit 1");
  return first_number(select);
}

std::optional<std::int64_t> tick_at(Database& database, std::int64_t time_ns) {
  Statement select(database, "select coalesce(max(id), (select min(id) from tick)) from tick where begin_ns <= ?");
  select.bind(time_ns);
  return first_number(select);
}

Moment load_moment(Database& database, std::int64_t tick, Whose whose) {
  Moment moment{.tick = tick, .processes = {}};
  Statement times(database, "select begin_ns, end_ns, wall_ns from tick where id = ?");
  times.bind(tick);
  while (times.step()) {
    moment.begin_ns = times.number(0);
    moment.end_ns = times.number(1);
    moment.wall_ns = times.number(2);
  }
  moment.machine = load_machine(database, tick);
  Statement processes(
      database,
      "select process.id, pid, text, command, resident_bytes, size_bytes, proportional_bytes, oom_score, "
      "mappings_readable "
      "from process_sample join process on process.id = process_id join name on name.id = name_id "
      "where tick_id = ?1 and (pid = ?2 or ?2 is null) order by coalesce(proportional_bytes, resident_bytes) desc, "
      "pid");
  processes.bind(tick);
  whose ? processes.bind(*whose) : processes.bind_null();
  while (processes.step()) {
    const auto readable = processes.number_or_null(8);
    const bool has_mappings = readable.value_or(0) != 0;
    moment.processes.push_back({.pid = static_cast<int>(processes.number(1)),
                                .name = processes.text(2),
                                .command = processes.text(3),
                                .resident_bytes = processes.bytes_or_null(4),
                                .size_bytes = processes.bytes_or_null(5),
                                .proportional_bytes = processes.bytes_or_null(6),
                                .oom_score = processes.number_or_null(7),
                                .mappings_readable = readable ? std::optional(has_mappings) : std::nullopt,
                                .mappings = has_mappings ? load_mappings(database, processes.number(0), tick)
                                                         : std::vector<process::Mapping>()});
  }
  return moment;
}

}  // namespace cmt::watch
