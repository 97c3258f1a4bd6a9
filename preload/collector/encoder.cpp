// Carries out the items of the backlog. The hard parts are limits, which have to end the trace near them, and a
// recovery, which has to find files and rings in agreement at any moment.

#include "preload/collector/encoder.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string_view>
#include <utility>

#include "preload/collector/memory_group/memory_watch.h"
#include "preload/collector/run_times.h"
#include "preload/settings_list.h"
#include "preload/text.h"

namespace cmt::collector {
namespace {

constexpr std::uint64_t flush_ns = 1'000'000'000;
constexpr int collector_pause_ms = 5, collector_pauses_max = 2000;
constexpr std::uint64_t first_bytes_per_event = 40, profile_files_usual = 60;
/// With --keep-at: 4 MiB in place of 34, since the recorder is in the group whose memory runs out. If the disk is full,
/// 2 MiB more in place of 16, and a keyframe.
constexpr std::uint64_t block_events_beside_limit = 32 * 1024, full_disk_bytes_beside_limit = 2 << 20;

const char* variable(Setting setting) {
  const char* value = std::getenv(setting_names[setting]);
  return value != nullptr ? value : "";
}

/// The program refuses to record if a value is not readable (preload/program/settings.h).
std::uint64_t quantity(Setting setting, const Unit* units, std::uint64_t otherwise) {
  std::uint64_t value = 0;
  return read_quantity(variable(setting), units, &value) ? value : otherwise;
}

std::vector<std::string> paths_of(const StartFacts& facts) {
  return {facts.paths.begin(), facts.paths.begin() + facts.outputs};
}

/// Whether a process is the supervisor (collector_start.c) of a program that has ended. Init has inherited such a
/// process.
bool is_orphaned_supervisor(const std::string& process) {
  bool is_alive = false, is_inherited = false, has_name = false;
  std::ifstream status("/proc/" + process + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("State:")) is_alive = line.find('Z') == line.npos;
    if (line.starts_with("PPid:")) is_inherited = line == "PPid:\t1";
    if (line.starts_with("Name:")) has_name = line.substr(line.find('\t') + 1) == supervisor_name;
  }
  return is_alive && is_inherited && has_name;
}

/// Whether another program of this container has ended and its collector still writes, or is about to start.
bool is_another_collector_busy() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    const int process = std::atoi(name.c_str());
    if (process != 0 && process != ::getppid() && is_orphaned_supervisor(name)) return true;
  }
  return false;
}

}  // namespace

Settings::Settings()
    : time_step_ns(quantity(setting_time, units_of_period, 0)),
      has_times(time_step_ns != 0 || variable(setting_time) == std::string_view("1")),
      sample_ns(quantity(setting_sample, units_of_time, 0)),
      bytes_max(quantity(setting_max_bytes, units_of_size, no_limit)),
      events_max(quantity(setting_max_events, units_of_count, no_limit)),
      time_ns_max(quantity(setting_max_time, units_of_time, no_limit)),
      spill_bytes_max(quantity(setting_spill, units_of_size, no_limit)),
      pprof_ns(quantity(setting_pprof_every, units_of_time, 0)),
      pprof_files(quantity(setting_pprof_files, units_of_count, profile_files_usual)) {
  Keep wanted{};
  if (!read_keep(variable(setting_keep), &wanted)) return;
  keep = {.ns = wanted.ns, .bytes = wanted.bytes};
  if (KeepAt at{}; read_keep_at(variable(setting_keep_at), &at)) keep_at = at;
  if (!keep_at) return;
  keep.block_events = block_events_beside_limit;
  keep.memory_bytes = full_disk_bytes_beside_limit;
}

Encoder::Encoder(RingMemory& memory, Backlog& backlog, SessionState& state, const std::vector<int>& outputs,
                 const Settings& settings)
    : memory_(memory),
      backlog_(backlog),
      state_(state),
      settings_(settings),
      stacks_(memory.start_facts().stacks_at != 0
                  ? std::optional<RingStacks>(std::in_place, memory.stack_share(),
                                              memory.start_facts().has_stacks_of_frees,
                                              [this](std::uint64_t stamp) { return outputs_.time_of(stamp); })
                  : std::nullopt),
      order_(
          earlier_blocks(memory.start_facts()), [this](EventBatch& batch) { return write_events(batch); },
          stacks_ ? &*stacks_ : nullptr, memory.start_facts().touched_min, &memory.control()),
      outputs_(memory.start_facts(), paths_of(memory.start_facts()), outputs, settings.has_times, order_.live_blocks(),
               settings.keep),
      flushed_ns_(clock_ns()),
      profiled_ns_(memory.start_facts().start_ns) {
  const StartFacts& facts = memory.start_facts();
  if (!facts.pprof_path.empty()) {
    profile_.emplace(facts.sample_bytes);
    profile_files_.emplace(facts.pprof_path, settings.pprof_files);
  }
  progress_.cut_ns = facts.start_ns;
  if (facts.start_ns != facts.own_start_ns) append_status(facts, "begin_ns=" + std::to_string(facts.start_ns));
  if (stacks_) outputs_.use_stacks(stacks_->table());
}

