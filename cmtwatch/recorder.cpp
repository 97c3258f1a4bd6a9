#include "cmtwatch/recorder.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <tuple>
#include <utility>

#include "process/status.h"
#include "process/system.h"

namespace cmt::watch {
namespace {

using process::Mapping;

auto figures_of(const Mapping& mapping) {
  return std::tie(mapping.resident_bytes, mapping.proportional_bytes, mapping.private_bytes, mapping.dirty_bytes,
                  mapping.referenced_bytes, mapping.anonymous_bytes, mapping.huge_page_bytes, mapping.swapped_bytes);
}

bool same_place(const Mapping& a, const Mapping& b) {
  return a.end == b.end && a.permissions == b.permissions && a.name == b.name;
}

/// The text of a file of a process; nothing where it may not be read, or there is none.
std::optional<std::string_view> text_of(const process::ProcessFolder& folder, const char* name, std::string& buffer) {
  try {
    return folder.read(name, buffer);
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

std::optional<std::int64_t> number_in(const process::ProcessFolder& folder, const char* name, std::string& buffer) {
  const auto text = text_of(folder, name, buffer);
  std::int64_t number = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), number).ec != std::errc())
    return std::nullopt;
  return number;
}

/// A command line's words, which zero bytes end, with blanks between.
std::string words_of(std::string_view text) {
  std::string words(text.substr(0, text.find_last_not_of('\0') + 1));
  std::replace(words.begin(), words.end(), '\0', ' ');
  return words;
}

}  // namespace

