// Reads the files of /proc for a moment and writes what has changed. The hard part is a pid that another process gets.
#include "cmtwatch/recording/recorder.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>
#include <system_error>
#include <tuple>
#include <utility>

#include "cmtwatch/explain/explanation.h"
#include "cmtwatch/recording/zero_data.h"
#include "toolkit/output/numbers.h"
#include "toolkit/process/smaps.h"
#include "toolkit/process/stat.h"
#include "toolkit/process/system.h"

namespace cmt::watch {
namespace {

using process::Mapping;
using process::ProcessFolder;

constexpr std::array<std::pair<std::string_view, bool Measures::*>, 9> measures_by_name{{
    {"mappings", &Measures::mappings},
    {"stacks", &Measures::stacks},
    {"totals", &Measures::totals},
    {"io", &Measures::io},
    {"oom", &Measures::oom},
    {"system", &Measures::system},
    {"disks", &Measures::disks},
    {"groups", &Measures::groups},
    {"counters", &Measures::counters},
}};

bool choose(std::string_view name, Measures& measures) {
  bool known = name == "all" || name == "statm";
  for (const auto& [each, measure] : measures_by_name) {
    if (name != each && name != "all") continue;
    measures.*measure = true;
    known = true;
  }
  return known;
}

/// Reads a file of a process; nullopt if it may not be read, or does not exist.
std::optional<std::string_view> text_of(const ProcessFolder& folder, const char* name, std::string& buffer) {
  try {
    return folder.read(name, buffer);
  } catch (const std::system_error&) {
    return std::nullopt;
  }
}

std::optional<std::int64_t> number_in(const ProcessFolder& folder, const char* name, std::string& buffer) {
  const auto text = text_of(folder, name, buffer);
  std::int64_t number = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), number).ec != std::errc())
    return std::nullopt;
  return number;
}

/// The words of its command line, which end with zero bytes, with blanks between them.
std::string command_of(const ProcessFolder& folder, std::string& buffer) {
  const std::string_view text = text_of(folder, "cmdline", buffer).value_or("");
  std::string words(text.substr(0, text.find_last_not_of('\0') + 1));
  std::replace(words.begin(), words.end(), '\0', ' ');
  return words;
}

void add_statm(const ProcessFolder& folder, ProcessSample& sample, std::string& buffer) {
  const std::uint64_t page = process::page_bytes();
  const auto text = text_of(folder, "statm", buffer);
  if (!text) return;
  const process::Statm statm = process::parse_statm(*text);
  sample.size_bytes = statm.size_pages * page;
  sample.resident_bytes = statm.resident_pages * page;
  sample.resident_file_bytes = statm.shared_pages * page;
}

void add_mark(const ProcessFolder& folder, ProcessSample& sample, std::string& buffer) {
  const auto text = text_of(folder, "status", buffer);
  const std::uint64_t mark = text ? process::parse_status(*text).resident_bytes_peak : 0;
  if (mark != 0) sample.resident_bytes_mark = mark;
}

/// Copies the figures that are sums of the mappings.
void copy_totals(const ProcessSample& from, ProcessSample& to) {
  to.mapped_resident_bytes = from.mapped_resident_bytes;
  to.proportional_bytes = from.proportional_bytes;
  to.private_bytes = from.private_bytes;
  to.swapped_bytes = from.swapped_bytes;
  to.mappings_readable = from.mappings_readable;
}

/// A thread's stack has an unreadable guard mapping below it. The guard distinguishes it from the heap of a language
/// that keeps stacks there.
bool can_be_stack(const KnownMappings& mappings, std::size_t i) {
  constexpr std::array<char, 4> private_data{'r', 'w', '-', 'p'}, unreadable{'-', '-', '-', 'p'};
  return i > 0 && mappings[i].name_id == 0 && mappings[i].permissions == private_data &&
         mappings[i - 1].permissions == unreadable && mappings[i - 1].end == mappings[i].begin;
}

/// Runs `action` and ignores that a file does not exist.
template <class Action>
void if_there(Action action) {
  try {
    action();
  } catch (const std::system_error&) {
  }
}

/// Whether a process has not ended, and no other one has its pid.
bool is_still(int pid, std::uint64_t start_ticks) {
  try {
    const process::Stat stat = process::read_stat(pid);
    return stat.start_ticks == start_ticks && !stat.zombie();
  } catch (const std::system_error&) {
    return false;
  }
}