bool Encoder::handle(WorkItem& item) {
  switch (item.type) {
    case WorkItem::Type::records:
      order_.append_records(item.ring, std::move(item.records));
      return true;
    case WorkItem::Type::cut:
      merge_until(item);
      return memory_.control().verdict == verdict_go_on;
    case WorkItem::Type::flush:
      progress_.is_flush_asked = true;
      flush_asked_ns_ = item.clock_ns;
      return true;
    case WorkItem::Type::profile:
      progress_.is_profile_asked = true;
      profile_asked_ns_ = item.clock_ns;
      return true;
    case WorkItem::Type::mark:
      progress_.is_mark_reached = true;
      mark_reached_ns_ = item.clock_ns;
      return true;
    case WorkItem::Type::checkpoint:
      write_checkpoint(item.request);
      return true;
    case WorkItem::Type::finish:
      end_recording(false);
      give_verdict(verdict_enough, "");  // other threads may still record
      answer(item.request);
      return false;
    case WorkItem::Type::end: {
      // The rings of a process that a signal has ended are whole.
      end_recording(state_.process_end == ProcessEnd::unknown && memory_.control().leaving == 0);
      return false;
    }
  }
  return true;
}

bool Encoder::is_near_limit(std::uint64_t events) const {
  const std::uint64_t written = progress_.events, bytes = progress_.bytes;
  const std::uint64_t bytes_per_event = written == 0 ? first_bytes_per_event : 2 * (bytes / written + 1);
  const std::uint64_t now_ns = clock_ns(), lag_ns = now_ns - std::min<std::uint64_t>(progress_.cut_ns, now_ns);
  const auto comes_near = [](std::uint64_t value, std::uint64_t more, std::uint64_t limit) {
    return limit != Settings::no_limit && value + more >= limit;
  };
  return comes_near(written, events, settings_.events_max) ||
         comes_near(bytes, events * bytes_per_event, settings_.bytes_max) ||
         comes_near(now_ns - memory_.start_facts().start_ns, lag_ns, settings_.time_ns_max);
}

void Encoder::fail(const OutputError& error) {
  error_ = error.code().value();
  const std::string what = error_ == EFBIG ? "the limit on file sizes is reached by " : "cannot go on writing ";
  give_verdict(verdict_failed, what + error.path + ": " + std::strerror(error_));
}

void append_status(const StartFacts& facts, const std::string& fields, const std::string& path) {
  if (facts.status_path.empty()) return;
  const int fd = ::open(facts.status_path.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return;
  const std::string line = "pid=" + std::to_string(facts.process) + " start_ns=" + std::to_string(facts.own_start_ns) +
                           " " + fields + " path=" + (path.empty() ? facts.paths[0] : path) + "\n";
  static_cast<void>(::write(fd, line.data(), line.size()) < 0);
  ::close(fd);
}

/// Removes a launcher's status file (toolkit/launch/trace_status.h), and its folder, if the launcher has ended without
/// doing so. Does nothing to a file that is not named as a launcher names it.
void remove_abandoned_status(const StartFacts& facts) {
  const std::filesystem::path path = facts.status_path, folder = path.parent_path();
  if (path.filename().string().size() != status_name_digits ||
      !folder.filename().string().starts_with(status_folder_begin))
    return;
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return;
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0 && ::unlink(path.c_str()) == 0) {
    std::error_code error;
    for (const auto& left : std::filesystem::directory_iterator(folder, error)) {
      if (left.is_socket(error)) ::unlink(left.path().c_str());
    }
    ::rmdir(folder.c_str());
  }
  ::close(fd);
}

