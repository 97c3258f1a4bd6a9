#include "cmtwatch/recording/writer.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace cmt::watch {
namespace {

using process::Mapping;

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

}  // namespace

RecordingWriter::RecordingWriter(Database& database)
    : database_(database),
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
      add_system_(database, "insert into system_sample values (?, " + sql_parameters<process::SystemMemory>() + ")"),
      add_disk_(database, "insert into disk_sample values (?, ?, " + sql_parameters<process::Disk>() + ")") {}

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
  rename_.bind(name_id(name)).bind(command).bind(process).run();
}

void RecordingWriter::write_sample(std::int64_t process, const ProcessSample& sample) {
  bind_fields(add_sample_.bind(tick_).bind(process), sample).run();
  last_tick_.bind(tick_).bind(process).run();
}

void RecordingWriter::write_counters(std::int64_t process, const process::CounterValues& values) {
  bind_fields(add_counters_.bind(tick_).bind(process), CounterRow{values}).run();
}

void RecordingWriter::Mappings::add(const Mapping& mapping) {
  while (old_ != before_.end() && old_->begin < mapping.begin) write_vanished();
  const bool at_same_place = old_ != before_.end() && old_->begin == mapping.begin;
  if (!at_same_place || !is_same_range(*old_, mapping) ||
      old_->name_id != (mapping.name.empty() ? 0 : writer_.name_id(mapping.name))) {
    if (at_same_place) write_vanished();
    known_.push_back(writer_.add_mapping(process_, mapping));
    return;
  }
  known_.push_back(*old_++);
  const auto figures = figures_of(mapping);
  if (known_.back().figures == figures) return;
  known_.back().figures = figures;
  writer_.change_mapping(known_.back().id, &figures);
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

/// Names that are no longer in the recording may not be remembered.
void RecordingWriter::forget_before(std::int64_t tick) {
  database_.execute("begin immediate");
  for (const std::string& text : forget_statements()) Statement(database_, text).bind(tick).run();
  database_.execute(delete_unreferenced);
  database_.execute("commit; pragma incremental_vacuum");
  names_.clear();
}

}  // namespace cmt::watch
