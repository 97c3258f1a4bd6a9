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

bool has_permissions(const KnownMapping& known, const std::string& permissions) {
  return permissions.compare(0, permissions.npos, known.permissions.data(), known.permissions.size()) == 0;
}

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

std::int64_t RecordingWriter::add_process(const ProcessRow& row) {
  find_process_.bind(row.pid).bind(row.start_ticks);
  std::int64_t id = 0;
  while (find_process_.step()) id = find_process_.number(0);
  if (id != 0) return id;
  add_process_.bind(row.pid).bind(row.start_ticks).bind(row.parent).bind(name_id(row.name)).bind(row.command);
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
  if (!at_same_place) {
    known_.push_back(writer_.add_mapping(process_, mapping));
    return;
  }
  const std::int64_t name = mapping.name.empty() ? 0 : writer_.name_id(mapping.name);
  if (old_->end != mapping.end || old_->name_id != name || !has_permissions(*old_, mapping.permissions)) {
    write_vanished();
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
  find_name_.bind(name);
  std::int64_t id = 0;
  while (find_name_.step()) id = find_name_.number(0);
  if (id == 0) {
    add_name_.bind(name).run();
    id = database_.last_row();
  }
  return names_[name] = id;
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
  watch::forget_before(database_, tick);
  names_.clear();
}

}  // namespace cmt::watch