void Encoder::report(std::uint64_t drain_cpu_ns) const {
  const StartFacts& facts = memory_.start_facts();
  const Totals& totals = outputs_.totals();
  const Repairs& repairs = order_.repairs();
  const std::uint64_t cpu_ns = state_.cpu_ns(), at_end_ns = state_.cpu_ns_at_end;
  const std::uint64_t ended_ns = state_.ended_ns != 0 ? state_.ended_ns.load() : clock_ns();
  append_status(
      facts, "events=" + std::to_string(totals.events) + " threads=" + std::to_string(totals.threads) +
                 " bytes=" + std::to_string(outputs_.bytes()) +
                 " time_ns=" + std::to_string(ended_ns - facts.start_ns) + " lost=" + std::to_string(lost_events()) +
                 " repairs=" + std::to_string(repairs.total()) + " inversions=" + std::to_string(order_.inversions()) +
                 " unseen=" + std::to_string(facts.forked == 1 ? 0 : order_.unseen_blocks()) + stop_fields() +
                 stack_fields() + finished_fields() + " doubts=" + std::to_string(repairs[Repair::order_race]) +
                 " holders_bytes=" + std::to_string(memory_.control().owners_bytes) + " time_step_ns=" +
                 std::to_string(time_step_ns(ended_ns)) + " wait_status=" + std::to_string(state_.wait_status) +
                 " drain_cpu_ns=" + std::to_string(drain_cpu_ns) +
                 " cpu_ns_at_end=" + std::to_string(at_end_ns != 0 ? at_end_ns : cpu_ns) +
                 " cpu_ns=" + std::to_string(cpu_ns) + " failed=" + std::to_string(error_) +
                 " profile_failed=" + std::to_string(profile_error_) + missing_fields());
  remove_abandoned_status(facts);
}

/// The time by which coarse stamps may be too early; 0: each event has its own stamp, or none.
std::uint64_t Encoder::time_step_ns(std::uint64_t ended_ns) const {
  if (settings_.time_step_ns == 0) return 0;
  const std::uint64_t raised_ns = __atomic_load_n(&memory_.control().clock_raised_ns, __ATOMIC_RELAXED);
  return longest_clock_step(state_.time_step_ns, raised_ns != 0 ? raised_ns : memory_.start_facts().start_ns, ended_ns);
}

/// The fields of a trace that ends before the program.
std::string Encoder::stop_fields() const {
  const Control& control = memory_.control();
  std::string fields;
  if (control.stopped != 0)
    fields = " stopped=fault recorded_ns=" + std::to_string(control.stopped_ns - memory_.start_facts().own_start_ns);
  else if (stopped_by_ != nullptr)
    fields = std::string(" stopped=") + stopped_by_ + " recorded_ns=" + std::to_string(recorded_ns_);
  if (control.bypasses == 0) return fields;
  std::string name(control.bypass, strnlen(control.bypass, sizeof control.bypass));
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return c <= ' ' || c == 0x7f; }, '?');
  return fields + " bypasses=" + std::to_string(control.bypasses) + " bypass=" + name;
}

/// The fields of what the trace lacks, and of what contradicts the live blocks of pools. A forked child inherits
/// blocks.
std::string Encoder::missing_fields() const {
  const Control& control = memory_.control();
  std::string fields;
  const auto add = [&](const char* name, std::uint64_t count) {
    if (count != 0) fields += name + std::to_string(count);
  };
  add(" pool_unseen=", memory_.start_facts().forked == 1 ? 0 : order_.unseen_pool_blocks());
  add(" pool_replaced=", order_.replaced_pool_blocks());
  add(" pools_refused=", control.pools_refused);
  add(" pauses=", stopped_by_ == nullptr ? control.pauses : std::min<std::uint64_t>(control.pauses, pauses_written_));
  add(" children_unrecorded=", control.unrecorded.children);
  add(" programs_unrecorded=", control.unrecorded.programs);
  return fields;
}

/// The fields of missing call stacks, and of an interpreter's lines if there are any.
std::string Encoder::stack_fields() const {
  if (!stacks_) return "";
  const InterpreterCounts lines = memory_.interpreter_counts();
  std::string fields = " stacks_unknown=" + std::to_string(stacks_->unknown_events()) +
                       " stacks_cut=" + std::to_string(stacks_->cut_events());
  if (lines.named + lines.unplaced + lines.nameless == 0) return fields;
  return fields + " lines_named=" + std::to_string(lines.named) + " lines_unplaced=" + std::to_string(lines.unplaced) +
         " lines_nameless=" + std::to_string(lines.nameless);
}

