#include "cmtwatch/recording/writer.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "cmtwatch/recording/forget.h"

namespace cmt::watch {
namespace {

using process::Mapping;

std::array<std::uint64_t, 8> figures_of(const Mapping& mapping) {
  return {mapping.resident_bytes,   mapping.proportional_bytes, mapping.private_bytes,   mapping.dirty_bytes,
          mapping.referenced_bytes, mapping.anonymous_bytes,    mapping.huge_page_bytes, mapping.swapped_bytes};
}

bool has_permissions(const KnownMapping& known, const std::string& permissions) {
  return permissions.compare(0, permissions.npos, known.permissions.data(), known.permissions.size()) == 0;
}

bool same(const process::Disk& a, const process::Disk& b) {
  return a.reads == b.reads && a.read_bytes == b.read_bytes && a.writes == b.writes &&
         a.written_bytes == b.written_bytes && a.busy_ms == b.busy_ms;
}

/// "(?, ?, ...)" for so many values.
std::string places(int count) {
  std::string text = "(?";
  for (int i = 1; i < count; ++i) text += ", ?";
  return text + ")";
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
                   "values " +
                       places(7)),
      find_process_(database, "select id from process where pid = ? and start_ticks = ?"),
      known_mappings_(database,
                      "select id, begin_address, end_address, permissions, name_id, (select text from name where "
                      "name.id = name_id), resident_bytes, proportional_bytes, private_bytes, dirty_bytes, "
                      "referenced_bytes, anonymous_bytes, huge_page_bytes, swapped_bytes "
                      "from mapping join mapping_change on mapping_id = mapping.id "
                      "where process_id = ? and resident_bytes is not null and tick_id = "
                      "(select max(tick_id) from mapping_change where mapping_id = mapping.id)"),
      rename_(database, "update process set name_id = ?, command = ? where id = ?"),
      last_tick_(database, "update process set last_tick = ? where id = ?"),
      add_sample_(database, "insert into process_sample values " + places(18)),
      add_counters_(database, "insert into counter_sample values " + places(7)),
      add_mapping_(
          database,
          "insert into mapping (process_id, begin_address, end_address, permissions, name_id) values " + places(5)),
      add_change_(database, "insert into mapping_change values " + places(10)),
      name_mapping_(database, "update mapping set name_id = ? where id = ?"),
      add_system_(database, "insert into system_sample values " + places(12)),
      add_disk_(database, "insert into disk_sample values " + places(7)) {}

void RecordingWriter::begin_tick(std::int64_t begin_ns, std::int64_t wall_ns) {
  ++tick_;
  database_.execute("begin immediate");
  add_tick_.bind(tick_).bind(begin_ns).bind(begin_ns).bind(wall_ns).run();
}

void RecordingWriter::end_tick(std::int64_t end_ns, std::int64_t cost_ns) {
  end_tick_.bind(end_ns).bind(cost_ns).bind(tick_).run();
  database_.execute("commit");
}

std::int64_t RecordingWriter::process(const ProcessRow& row) {
  find_process_.bind(row.pid).bind(row.start_ticks);
  std::int64_t id = 0;
  while (find_process_.step()) id = find_process_.number(0);
  if (id != 0) return id;
  add_process_.bind(row.pid).bind(row.start_ticks).bind(row.parent).bind(name_id(row.name)).bind(row.command);
  add_process_.bind(tick_).bind(tick_).run();
  return database_.last_row();
}

/// What a thread's stack was named is no name that smaps has.
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

void RecordingWriter::rename(std::int64_t process, const std::string& name, const std::string& command) {
  rename_.bind(name_id(name)).bind(command).bind(process).run();
}

void RecordingWriter::sample(std::int64_t process, const ProcessSample& sample) {
  add_sample_.bind(tick_).bind(process);
  add_sample_.bind(sample.size_bytes).bind(sample.resident_bytes).bind(sample.resident_file_bytes);
  add_sample_.bind(sample.proportional_bytes).bind(sample.private_bytes).bind(sample.swapped_bytes);
  add_sample_.bind(sample.read_bytes).bind(sample.written_bytes);
  add_sample_.bind(sample.minor_faults).bind(sample.major_faults);
  add_sample_.bind(sample.user_ticks).bind(sample.system_ticks).bind(sample.threads);
  add_sample_.bind(sample.oom_score).bind(sample.oom_score_adjustment).bind(sample.mappings_readable).run();
  last_tick_.bind(tick_).bind(process).run();
}

void RecordingWriter::counters(std::int64_t process, const process::CounterValues& values) {
  add_counters_.bind(tick_).bind(process);
  for (const auto& value : values) add_counters_.bind(value);
  add_counters_.run();
}

void RecordingWriter::Mappings::add(const Mapping& mapping) {
  while (old_ != before_.end() && old_->begin < mapping.begin) end_old();
  const bool at_same_place = old_ != before_.end() && old_->begin == mapping.begin;
  if (!at_same_place) {
    known_.push_back(writer_.add_mapping(process_, mapping));
    return;
  }
  const std::int64_t name = mapping.name.empty() ? 0 : writer_.name_id(mapping.name);
  if (old_->end != mapping.end || old_->name_id != name || !has_permissions(*old_, mapping.permissions)) {
    end_old();
    known_.push_back(writer_.add_mapping(process_, mapping));
    return;
  }
  known_.push_back(*old_++);
  const auto figures = figures_of(mapping);
  if (known_.back().figures == figures) return;
  known_.back().figures = figures;
  writer_.change_mapping(known_.back().id, &figures);
}

KnownMappings RecordingWriter::Mappings::end() {
  while (old_ != before_.end()) end_old();
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
  for (std::size_t i = 0; i < std::tuple_size_v<std::array<std::uint64_t, 8>>; ++i)
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

void RecordingWriter::system(const process::SystemMemory& memory) {
  add_system_.bind(tick_).bind(memory.total).bind(memory.free).bind(memory.available).bind(memory.cached);
  add_system_.bind(memory.buffers).bind(memory.anonymous).bind(memory.shared).bind(memory.slab);
  add_system_.bind(memory.swap_total).bind(memory.swap_free).bind(memory.swap_cached).run();
}

/// One that never did anything has no row.
void RecordingWriter::disks(const std::vector<process::Disk>& disks) {
  for (const process::Disk& disk : disks) {
    process::Disk& before = disks_[disk.name];
    if (same(before, disk)) continue;
    before = disk;
    add_disk_.bind(tick_).bind(name_id(disk.name)).bind(disk.reads).bind(disk.read_bytes);
    add_disk_.bind(disk.writes).bind(disk.written_bytes).bind(disk.busy_ms).run();
  }
}

/// Names that nothing has any more go with the rest, and what was remembered of them.
void RecordingWriter::forget_before(std::int64_t tick) {
  watch::forget_before(database_, tick);
  names_.clear();
}

}  // namespace cmt::watch
