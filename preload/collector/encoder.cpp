#include "preload/collector/encoder.h"

#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "libcmt/trace/files.h"

namespace cmt::collector {
namespace {

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

}  // namespace

EncodeThread::EncodeThread(RingMemory& memory, Backlog& backlog, SessionState& state, const std::vector<int>& outputs,
                           const Settings& settings)
    : memory_(memory),
      backlog_(backlog),
      state_(state),
      settings_(settings),
      order_(tags_reserved(memory.control()), [this](std::span<BookedEvent> events) { return write_events(events); }),
      outputs_(memory.control(), paths_of(memory.control()), outputs, settings.has_times, order_.live_blocks()),
      times_(memory.control().start_stamp, memory.control().start_ns),
      flushed_ns_(clock_ns()) {}

void EncodeThread::run() {
  // The program and the drainer, for which the program may have to wait, come first. But a lower priority yet would let
  // other programs starve this thread.
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
    give_verdict(verdict_failed, what + error.path + " (error " + std::to_string(error_) + ")");
  }
  state_.is_finished = true;
}

/// False where nothing is to follow.
bool EncodeThread::handle(WorkItem& item) {
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

/// The sink of order_. Events beyond a limit are dropped.
std::size_t EncodeThread::write_events(std::span<BookedEvent> events) {
  if (outputs_.bytes() >= settings_.bytes_max) return std::numeric_limits<std::size_t>::max();
  if (events.size() > settings_.events_max - events_) events = events.first(settings_.events_max - events_);
  if (events.empty()) return std::numeric_limits<std::size_t>::max();
  for (auto& [event, old] : events) event.time_ns = settings_.has_times ? times_.time_of(event.time_ns) : unknown;
  events_ += events.size();
  return outputs_.write_events(events);
}

void EncodeThread::merge_until(const WorkItem& cut) {
  times_.calibrate(cut.clock_stamp, cut.clock_ns);
  order_.merge_until(cut.stamp);
  const bool is_due = flush_asked_ || cut.clock_ns - flushed_ns_ >= flush_ns || must_save_rings();
  if (is_due && events_ != events_flushed_) {
    outputs_.flush();
    events_flushed_ = events_;
    if (memory_.is_recoverable() && outputs_.totals().allocations != 0) save_rings();
  }
  if (is_due) {
    flushed_ns_ = cut.clock_ns;
    flush_asked_ = false;
  }
  if (!has_reached_limit(cut.clock_ns)) return;
  finish(false);
  give_verdict(verdict_enough, "");
}

bool EncodeThread::has_reached_limit(std::uint64_t now_ns) const {
  return events_ >= settings_.events_max || outputs_.bytes() >= settings_.bytes_max ||
         now_ns - memory_.control().start_ns >= settings_.time_ns_max;
}

/// Whether a ring whose slots are given back only when they are saved is half full of such.
bool EncodeThread::must_save_rings() const {
  if (!memory_.is_recoverable()) return false;
  for (std::uint32_t i = 0; i < memory_.ring_count(); ++i) {
    const Ring& ring = memory_.ring(i);
    if (order_.resume_point(i).position > memory_.saved(ring).position + ring.slots / 2) return true;
  }
  return false;
}

// One of two states is valid, told by the parity of `saves`. The other one is filled in before `saves` rises.
void EncodeThread::save_rings() {
  Control& control = memory_.control();
  const std::uint64_t next = control.saves + 1;
  const auto lengths = outputs_.lengths();
  std::copy(lengths.begin(), lengths.end(), control.saved_bytes[next & 1]);
  for (std::uint32_t i = 0; i < memory_.ring_count(); ++i) memory_.ring(i).saved[next & 1] = order_.resume_point(i);
  __atomic_store_n(&control.saves, next, __ATOMIC_SEQ_CST);
  memory_.ring_bell();
}

void EncodeThread::write_checkpoint(std::uint32_t request) {
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

void EncodeThread::finish(bool truncated) {
  if (outputs_.is_whole() && order_.is_empty()) return;
  order_.merge_all();
  const int wait_status = state_.wait_status;
  if (truncated && wait_status >= 0 && WIFSIGNALED(wait_status)) {
    const std::string label = "killed by signal " + std::to_string(WTERMSIG(wait_status));
    order_.append_event({.kind = Kind::mark, .time_ns = ~std::uint64_t{0} >> 1, .label = label});
  }
  Repairs repairs = order_.repairs();
  repairs.other += lost_events();
  outputs_.finish(repairs, truncated);
}

// With the first process of a container the kernel ends all others, and so the collectors of programs that have ended
// before. So the first process waits for them.
void EncodeThread::answer(std::uint32_t request) {
  Control& control = memory_.control();
  for (int i = 0; control.process == 1 && i < collector_pauses_max && is_another_collector_busy(); ++i) {
    ::poll(nullptr, 0, collector_pause_ms);
  }
  __atomic_store_n(&control.done, request, __ATOMIC_SEQ_CST);
  RingMemory::wake(&control.done);
}

/// Tells the program whether to go on recording, and why not.
void EncodeThread::give_verdict(std::uint32_t verdict, const std::string& message) {
  Control& control = memory_.control();
  const std::size_t length = std::min(message.size(), sizeof control.message - 1);
  std::memcpy(control.message, message.data(), length);
  control.message[length] = 0;
  __atomic_store_n(&control.verdict, verdict, __ATOMIC_SEQ_CST);
  memory_.notify_threads();
}

}  // namespace cmt::collector