/// The fields of how much of the recording a file has.
std::string Encoder::kept_fields(const FlightSpan& span) const {
  return " kept_events=" + std::to_string(span.events) + " kept_ns=" + std::to_string(span.to_ns - span.from_ns) +
         " dropped_events=" + std::to_string(span.dropped_events) + " kept_bytes=" + std::to_string(span.bytes);
}

std::string Encoder::finished_fields() const {
  return outputs_.kept() != nullptr ? kept_fields(outputs_.kept()->finished()) : "";
}

/// The sink of order_. Drops events beyond a limit.
std::size_t Encoder::write_events(EventBatch& batch) {
  batch.truncate(allowed_events(batch));
  if (batch.empty()) return std::numeric_limits<std::size_t>::max();
  outputs_.convert_stamps(batch);
  if (profile_) profile_->add(batch);
  events_ += batch.size();
  for (const BookedEvent& other : batch.others())
    pauses_written_ += other.event.kind == Kind::mark && other.event.label == "cmt_pause";
  const std::size_t room = outputs_.write_events(batch);
  assert(events_flushed_ <= events_);
  if (events_ - events_flushed_ >= block_events()) flush();
  return std::min<std::size_t>(room, block_events());
}

/// How many events to write before the next flush. Near the limit of bytes, blocks of the stream are closed early and
/// become ever smaller, so that the trace ends near the limit.
std::size_t Encoder::block_events() const {
  constexpr std::uint64_t least = 64, share = 4;
  if (settings_.bytes_max == Settings::no_limit) return std::numeric_limits<std::size_t>::max();
  const std::uint64_t bytes = outputs_.bytes(), left = settings_.bytes_max - std::min(bytes, settings_.bytes_max);
  const std::uint64_t bytes_per_event = events_flushed_ == 0 ? first_bytes_per_event : bytes / events_flushed_ + 1;
  return std::max(least, left / (share * bytes_per_event));
}

/// How many of the next events are within the limits.
std::size_t Encoder::allowed_events(const EventBatch& batch) {
  if (stopped_by_ != nullptr) return 0;
  assert(events_ <= settings_.events_max);
  std::size_t allowed = std::min<std::uint64_t>(batch.size(), settings_.events_max - events_);
  if (allowed < batch.size()) stopped_by_ = "max-events";
  if (outputs_.bytes() >= settings_.bytes_max) {
    stopped_by_ = "max-bytes";
    allowed = 0;
  }
  const auto is_late = [&](const BlockEvent& event) {
    return outputs_.time_of(event.time_ns) >= settings_.time_ns_max;
  };
  if (settings_.time_ns_max != Settings::no_limit && allowed != 0) {
    const std::span<const BlockEvent> events = batch.events().first(allowed);
    const auto last = std::max_element(events.begin(), events.end(),
                                       [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; });
    if (is_late(*last)) {
      stopped_by_ = "max-time";
      allowed = static_cast<std::size_t>(std::find_if(events.begin(), events.end(), is_late) - events.begin());
    }
  }
  if (stopped_by_ != nullptr) recorded_ns_ = last_cut_ns_;
  assert(allowed <= batch.size());
  return allowed;
}

void Encoder::flush() {
  outputs_.flush();
  events_flushed_ = events_;
}

void Encoder::merge_until(const WorkItem& cut) {
  outputs_.calibrate(cut.clock_stamp, cut.clock_ns);
  last_cut_stamp_ = cut.clock_stamp;
  last_cut_ns_ = cut.clock_ns - memory_.start_facts().start_ns;
  if (stacks_) stacks_->note_unloaded();
  order_.merge_until(cut.stamp);
  if (outputs_.kept() != nullptr) {
    outputs_.note_clock(last_cut_ns_, repairs());
    if (is_flush_due(cut)) {
      write_kept();
      progress_.is_flush_asked = false;
    }
    if (progress_.is_mark_reached && cut.clock_ns >= mark_reached_ns_) {
      write_at_mark();
      progress_.is_mark_reached = false;
    }
  } else {
    write_if_due(cut);
  }
  write_profile_if_due(cut);
  if (stopped_by_ == nullptr && last_cut_ns_ >= settings_.time_ns_max) {
    stopped_by_ = "max-time";
    recorded_ns_ = last_cut_ns_;
  }
  progress_.events = events_;
  progress_.bytes = outputs_.bytes();
  progress_.cut_ns = cut.clock_ns;
  if (stopped_by_ == nullptr) return;
  end_recording(true);  // the program goes on: what is live here may be freed
  give_verdict(verdict_enough, "");
}