/// The index of the mapping that holds an address, or mappings.size().
std::size_t mapping_index(const KnownMappings& mappings, std::uint64_t address) {
  const auto above = std::upper_bound(mappings.begin(), mappings.end(), address,
                                      [](std::uint64_t at, const KnownMapping& mapping) { return at < mapping.begin; });
  if (above == mappings.begin() || address >= (above - 1)->end) return mappings.size();
  return static_cast<std::size_t>(above - 1 - mappings.begin());
}

}  // namespace

std::optional<Measures> parse_measures(std::string_view names) {
  Measures measures;
  for (const auto& [name, measure] : measures_by_name) measures.*measure = false;
  for (;;) {
    const auto comma = names.find(',');
    if (!choose(names.substr(0, comma), measures)) return std::nullopt;
    if (comma == names.npos) break;
    names.remove_prefix(comma + 1);
  }
  measures.mappings = measures.mappings || measures.stacks;
  return measures;
}

std::string names_of(const Measures& measures) {
  std::string names = "statm";
  for (const auto& [name, measure] : measures_by_name) {
    if (measures.*measure) names.append(",").append(name);
  }
  return names;
}

std::string FiguresMissing::text() const {
  if (processes == asked) return reason;
  return output::with_commas(processes) + " of " + output::with_commas(asked) + " processes: " + reason;
}

Recorder::Recorder(RecordingWriter& writer, Measures measures, const process::GroupFolders& folders, OnReuse on_reuse,
                   std::int64_t smaps_every)
    : writer_(writer),
      measures_(measures),
      root_(folders.proc),
      on_reuse_(on_reuse),
      smaps_every_(smaps_every),
      groups_(folders) {}

/// All files are read through one open folder, so that they are all of one process, even where another gets its pid.
Recorder::Outcome Recorder::record_process(int pid, std::int64_t now_ns) {
  now_ns_ = now_ns;
  try {
    const ProcessFolder folder(pid, root_);
    process::Stat stat = process::parse_stat(folder.read("stat", buffer_));
    stat.pid = pid;
    if (shares_parent_memory(stat)) return Outcome::shares_parent_memory;
    KnownProcess* const process = stat.zombie() || stat.kernel_thread ? nullptr : find_process(folder, stat);
    if (process) return record_known(folder, stat, *process);
  } catch (const std::system_error& error) {
    if (!means_gone(error) && !means_forbidden(error)) throw;
  }
  processes_.erase(pid);
  return Outcome::gone;
}

/// Whether it is a child between vfork and execve. A process that once had memory of its own keeps it.
bool Recorder::shares_parent_memory(const process::Stat& stat) const {
  return root_ == "/proc" && !processes_.contains(stat.pid) && processes_.contains(stat.parent) &&
         process::share_memory(stat.pid, stat.parent);
}

Recorder::Outcome Recorder::record_known(const ProcessFolder& folder, const process::Stat& stat,
                                         KnownProcess& process) {
  ProcessSample sample{.minor_faults = stat.minor_faults,
                       .major_faults = stat.major_faults,
                       .user_ticks = stat.user_ticks,
                       .system_ticks = stat.system_ticks,
                       .threads = stat.threads};
  add_statm(folder, sample, buffer_);
  if (sample.size_bytes == 0U) throw std::system_error(ESRCH, std::generic_category(), "statm");  // it is about to end
  const bool keeps = keeps_mappings(process, sample);
  const Outcome outcome = keeps ? Outcome::wholly : record_mappings(folder, stat.pid, process, sample);
  if (measures_.mappings || measures_.totals) ++readings_;
  if (keeps) {
    ++readings_kept_;
    copy_totals(*process.read, sample);
    writer_.write_kept(process.id, now_ns_ - process.read_ns);
  } else {
    process.read = outcome == Outcome::wholly ? std::optional(sample) : std::nullopt;
    process.read_ns = now_ns_;
  }
  if (measures_.mappings || measures_.totals) add_mark(folder, sample, buffer_);
  if (measures_.io) sample.traffic = process::parse_io(text_of(folder, "io", buffer_).value_or(""));
  if (measures_.oom) {
    sample.oom_score = number_in(folder, "oom_score", buffer_);
    sample.oom_score_adjustment = number_in(folder, "oom_score_adj", buffer_);
  }
  writer_.write_sample(process.id, sample);
  if (measures_.counters) record_counters(process);
  process.last_tick = writer_.tick();
  sum_.add(sample.proportional_bytes, sample.resident_bytes);
  if (measures_.groups && groups_.is_useful()) {
    groups_.add(text_of(folder, "cgroup", buffer_).value_or(""),
                sample.proportional_bytes.value_or(sample.resident_bytes.value_or(0)));
  }
  return outcome;
}

