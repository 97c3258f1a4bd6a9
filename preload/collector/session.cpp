#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string_view>
#include <thread>

#include "libcmt/trace/files.h"
#include "preload/collector/collector.h"
#include "preload/collector/drainer.h"
#include "preload/collector/order.h"
#include "preload/collector/outputs.h"
#include "preload/text.h"

namespace cmt::collector {
namespace {

constexpr std::uint64_t backlog_memory_max = 64 << 20, spill_max = std::uint64_t{4} << 30;

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// The program has refused to record where a value cannot be read (preload/program/settings.h).
std::uint64_t quantity(const char* name, const Unit* units, std::uint64_t otherwise) {
  std::uint64_t value = 0;
  return read_quantity(variable(name), units, &value) ? value : otherwise;
}

/// What the environment asks of a session.
struct Settings {
  static constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

  bool has_times = variable("CMTTRACE_TIME") == std::string_view("1");
  std::uint64_t sample_ns = quantity("CMTTRACE_SAMPLE", units_of_time, 0);  ///< 0: no samples
  std::uint64_t bytes_max = quantity("CMTTRACE_MAX_BYTES", units_of_size, no_limit);
  std::uint64_t events_max = quantity("CMTTRACE_MAX_EVENTS", units_of_count, no_limit);
  std::uint64_t time_ns_max = quantity("CMTTRACE_MAX_TIME", units_of_time, no_limit);
  std::uint64_t spill_bytes_max =
      quantity("CMTTRACE_SPILL", units_of_size, no_limit);  ///< no_limit: as the disk has room
};

/// The bound of the backlog's file: as was asked for, or a quarter of what the disk has free.
std::uint64_t spill_bytes_max(const Settings& settings, const std::string& folder) {
  if (settings.spill_bytes_max != Settings::no_limit) return settings.spill_bytes_max;
  struct statvfs disk {};
  const bool is_known = ::statvfs(folder.c_str(), &disk) == 0;
  return is_known ? std::min<std::uint64_t>(spill_max, disk.f_bavail * disk.f_frsize / 4) : spill_max;
}

constexpr std::uint64_t flush_ns = 1'000'000'000;
constexpr int collector_pause_ms = 5, collector_pauses_max = 2000;

std::vector<std::string> paths_of(const Control& control) { return {control.paths, control.paths + control.outputs}; }

/// Whether a process is the keeper (collector_start.c) of a program that has ended: then init has inherited it.
bool is_orphaned_keeper(const std::string& process) {
  bool is_alive = false, is_inherited = false, has_mask = false;
  std::ifstream status("/proc/" + process + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("State:")) is_alive = line.find('Z') == line.npos;
    if (line.starts_with("PPid:")) is_inherited = line == "PPid:\t1";
    if (line.starts_with("SigBlk:")) has_mask = std::strtoull(line.c_str() + 7, nullptr, 16) == keeper_blocked_signals;
  }
  return is_alive && is_inherited && has_mask;
}

/// Whether another program of this container has ended and its collector still writes, or is about to start.
bool is_another_collector_busy() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    const int process = std::atoi(name.c_str());
    if (process != 0 && process != ::getppid() && is_orphaned_keeper(name)) return true;
  }
  return false;
}

/// The encoder: takes work from the backlog, puts the events in order, and writes the files.
class EncodeThread {
 public:
  EncodeThread(RingMemory& memory, Backlog& backlog, SessionState& state, const std::vector<int>& outputs,
               const Settings& settings)
      : memory_(memory),
        backlog_(backlog),
        state_(state),
        settings_(settings),
        order_(tags_reserved(memory.control()), [this](EventBatch& batch) { return write_events(batch); }),
        outputs_(memory.control(), paths_of(memory.control()), outputs, settings.has_times, order_.live_blocks()),
        flushed_ns_(clock_ns()) {}