/// Whether a flush was asked for before the cut's pass began. An earlier pass may have missed events from before the
/// request.
bool Encoder::is_flush_due(const WorkItem& cut) const {
  return progress_.is_flush_asked && cut.clock_ns >= flush_asked_ns_;
}

/// Writes the events so far to the files, once a second or on request.
void Encoder::write_if_due(const WorkItem& cut) {
  const bool is_asked = is_flush_due(cut);
  const bool is_due = is_asked || cut.clock_ns - flushed_ns_ >= flush_ns || must_save_rings();
  if (!is_due) return;
  if (events_ != events_saved_) {
    flush();
    events_saved_ = events_;
    if (memory_.is_recoverable() && outputs_.totals().allocations != 0) save_rings();
  }
  flushed_ns_ = cut.clock_ns;
  if (is_asked) progress_.is_flush_asked = false;
}

/// Writes the kept events to a file of their own, and reports this in the status file. The recording goes on, even
/// after a failure.
void Encoder::write_kept() {
  const std::string trace = memory_.start_facts().paths[0];
  try {
    describe_memory(memory_.start_facts().start_ns + last_cut_ns_);
    const WrittenFlight written = write_beside(trace, *outputs_.kept(), repairs());
    append_status(memory_.start_facts(), "snapshot=1" + kept_fields(written.span), written.path);
  } catch (const std::system_error& error) {
    append_status(memory_.start_facts(), "snapshot=1 failed=" + std::to_string(error.code().value()), trace);
  }
}

/// Puts the memory of a time into what is written next.
void Encoder::describe_memory(std::uint64_t until_ns) {
  if (state_.memory != nullptr) outputs_.kept()->describe_memory(state_.memory->text(until_ns));
}

/// Writes the kept events because memory is scarce, in place of those of the last time. Reports the first such file,
/// and each failure after a success.
void Encoder::write_at_mark() {
  const std::uint64_t begin_ns = clock_ns();
  const std::string trace = memory_.start_facts().paths[0];
  ::malloc_trim(0);  // the recorder is in the group
  describe_memory(memory_.start_facts().start_ns + last_cut_ns_);
  try {
    const WrittenFlight written = write_over(mark_path_, trace, *outputs_.kept(), repairs());
    if (mark_path_.empty())
      append_status(memory_.start_facts(), "snapshot=1" + kept_fields(written.span), written.path);
    mark_path_ = written.path;
    mark_error_ = 0;
  } catch (const std::system_error& error) {
    const int before = std::exchange(mark_error_, error.code().value());
    if (before == 0) append_status(memory_.start_facts(), "snapshot=1 failed=" + std::to_string(mark_error_), trace);
  }
  ::malloc_trim(0);
  state_.memory->note_written(clock_ns(), clock_ns() - begin_ns);
}

void Encoder::write_profile_if_due(const WorkItem& cut) {
  const bool is_asked = progress_.is_profile_asked && cut.clock_ns >= profile_asked_ns_;
  const bool is_due = settings_.pprof_ns != 0 && cut.clock_ns - profiled_ns_ >= settings_.pprof_ns;
  if (!profile_ || !(is_asked || is_due)) return;
  write_profile(false);
  profiled_ns_ = cut.clock_ns;
  if (is_asked) progress_.is_profile_asked = false;
}

/// Writes a profile of the events so far. The recording goes on after a failure, which the program reports if the file
/// before was written.
void Encoder::write_profile(bool is_last) {
  static const StackTable no_stacks;
  Control& control = memory_.control();
  const auto content = [&](const std::function<void(std::string_view)>& write) {
    cmt::collector::write_profile(*profile_, stacks_ ? stacks_->table() : no_stacks, memory_.start_facts(),
                                  control.samples_lost, last_cut_ns_, lost_events(), write);
  };
  const bool has_failed_before = profile_error_ != 0;
  profile_error_ = 0;
  try {
    is_last ? profile_files_->write_last(content) : profile_files_->write_numbered(content);
  } catch (const OutputError& error) {
    profile_error_ = error.code().value();
    if (has_failed_before) return;
    std::snprintf(control.fault, sizeof control.fault, "cannot write the profile %s: %s", error.path.c_str(),
                  std::strerror(profile_error_));
    __atomic_fetch_add(&control.faults, 1, __ATOMIC_RELEASE);
    memory_.notify_threads();
  }
}