/// Whether the figures of the last reading count on. The kernel counts a fault where an access makes a process map
/// pages. doc/design/watch.md lists the figures that can change without one.
bool Recorder::keeps_mappings(const KnownProcess& process, const ProcessSample& sample) const {
  if (!process.read || (writer_.tick() + process.id) % smaps_every_ == 0) return false;
  const auto signs = [](const ProcessSample& of) {
    return std::tie(of.size_bytes, of.resident_bytes, of.resident_file_bytes, of.minor_faults, of.major_faults,
                    of.threads);
  };
  return (measures_.mappings || measures_.totals) && sample.resident_bytes && signs(*process.read) == signs(sample);
}

/// Returns null if another process has the pid now, which is not to be recorded.
Recorder::KnownProcess* Recorder::find_process(const ProcessFolder& folder, const process::Stat& stat) {
  const auto known = processes_.find(stat.pid);
  if (known == processes_.end()) return &add_process(folder, stat);
  KnownProcess& process = known->second;
  if (process.start_ticks != stat.start_ticks) {
    processes_.erase(known);
    return on_reuse_ == OnReuse::record ? &add_process(folder, stat) : nullptr;
  }
  if (process.name != stat.name) {  // it has most likely called execve
    process.name = stat.name;
    writer_.rename_process(process.id, stat.name, command_of(folder, buffer_));
  }
  return &process;
}

Recorder::KnownProcess& Recorder::add_process(const ProcessFolder& folder, const process::Stat& stat) {
  KnownProcess process{
      .id = writer_.add_process(stat, command_of(folder, buffer_)), .start_ticks = stat.start_ticks, .name = stat.name};
  if (measures_.mappings) process.mappings = writer_.known_mappings(process.id);
  if (measures_.counters) open_counters(process, stat.pid);
  return processes_.insert_or_assign(stat.pid, std::move(process)).first->second;
}

/// Counts are of the whole process or not at all: where the counters of one thread cannot be opened, all are closed.
void Recorder::open_counters(KnownProcess& process, int pid) {
  ++counters_missing_.asked;
  const auto miss = [this](std::string reason) {
    ++counters_missing_.processes;
    counters_missing_.reason = std::move(reason);
  };
  if (root_ != "/proc") return miss("they count on this machine alone, not on that of " + root_);
  for (const int thread : process::read_threads(pid)) {
    process::Counters counters(thread, process::Counters::Heirs::threads);
    if (counters.error() == ESRCH) continue;
    if (counters.error() != 0) {
      process.counters.clear();
      return miss(counters.missing());
    }
    counters.start();
    process.counters.push_back(std::move(counters));
  }
}

void Recorder::record_counters(const KnownProcess& process) {
  if (process.counters.empty()) return;
  process::CounterValues sums = process.counters.front().read();
  for (std::size_t thread = 1; thread < process.counters.size(); ++thread) {
    const process::CounterValues values = process.counters[thread].read();
    for (std::size_t i = 0; i < sums.size(); ++i)
      sums[i] = sums[i] && values[i] ? std::optional(*sums[i] + *values[i]) : std::nullopt;
  }
  writer_.write_counters(process.id, sums);
}