  /// Returns when the files are complete, or cannot be continued; the program has been told so then.
  void run() {
    // The program and the drainer, for which the program may have to wait, come first. But a lower priority yet would
    // let other programs starve this thread.
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 10);
    try {
      for (bool goes_on = true; goes_on;) {
        state_.encode_processor = -1;
        auto item = backlog_.wait_for_item(1000);
        state_.encode_processor = ::sched_getcpu();
        if (item) goes_on = handle(*item);
      }
    } catch (const OutputError& error) {
      error_ = error.code().value();
      const std::string what = error_ == EFBIG ? "the limit on file sizes is reached by " : "cannot go on writing ";
      give_verdict(verdict_failed, what + error.path + ": " + std::strerror(error_));
    }
    state_.is_finished = true;
  }

  /// Appends a line to the status file (CMTTRACE_STATUS), for cmttrace and for tests. When run() has returned.
  void report(std::uint64_t drain_cpu_ns) const {
    const Control& control = memory_.control();
    if (control.status_path[0] == 0) return;
    const int fd = ::open(control.status_path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0) return;
    const Totals& totals = outputs_.totals();
    const Repairs& repairs = order_.repairs();
    const std::string line =
        "pid=" + std::to_string(control.process) + " start_ns=" + std::to_string(control.start_ns) +
        " events=" + std::to_string(totals.events) + " threads=" + std::to_string(totals.threads) +
        " bytes=" + std::to_string(outputs_.bytes()) + " time_ns=" + std::to_string(clock_ns() - control.start_ns) +
        " lost=" + std::to_string(lost_events()) + " repairs=" + std::to_string(repairs.total()) +
        " inversions=" + std::to_string(order_.inversions()) +
        " unseen=" + std::to_string(control.forked != 0 ? 0 : order_.unseen_blocks()) + stop_fields() +
        " doubts=" + std::to_string(repairs[Repair::order_race]) + " leases=" + std::to_string(control.leases) +
        " wait_status=" + std::to_string(state_.wait_status) + " drain_cpu_ns=" + std::to_string(drain_cpu_ns) +
        " cpu_ns=" + std::to_string(clock_ns(CLOCK_PROCESS_CPUTIME_ID)) + " failed=" + std::to_string(error_) +
        " path=" + control.paths[0] + "\n";
    static_cast<void>(::write(fd, line.data(), line.size()) < 0);
    ::close(fd);
  }

 private:
  /// False where nothing is to follow.
  bool handle(WorkItem& item) {
    switch (item.type) {
      case WorkItem::Type::records:
        order_.append_records(item.ring, std::move(item.records));
        return true;
      case WorkItem::Type::cut:
        merge_until(item);
        return memory_.control().verdict == verdict_go_on;
      case WorkItem::Type::flush:
        flush_asked_ = true;
        return true;
      case WorkItem::Type::checkpoint:
        write_checkpoint(item.request);
        return true;
      case WorkItem::Type::finish:
        finish(false);
        give_verdict(verdict_enough, "");  // other threads may still record
        answer(item.request);
        return false;
      case WorkItem::Type::end: {
        const ProcessEnd end = state_.process_end;
        finish(end != ProcessEnd::exited && end != ProcessEnd::executed && memory_.control().leaving == 0);
        return false;
      }
    }
    return true;
  }

  /// What is to be known of a trace that does not go on to the program's end.
  std::string stop_fields() const {
    const Control& control = memory_.control();
    std::string fields;
    if (control.stopped != 0)
      fields = " stopped=fault recorded_ns=" + std::to_string(control.stopped_ns - control.start_ns);
    else if (stopped_by_ != nullptr)
      fields = std::string(" stopped=") + stopped_by_ + " recorded_ns=" + std::to_string(recorded_ns_);
    if (control.bypasses == 0) return fields;
    std::string name(control.bypass, strnlen(control.bypass, sizeof control.bypass));
    std::replace_if(
        name.begin(), name.end(), [](unsigned char c) { return c <= ' ' || c == 0x7f; }, '?');
    return fields + " bypasses=" + std::to_string(control.bypasses) + " bypass=" + name;
  }

  /// The sink of order_. Events beyond a limit are dropped.
  std::size_t write_events(EventBatch& batch) {
    batch.truncate(allowed_events(batch));
    if (batch.empty()) return std::numeric_limits<std::size_t>::max();
    outputs_.convert_stamps(batch);
    events_ += batch.size();
    const std::size_t room = outputs_.write_events(batch);
    const std::size_t due = block_events();
    if (events_ - events_flushed_ < due) return std::min(room, due);
    flush();
    return room;
  }

  /// How many events to write before the files are flushed next. Near the limit of bytes, blocks of the stream are
  /// closed early, ever smaller ones, so that the trace ends near it.
  std::size_t block_events() const {
    constexpr std::uint64_t least = 64, first_bytes_per_event = 40, share = 4;
    if (settings_.bytes_max == Settings::no_limit) return std::numeric_limits<std::size_t>::max();
    const std::uint64_t bytes = outputs_.bytes(), left = settings_.bytes_max - std::min(bytes, settings_.bytes_max);
    const std::uint64_t bytes_per_event = events_flushed_ == 0 ? first_bytes_per_event : bytes / events_flushed_ + 1;
    return std::max(least, left / (share * bytes_per_event));
  }

  /// How many of the next events are within the limits.
  std::size_t allowed_events(const EventBatch& batch) {
    if (stopped_by_ != nullptr) return 0;
    std::size_t allowed = std::min<std::uint64_t>(batch.size(), settings_.events_max - events_);
    if (allowed < batch.size()) stopped_by_ = "max-events";
    if (outputs_.bytes() >= settings_.bytes_max) {
      stopped_by_ = "max-bytes";
      allowed = 0;
    }
    for (std::size_t i = 0; settings_.time_ns_max != Settings::no_limit && i < allowed; ++i) {
      if (outputs_.time_of(batch.events()[i].time_ns) < settings_.time_ns_max) continue;
      stopped_by_ = "max-time";
      allowed = i;
    }
    if (stopped_by_ != nullptr) recorded_ns_ = last_cut_ns_;
    return allowed;
  }

  void flush() {
    outputs_.flush();
    events_flushed_ = events_;
  }

  void merge_until(const WorkItem& cut) {
    outputs_.calibrate(cut.clock_stamp, cut.clock_ns);
    last_cut_stamp_ = cut.clock_stamp;
    last_cut_ns_ = cut.clock_ns - memory_.control().start_ns;
    order_.merge_until(cut.stamp);
    const bool is_due = flush_asked_ || cut.clock_ns - flushed_ns_ >= flush_ns || must_save_rings();
    if (is_due && events_ != events_saved_) {
      flush();
      events_saved_ = events_;
      if (memory_.is_recoverable() && outputs_.totals().allocations != 0) save_rings();
    }
    if (is_due) {
      flushed_ns_ = cut.clock_ns;
      flush_asked_ = false;
    }
    if (stopped_by_ == nullptr && last_cut_ns_ >= settings_.time_ns_max) {
      stopped_by_ = "max-time";
      recorded_ns_ = last_cut_ns_;
    }
    if (stopped_by_ == nullptr) return;
    finish(false);
    give_verdict(verdict_enough, "");
  }

  /// Whether a ring whose slots are given back only when they are saved is half full of such.
  bool must_save_rings() const {
    if (!memory_.is_recoverable()) return false;
    for (std::uint32_t i = 0; i < memory_.ring_count(); ++i) {
      const Ring& ring = memory_.ring(i);
      if (order_.resume_point(i).position > memory_.saved(ring).position + ring.slots / 2) return true;
    }
    return false;
  }

  // One of two states is valid, told by the parity of `saves`. The other one is filled in before `saves` rises.
  void save_rings() {
    Control& control = memory_.control();
    const std::uint64_t next = control.saves + 1;
    const auto lengths = outputs_.lengths();
    std::copy(lengths.begin(), lengths.end(), control.saved_bytes[next & 1]);
    for (std::uint32_t i = 0; i < memory_.ring_count(); ++i) memory_.ring(i).saved[next & 1] = order_.resume_point(i);
    __atomic_store_n(&control.saves, next, __ATOMIC_SEQ_CST);
    memory_.ring_bell();
  }

  void write_checkpoint(std::uint32_t request) {
    outputs_.begin_checkpoint();
    const pid_t copy = ::fork();
    if (copy == 0) {
      int status = 0;
      try {
        outputs_.end_checkpoint_in_copy();
        finish(false);
      } catch (const OutputError& error) {
        status = error.code().value();
      }
      ::_exit(status);
    }
    int status = 0;
    if (copy > 0) ::waitpid(copy, &status, 0);
    if (copy > 0 && status != 0) throw OutputError(memory_.control().paths[0], WEXITSTATUS(status));
    answer(request);
  }

  std::uint64_t lost_events() const { return memory_.lost_events() + backlog_.lost_records(); }

  void finish(bool truncated) {
    if (outputs_.is_whole() && order_.is_empty()) return;
    order_.merge_all();
    const int wait_status = state_.wait_status;
    if (truncated && wait_status >= 0 && WIFSIGNALED(wait_status)) {
      const std::string label = "killed by signal " + std::to_string(WTERMSIG(wait_status));
      order_.append_event({.kind = Kind::mark, .time_ns = last_cut_stamp_, .label = label});
    }
    Repairs repairs = order_.repairs();
    repairs.other += lost_events();
    outputs_.finish(repairs, truncated || memory_.control().stopped != 0);
  }

  // With the first process of a container the kernel ends all others, and so the collectors of programs that have ended
  // before. So the first process waits for them.
  void answer(std::uint32_t request) {
    Control& control = memory_.control();
    for (int i = 0; control.process == 1 && i < collector_pauses_max && is_another_collector_busy(); ++i) {
      ::poll(nullptr, 0, collector_pause_ms);
    }
    __atomic_store_n(&control.done, request, __ATOMIC_SEQ_CST);
    RingMemory::wake(&control.done);
  }

  /// Tells the program whether to go on recording, and why not.
  void give_verdict(std::uint32_t verdict, const std::string& message) {
    Control& control = memory_.control();
    const std::size_t length = std::min(message.size(), sizeof control.message - 1);
    std::memcpy(control.message, message.data(), length);
    control.message[length] = 0;
    __atomic_store_n(&control.verdict, verdict, __ATOMIC_SEQ_CST);
    memory_.notify_threads();
  }

  // Shared with the other threads.
  RingMemory& memory_;
  Backlog& backlog_;
  SessionState& state_;
  // The encoder's own.
  const Settings& settings_;
  EventOrder order_;
  Outputs outputs_;  // reads the live blocks of order_
  bool flush_asked_ = false;
  std::uint64_t events_ = 0, events_flushed_ = 0, events_saved_ = 0, flushed_ns_;
  std::uint64_t last_cut_stamp_ = 0, last_cut_ns_ = 0;  // the clock of the last cut, and the time since the start
  const char* stopped_by_ = nullptr;                    // the limit that ended the trace
  std::uint64_t recorded_ns_ = 0;                       // with stopped_by_: there are no events after this time
  int error_ = 0;                                       // the errno that ended the trace, or 0
};

}  // namespace

void run_session(RingMemory& memory, const std::vector<int>& outputs, int process_fd) {
  Control& control = memory.control();
  const Settings settings;
  const std::string folder = (std::filesystem::path(".") / control.paths[0]).parent_path();
  control.times = settings.has_times;
  SessionState state{.encode_thread = ::gettid(), .finished_fd = ::eventfd(0, EFD_CLOEXEC)};
  Backlog backlog(folder, backlog_memory_max, spill_bytes_max(settings, folder));
  EncodeThread encoder(memory, backlog, state, outputs, settings);
  std::uint64_t drain_cpu_ns = 0;
  std::thread drains([&] { drain_cpu_ns = run_drainer(memory, backlog, state, outputs); });
  std::thread watches([&] { run_watcher(memory, backlog, state, process_fd, settings.sample_ns); });
  encoder.run();
  ::eventfd_write(state.finished_fd, 1);
  memory.ring_bell();
  drains.join();
  watches.join();
  ::close(state.finished_fd);
  if (control.made_control != 0) ::unlink(control.control_path);
  if (memory.is_recoverable()) ::unlink(control.rings_path);
  encoder.report(drain_cpu_ns);
}

}  // namespace cmt::collector