Recorder::Recorder(Database& database, std::string root)
    : database_(database),
      root_(std::move(root)),
      tick_(database.number("select max(id) from tick")),
      add_tick_(database, "insert into tick values (?, ?, ?, ?, 0)"),
      end_tick_(database, "update tick set end_ns = ?, cost_cpu_ns = ? where id = ?"),
      add_name_(database, "insert into name (text) values (?)"),
      find_name_(database, "select id from name where text = ?"),
      add_process_(database,
                   "insert into process (pid, start_ticks, parent_pid, name_id, command, first_tick, last_tick) "
                   "values (?, ?, ?, ?, ?, ?, ?)"),
      find_process_(database, "select id from process where pid = ? and start_ticks = ?"),
      last_tick_(database, "update process set last_tick = ? where id = ?"),
      add_mapping_(database,
                   "insert into mapping (process_id, begin_address, end_address, permissions, name_id) "
                   "values (?, ?, ?, ?, ?)"),
      add_change_(database, "insert into mapping_change values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
      add_sample_(database, "insert into process_sample values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
      add_system_(database, "insert into system_sample values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)") {}

void Recorder::begin_tick(std::int64_t begin_ns, std::int64_t wall_ns) {
  ++tick_;
  resident_bytes_ = 0;
  database_.execute("begin immediate");
  add_tick_.bind(tick_).bind(begin_ns).bind(begin_ns).bind(wall_ns).run();
}

void Recorder::end_tick(std::int64_t end_ns, std::int64_t cost_ns) {
  end_tick_.bind(end_ns).bind(cost_ns).bind(tick_).run();
  database_.execute("commit");
}

bool Recorder::record(int pid) {
  try {
    const process::Stat stat = process::read_stat(pid, root_);
    KnownProcess* const process = stat.zombie() || stat.kernel_thread ? nullptr : find(pid, stat);
    if (!process) return false;
    record_sample(*process, stat, record_mappings(*process));
    last_tick_.bind(tick_).bind(process->id).run();
    return true;
  } catch (const std::system_error&) {
    processes_.erase(pid);
    return false;
  }
}

Recorder::KnownProcess* Recorder::find(int pid, const process::Stat& stat) {
  const auto known = processes_.find(pid);
  if (known != processes_.end() && known->second.start_ticks == stat.start_ticks) return &known->second;
  if (known != processes_.end()) processes_.erase(known);
  process::ProcessFolder folder(pid, root_);
  const std::int64_t id = id_of(pid, stat, folder);
  return &processes_.emplace(pid, KnownProcess{id, stat.start_ticks, std::move(folder), {}}).first->second;
}

/// A recording that goes on knows some of the processes that still run.
std::int64_t Recorder::id_of(int pid, const process::Stat& stat, const process::ProcessFolder& folder) {
  find_process_.bind(pid).bind(stat.start_ticks);
  if (find_process_.step()) {
    const std::int64_t id = find_process_.number(0);
    while (find_process_.step()) continue;
    // Its mappings are written anew: what this run finds is not compared with what another left.
    Statement end(database_,
                  "insert into mapping_change select id, ?, null, null, null, null, null, null, null, null "
                  "from mapping where process_id = ?");
    end.bind(tick_).bind(id).run();
    return id;
  }
  const auto command = text_of(folder, "cmdline", buffer_);
  const std::string words = words_of(command.value_or(""));
  add_process_.bind(pid).bind(stat.start_ticks).bind(stat.parent).bind(name_id(stat.name));
  add_process_.bind(words).bind(tick_).bind(tick_).run();
  return database_.last_row();
}

std::int64_t Recorder::name_id(const std::string& name) {
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

bool Recorder::record_mappings(KnownProcess& process) {
  const auto text = text_of(process.folder, "smaps", buffer_);
  if (!text) return false;
  for (Mapping& mapping : process::parse_smaps(*text)) record_mapping(process, std::move(mapping));
  for (auto known = process.mappings.begin(); known != process.mappings.end();) {
    if (known->second.seen == tick_) {
      ++known;
      continue;
    }
    write_change(known->second.id, nullptr);
    known = process.mappings.erase(known);
  }
  return true;
}

void Recorder::record_mapping(KnownProcess& process, Mapping&& mapping) {
  auto known = process.mappings.find(mapping.begin);
  if (known != process.mappings.end() && same_place(known->second.mapping, mapping)) {
    known->second.seen = tick_;
    if (figures_of(known->second.mapping) == figures_of(mapping)) return;
    write_change(known->second.id, &mapping);
    known->second.mapping = std::move(mapping);
    return;
  }
  if (known != process.mappings.end()) {
    write_change(known->second.id, nullptr);
    process.mappings.erase(known);
  }
  const auto name = mapping.name.empty() ? std::nullopt : std::optional(name_id(mapping.name));
  add_mapping_.bind(process.id).bind(mapping.begin).bind(mapping.end).bind(mapping.permissions).bind(name).run();
  const std::int64_t id = database_.last_row();
  write_change(id, &mapping);
  const std::uint64_t begin = mapping.begin;
  process.mappings.emplace(begin, KnownMapping{id, std::move(mapping), tick_});
}

void Recorder::write_change(std::int64_t mapping, const Mapping* figures) {
  add_change_.bind(mapping).bind(tick_);
  if (figures) {
    std::apply([this](auto... figure) { (add_change_.bind(figure), ...); }, figures_of(*figures));
  } else {
    for (std::size_t i = 0; i < std::tuple_size_v<decltype(figures_of(Mapping()))>; ++i) add_change_.bind_null();
  }
  add_change_.run();
}

void Recorder::record_sample(KnownProcess& process, const process::Stat& stat, bool mappings_readable) {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const auto statm_text = text_of(process.folder, "statm", buffer_);
  const process::Statm statm = process::parse_statm(statm_text.value_or(""));
  resident_bytes_ += statm.resident_pages * page;
  add_sample_.bind(tick_).bind(process.id);
  for (const std::uint64_t pages : {statm.size_pages, statm.resident_pages, statm.shared_pages}) {
    statm_text ? add_sample_.bind(pages * page) : add_sample_.bind_null();
  }
  const auto io_text = text_of(process.folder, "io", buffer_);
  const process::DiskTraffic traffic = process::parse_io(io_text.value_or(""));
  for (const std::uint64_t bytes : {traffic.read_bytes, traffic.written_bytes}) {
    io_text ? add_sample_.bind(bytes) : add_sample_.bind_null();
  }
  add_sample_.bind(stat.minor_faults).bind(stat.major_faults).bind(stat.user_ticks).bind(stat.system_ticks);
  add_sample_.bind(stat.threads).bind(number_in(process.folder, "oom_score", buffer_));
  add_sample_.bind(number_in(process.folder, "oom_score_adj", buffer_)).bind(mappings_readable ? 1 : 0).run();
}

void Recorder::record_system() {
  const process::SystemMemory memory = process::read_meminfo(root_);
  add_system_.bind(tick_).bind(memory.total).bind(memory.free).bind(memory.available).bind(memory.cached);
  add_system_.bind(memory.buffers).bind(memory.anonymous).bind(memory.shared).bind(memory.slab);
  add_system_.bind(memory.swap_total).bind(memory.swap_free).bind(memory.swap_cached).run();
}

/// The last change before `tick` becomes one of that tick, unless it has one of its own.
void Recorder::forget_before(std::int64_t tick) {
  const std::string at = std::to_string(tick);
  database_.execute(
      "begin immediate;"
      "insert or ignore into mapping_change select mapping_id, " +
      at +
      ", resident_bytes, proportional_bytes, "
      "private_bytes, dirty_bytes, referenced_bytes, anonymous_bytes, huge_page_bytes, swapped_bytes from (select *, "
      "max(tick_id) from mapping_change where tick_id < " +
      at +
      " group by mapping_id) where resident_bytes is not null;"
      "delete from mapping_change where tick_id < " +
      at +
      ";"
      "delete from process_sample where tick_id < " +
      at +
      ";"
      "delete from system_sample where tick_id < " +
      at +
      ";"
      "delete from mapping where not exists (select 1 from mapping_change where mapping_id = mapping.id);"
      "update process set first_tick = " +
      at + " where first_tick < " + at + " and last_tick >= " + at +
      ";"
      "delete from mapping_change where mapping_id in (select id from mapping where process_id in "
      "(select id from process where last_tick < " +
      at +
      "));"
      "delete from mapping where process_id in (select id from process where last_tick < " +
      at +
      ");"
      "delete from process where last_tick < " +
      at +
      ";"
      "delete from tick where id < " +
      at +
      ";"
      "commit; pragma incremental_vacuum");
}

}  // namespace cmt::watch