Recorder::Outcome Recorder::record_mappings(const ProcessFolder& folder, int pid, KnownProcess& process,
                                            ProcessSample& sample) {
  if (!measures_.mappings && !measures_.totals) return Outcome::wholly;
  try {
    RecordingWriter::Mappings now(writer_, process.id, process.mappings);
    Mapping before;
    process::SmapsParser parser([&](const Mapping& mapping) {
      add_to_totals(mapping, sample);
      if (!measures_.mappings) return;
      const std::int64_t added = now.add(mapping);
      const std::uint64_t zero_data = added == 0 ? 0 : zero_data_bytes(before, mapping, pid, root_);
      if (zero_data != 0) writer_.write_zero_data(added, zero_data);
      before = mapping;
    });
    folder.read(measures_.mappings ? "smaps" : "smaps_rollup", buffer_,
                [&](std::string_view piece) { parser.feed(piece); });
    parser.end();
    if (!sample.proportional_bytes) throw std::system_error(ESRCH, std::generic_category(), "smaps");
    if (!measures_.mappings) return Outcome::wholly;
    process.mappings = now.finish();
    sample.mappings_readable = true;
  } catch (const std::system_error& error) {
    const bool no_such_file = error.code().value() == ENOENT && text_of(folder, "stat", buffer_);
    if (means_gone(error) && !no_such_file) throw;
    for (auto* const sum :
         {&sample.mapped_resident_bytes, &sample.proportional_bytes, &sample.private_bytes, &sample.swapped_bytes})
      *sum = std::nullopt;
    if (measures_.mappings) {
      sample.mappings_readable = false;
      process.mappings = writer_.known_mappings(process.id);  // some changes may have been written
    }
    return Outcome::partly;
  }
  if (measures_.stacks) find_stacks(folder, pid, process);
  return Outcome::wholly;
}

void Recorder::record_parts(int pid, bool are_stopped) {
  const auto known = processes_.find(pid);
  if (known == processes_.end()) return;
  KnownProcess& process = known->second;
  std::vector<explain::Part> parts;
  std::string reason, doubt;
  try {
    explain::Explanation look = explain::explain_process(pid, {.are_stopped = are_stopped});
    parts = std::move(look.parts);
    if (!look.doubts.empty()) doubt = look.doubts[0];
  } catch (const std::runtime_error& error) {
    reason = error.what();
    constexpr unsigned end_takes_us = 5000;
    if (!process.parts_missing) ::usleep(end_takes_us);  // a process that ends is without memory before it has ended
    if (explain::has_ended(pid)) return;
  }
  if (!is_still(pid, process.start_ticks)) return;
  const auto count = [](FiguresMissing& missing, bool& is_counted, const std::string& why) {
    if (why.empty() || std::exchange(is_counted, true)) return;
    ++missing.processes;
    missing.reason = why;
  };
  if (!std::exchange(process.parts_asked, true)) parts_doubtful_.asked = ++parts_missing_.asked;
  count(parts_missing_, process.parts_missing, reason);
  count(parts_doubtful_, process.parts_doubtful, doubt);
  writer_.write_parts(process.id, parts);
}

/// Skips threads whose stacks are known.
void Recorder::find_stacks(const ProcessFolder& folder, int pid, KnownProcess& process) {
  std::unordered_map<int, std::uint64_t> stacks;
  for (const int thread : process::read_threads(pid, root_)) {
    if (thread == pid) continue;  // its stack is "[stack]"
    const auto known = process.stacks.find(thread);
    std::size_t index = process.mappings.size();
    if (known != process.stacks.end()) index = mapping_index(process.mappings, known->second);
    if (index != process.mappings.size() && process.mappings[index].thread != 0) {
      stacks.insert(*known);
      continue;
    }
    const auto pointer = process::read_stack_pointer(folder, thread, buffer_);
    if (pointer) index = mapping_index(process.mappings, *pointer);
    if (!pointer || index == process.mappings.size()) continue;
    KnownMapping& mapping = process.mappings[index];
    if (mapping.thread == 0 && !can_be_stack(process.mappings, index)) continue;
    if (mapping.thread == 0) writer_.name_stack(mapping, thread);
    stacks[thread] = mapping.begin;
  }
  process.stacks = std::move(stacks);
}

void Recorder::record_system() {
  if (measures_.system) if_there([this] { writer_.write_system(process::read_meminfo(root_)); });
  if (measures_.disks) if_there([this] { writer_.write_disks(process::read_diskstats(root_)); });
}

void Recorder::record_groups() {
  for (const GroupReading& group : groups_.take()) writer_.write_group(group);
}

void Recorder::forget_ended() {
  std::erase_if(processes_, [this](const auto& entry) { return entry.second.last_tick != writer_.tick(); });
}

MemorySum Recorder::take_sum() { return std::exchange(sum_, {}); }

}  // namespace cmt::watch
