// Queries one moment of a recording: its processes, mappings and sums, and where the peaks are.
#include "cmtwatch/recording/moment.h"

#include <utility>

#include "libcmt/text/utf8.h"
#include "toolkit/output/numbers.h"

namespace cmt::watch {
namespace {

/// The age of a process's mappings at a tick; 0: they were read at it.
std::int64_t mappings_age_ns(database::Database& database, std::int64_t process, std::int64_t tick) {
  if (!has_kept(database)) return 0;
  database::Statement select(database, "select age_ns from kept_sample where process_id = ? and tick_id = ?");
  select.bind(process).bind(tick);
  return select.step() ? select.time_ns(0) : 0;
}

/// Sets the name and the command of a process that ran another program at a tick than it did last.
void set_program(database::Database& database, std::int64_t id, std::int64_t tick, RecordedProcess& process) {
  if (!has_programs(database)) return;
  database::Statement select(database,
                             "select name, coalesce(command, '') from earlier_program where process_id = ? and "
                             "until_tick > ? order by until_tick limit 1");
  select.bind(id).bind(tick);
  if (!select.step()) return;
  process.name = select.text(0);
  process.command = select.text(1);
}

std::vector<RecordedMapping> load_mappings(database::Database& database, std::int64_t process, std::int64_t tick) {
  database::Statement select(
      database, std::string("select ") + mapping_columns + ", " + sql_names<process::Mapping>() +
                    " from mapping join mapping_change on mapping_id = mapping.id left join name on name.id = name_id "
                    "where process_id = ? and resident_bytes is not null and tick_id = "
                    "(select max(tick_id) from mapping_change where mapping_id = mapping.id and tick_id <= ?) "
                    "order by begin_address");
  select.bind(process).bind(tick);
  std::vector<RecordedMapping> mappings;
  while (select.step()) {
    mappings.push_back(read_mapping(select, 0));
    read_fields(select, 5, static_cast<process::Mapping&>(mappings.back()));
  }
  return mappings;
}

}  // namespace

MemorySum Moment::sum() const {
  MemorySum sum;
  for (const RecordedProcess& process : processes) sum.add(process.proportional_bytes, process.resident_bytes);
  return sum;
}

std::optional<PeakMetric> peak_metric_named(std::string_view name) {
  if (name == "pss") return PeakMetric::pss;
  if (name == "rss") return PeakMetric::rss;
  return name == "statm" ? std::optional(PeakMetric::statm) : std::nullopt;
}

std::optional<std::uint64_t> Moment::sum_by(PeakMetric metric) const {
  std::optional<std::uint64_t> all;
  for (const RecordedProcess& process : processes) {
    const auto& bytes = metric == PeakMetric::rss ? process.mapped_resident_bytes : process.resident_bytes;
    if (bytes) all = all.value_or(0) + *bytes;
  }
  return all;
}

std::optional<std::int64_t> peak_tick(database::Database& database, PidOrAll pid, PeakMetric metric) {
  const std::string bytes = metric == PeakMetric::pss   ? "coalesce(proportional_bytes, resident_bytes)"
                            : metric == PeakMetric::rss ? "mapped_resident_bytes"
                                                        : "resident_bytes";
  database::Statement select(
      database,
      "select tick_id from process_sample join process on process.id = process_id where (pid = ?1 or ?1 is "
      "null) and (" +
          bytes + " is not null or " + (metric == PeakMetric::pss ? "1" : "0") + ") group by tick_id order by sum(" +
          bytes + ") desc, tick_id limit 1");
  return select.bind(pid).run();
}

std::string MissedPeak::text() const {
  return "between moments " + text::to_line(name) + " (" + std::to_string(pid) + ") had up to " +
         output::bytes_text(resident_bytes) + " resident (VmHWM)";
}

std::vector<MissedPeak> missed_peaks(database::Database& database, PidOrAll pid) {
  database::Statement select(
      database,
      "select pid, text, max(resident_bytes_mark) as mark from process_sample join process on process.id = "
      "process_id join name on name.id = name_id where pid = ?1 or ?1 is null group by process_id having "
      "mark > min(resident_bytes_mark) and mark > max(resident_bytes) * 1.02 + 262144 order by mark desc");
  std::vector<MissedPeak> missed;
  select.bind(pid);
  while (select.step()) missed.push_back({select.value<int>(0), select.text(1), select.amount(2)});
  return missed;
}

std::optional<std::int64_t> least_available_tick(database::Database& database) {
  database::Statement select(
      database,
      "select tick_id from system_sample where available_bytes is not null order by available_bytes, "
      "tick_id limit 1");
  return select.run();
}

std::optional<std::int64_t> tick_at(database::Database& database, std::int64_t time_ns, const std::string& clock) {
  database::Statement select(database,
                             "select coalesce(max(id), (select min(id) from tick)) from tick where " + clock + " <= ?");
  return select.bind(time_ns).run();
}

Moment load_moment(database::Database& database, std::int64_t tick, PidOrAll pid) {
  Moment moment{.tick = tick, .processes = {}};
  database::Statement times(database, "select begin_ns, end_ns, wall_ns from tick where id = ?");
  times.bind(tick);
  while (times.step()) {
    moment.begin_ns = times.time_ns(0);
    moment.end_ns = times.time_ns(1);
    moment.wall_ns = times.time_ns(2);
  }
  database::Statement machine(database,
                              "select " + sql_names<RecordedMachine>() + " from system_sample where tick_id = ?");
  machine.bind(tick);
  while (machine.step()) read_fields(machine, 0, moment.machine.emplace());
  if (has_groups(database)) {
    database::Statement groups(database, "select " + group_columns() +
                                             " from group_sample join control_group on control_group.id = group_id "
                                             "where tick_id = ? order by current_bytes desc, path");
    groups.bind(tick);
    while (groups.step()) moment.groups.push_back(read_group_row(groups, 0));
  }
  database::Statement processes(
      database,
      "select process.id, " + sql_names<RecordedProcess>() +
          " from process_sample join process on process.id = process_id join (select id as name_id, text as name from "
          "name) using (name_id) "
          "where tick_id = ?1 and (pid = ?2 or ?2 is null) order by coalesce(proportional_bytes, resident_bytes) desc, "
          "pid");
  processes.bind(tick);
  processes.bind(pid);
  constexpr std::uint64_t memory_max = std::uint64_t{1} << 57;
  std::uint64_t all_bytes = 0;  // each mapping has at most 4 PiB: the sum passes the limit before it overflows
  while (processes.step()) {
    RecordedProcess process;
    read_fields(processes, 1, process);
    set_program(database, processes.number(0), tick, process);
    process.explanation = last_look(database, processes.number(0), tick);
    process.mappings_age_ns = mappings_age_ns(database, processes.number(0), tick);
    if (process.mappings_readable.value_or(false))
      process.mappings = load_mappings(database, processes.number(0), tick);
    for (const process::Mapping& mapping : process.mappings) all_bytes += mapping.resident_bytes;
    if (all_bytes > memory_max)
      throw database::DatabaseError(database.path() +
                                    ": the mappings at one moment have more bytes than there are addresses");
    moment.processes.push_back(std::move(process));
  }
  return moment;
}

}  // namespace cmt::watch