Repairs Encoder::repairs() const {
  Repairs repairs = order_.repairs();
  repairs.other += lost_events();
  return repairs;
}

/// Whether half of a ring waits to be saved. In a recoverable recording, a ring's slots are given back only after that.
bool Encoder::must_save_rings() const {
  if (!memory_.is_recoverable()) return false;
  for (std::uint32_t i = 0; i < memory_.ring_count(); ++i) {
    const Ring& ring = memory_.ring(i);
    if (order_.resume_point(i).saved.position > memory_.saved(ring).position + memory_.slots_of(ring).count / 2)
      return true;
  }
  return false;
}

// One of two states is valid: the parity of `saves` selects it. The other state is filled in before `saves` rises.
void Encoder::save_rings() {
  Control& control = memory_.control();
  const std::uint64_t next = control.saves + 1;
  const auto lengths = outputs_.lengths();
  std::copy(lengths.begin(), lengths.end(), control.saved_bytes[next & 1]);
  for (std::uint32_t i = 0; i < memory_.ring_count(); ++i) {
    const ResumePoint point = order_.resume_point(i);
    Ring& ring = memory_.ring(i);
    ring.saved[next & 1] = point.saved;
    ring.saved_stack[next & 1] = outputs_.saved_stack(point.stack);
  }
  __atomic_store_n(&control.saves, next, __ATOMIC_SEQ_CST);
  memory_.ring_bell();
}

void Encoder::write_checkpoint(std::uint32_t request) {
  outputs_.begin_checkpoint();
  note_run_times();  // not in the copy: the watch thread may hold the lock
  const pid_t copy = ::fork();
  if (copy == 0) {
    int status = 0;
    try {
      outputs_.forget_checkpoint();
      finish(false);
    } catch (const OutputError& error) {
      status = error.code().value();
    }
    ::_exit(status);
  }
  if (copy < 0) {  // the files become whole when the program has ended
    outputs_.forget_checkpoint();
    flush();
    return answer(request);
  }
  int status = 0;
  while (::waitpid(copy, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) throw OutputError(memory_.start_facts().paths[0], WIFEXITED(status) ? WEXITSTATUS(status) : EIO);
  answer(request);
}

void Encoder::note_run_times() {
  if (state_.run_times != nullptr) stretches_ = state_.run_times->stretches();
}

void Encoder::end_recording(bool truncated) {
  note_run_times();
  describe_memory(clock_ns());
  finish(truncated);
  if (profile_) write_profile(true);
}

void Encoder::finish(bool truncated) {
  if (outputs_.is_whole() && order_.is_empty()) return;
  order_.merge_all();
  const int wait_status = state_.wait_status;
  if (wait_status >= 0 && WIFSIGNALED(wait_status)) {
    const char* const name = ::sigabbrev_np(WTERMSIG(wait_status));
    const std::string label =
        std::string(ended_by_label) +
        (name != nullptr ? "SIG" + std::string(name) : "signal " + std::to_string(WTERMSIG(wait_status)));
    order_.append_event({.kind = Kind::mark, .time_ns = last_cut_stamp_, .label = label});
  }
  const Control& control = memory_.control();
  outputs_.finish(repairs(), truncated || control.stopped != 0, control.samples_lost, stretches_);
}

// When the first process of a container ends, the kernel kills all others, also the collectors of programs that have
// ended before. So the first process waits for these collectors.
void Encoder::answer(std::uint32_t request) {
  Control& control = memory_.control();
  for (int i = 0; memory_.start_facts().own_process == 1 && i < collector_pauses_max && is_another_collector_busy();
       ++i) {
    ::poll(nullptr, 0, collector_pause_ms);
  }
  __atomic_store_n(&control.done, request, __ATOMIC_SEQ_CST);
  RingMemory::wake(&control.done);
}

/// Gives the program its verdict: whether to go on recording, and why not.
void Encoder::give_verdict(std::uint32_t verdict, const std::string& message) {
  Control& control = memory_.control();
  const std::size_t length = std::min(message.size(), sizeof control.message - 1);
  std::memcpy(control.message, message.data(), length);
  control.message[length] = 0;
  __atomic_store_n(&control.verdict, verdict, __ATOMIC_SEQ_CST);
  memory_.notify_threads();
}

}  // namespace cmt::collector
