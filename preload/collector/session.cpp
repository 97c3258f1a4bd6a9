#include "preload/collector/collector.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <thread>

#include "preload/collector/neighbours.h"

namespace cmt::collector {
namespace {

constexpr std::uint64_t memory_max = 64 << 20, spill_max = std::uint64_t{4} << 30;
constexpr std::uint64_t flush_ns = 1'000'000'000, readable_after_ns = 1'000'000'000;
constexpr std::uint64_t tags_in_reserve = 1000, tags_in_reserve_forked = 1'000'000;
constexpr int neighbour_pause_ms = 5, neighbour_tries_max = 2000;
constexpr timespec nap{0, 100'000'000}, short_nap{0, 1'000'000};

std::uint64_t cpu_ns(clockid_t clock) {
  timespec used{};
  ::clock_gettime(clock, &used);
  return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(used.tv_nsec);
}

std::vector<std::string> paths_of(const Control& control) { return {control.paths, control.paths + control.outputs}; }

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

/// As in the kernel's sched/types.h.
struct SchedAttributes {
  std::uint32_t size, policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime, deadline, period;
};

/// The calling thread wants little time at once, and that soon: kernels from 6.12 on do not let others end their turn
/// first.
void ask_for_short_turns() {
  SchedAttributes attributes{};
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0 || attributes.policy != SCHED_OTHER)
    return;
  attributes.runtime = 100'000;
  ::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

/// Of the file for what is spilled: as was asked for, or so that it does not fill the disk.
std::uint64_t spill_bytes_max(const Settings& settings, const std::string& folder) {
  if (settings.spill_bytes_max) return *settings.spill_bytes_max;
  struct statvfs disk {};
  const bool known = ::statvfs(folder.c_str(), &disk) == 0;
  return known ? std::min<std::uint64_t>(spill_max, disk.f_bavail * disk.f_frsize / 4) : spill_max;
}

}  // namespace

Session::Session(Memory& memory, const std::vector<int>& outputs, int process_fd, Settings settings)
    : memory_(memory),
      settings_(std::move(settings)),
      outputs_(memory.control(), paths_of(memory.control()), outputs, settings_.times, order_),
      backlog_(folder_of(memory.control().paths[0]), memory_max,
               spill_bytes_max(settings_, folder_of(memory.control().paths[0]))),
      drainer_(memory, backlog_),
      order_(memory.control().forked != 0 ? tags_in_reserve_forked : tags_in_reserve,
             [this](std::span<BookedEvent> events) { return add(events); }),
      ticks_(memory.control().start_stamp, memory.control().start_ns),
      process_fd_(process_fd),
      over_fd_(::eventfd(0, EFD_CLOEXEC)),
      flushed_ns_(clock_ns()) {}

void Session::run() {
  __atomic_store_n(&memory_.control().attached, 1, __ATOMIC_RELEASE);
  memory_.control().times = settings_.times;
  open_control();
  encoder_thread_ = ::gettid();
  std::thread drainer([this] { drain(); });
  std::thread watcher([this] { watch(); });
  try {
    encode();
  } catch (const OutputError& error) {
    fail(error);
  }
  over_ = true;
  ::eventfd_write(over_fd_, 1);
  ring_bell();
  drainer.join();
  watcher.join();
  if (memory_.control().made_control != 0) ::unlink(memory_.control().control_path);
  if (memory_.is_durable()) ::unlink(memory_.control().rings_path);
  report();
}

void Session::drain() {
  Control& control = memory_.control();
  ::prctl(PR_SET_TIMERSLACK, 1);
  ask_for_short_turns();
  while (!over_) {
    const std::uint32_t bell = __atomic_load_n(&control.bell, __ATOMIC_SEQ_CST);
    const bool ended = end_ != End::none;
    open_to_readers(!ended);
    const auto moved = drainer_.pass();
    const bool asked = pass_on_request();
    stand_aside();
    if (ended && moved == std::size_t{0} && !drainer_.skip_unpublished()) break;
    if (!asked && (!ended || !moved)) sleep(bell);
  }
  drain_cpu_ns_ = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
  backlog_.put({.type = Parcel::Type::end});
}

// Not where the program's threads are at work, as long as there is another processor. By itself the kernel wakes the
// drainer where the bell was rung, and so takes the time from the program.
void Session::stand_aside() {
  const cpu_set_t& busy = drainer_.busy_processors();
  if (CPU_COUNT(&busy) == 0) return;
  processors_.leave(busy, ::sched_getcpu(), 0);
  processors_.leave(busy, encoder_processor_, encoder_thread_);
}

// A program may begin to leave at any time, and then waits for `readable` to be 0 if it is 1.
void Session::open_to_readers(bool is_running) {
  Control& control = memory_.control();
  const bool leaves = __atomic_load_n(&control.leaving, __ATOMIC_SEQ_CST) != 0;
  const bool readable = is_running && !leaves && clock_ns() - control.start_ns > readable_after_ns;
  if (readable == (control.readable != 0)) return;
  outputs_.keep_readers(!readable);
  __atomic_store_n(&control.readable, readable ? 1 : 0, __ATOMIC_SEQ_CST);
  Memory::wake(&control.readable);
}

// A request was made after what came before it was recorded, so it is in the backlog behind that.
bool Session::pass_on_request() {
  Control& control = memory_.control();
  const std::uint32_t request = __atomic_load_n(&control.request, __ATOMIC_ACQUIRE);
  if (request == requests_seen_) return false;
  const bool finish = __atomic_load_n(&control.request_kind, __ATOMIC_RELAXED) == request_finish;
  // What was recorded between the last look at the rings and this one.
  do drainer_.pass(true);
  while (finish && drainer_.skip_unpublished());
  requests_seen_ = request;
  backlog_.put({.type = finish ? Parcel::Type::finish : Parcel::Type::checkpoint, .value = request});
  return true;
}

// Where the rings fill fast this wakes by the clock. By the bell it would mostly wake on the processor of who rang, and
// take from the program's time what the other one could do.
void Session::sleep(std::uint32_t bell) {
  Control& control = memory_.control();
  const bool is_called = backlog_.has_room() && __atomic_load_n(&control.sandboxed, __ATOMIC_RELAXED) == 0;
  const auto brief_ns = is_called ? drainer_.nap_ns() : std::nullopt;
  const timespec brief{0, static_cast<long>(brief_ns.value_or(0))};
  const timespec& time = !is_called ? short_nap : brief_ns ? brief : nap;
  __atomic_store_n(&control.asleep, brief_ns ? asleep_briefly : asleep_deeply, __ATOMIC_SEQ_CST);
  ::syscall(SYS_futex, &control.bell, FUTEX_WAIT, bell, &time, nullptr, 0);
  __atomic_store_n(&control.asleep, awake, __ATOMIC_SEQ_CST);
}

void Session::encode() {
  // Behind the drainer, which the program may have to wait for, and behind the program: this can wait. But not so far
  // behind that other programs starve it.
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 10);
  while (true) {
    encoder_processor_ = -1;
    auto parcel = backlog_.take(1000);
    encoder_processor_ = ::sched_getcpu();
    if (parcel && !handle(*parcel)) return;
  }
}

bool Session::handle(Parcel& parcel) {
  switch (parcel.type) {
    case Parcel::Type::records:
      order_.append(parcel.ring, std::move(parcel.records));
      return true;
    case Parcel::Type::cut:
      at_cut(parcel);
      return memory_.control().verdict == verdict_go_on;
    case Parcel::Type::checkpoint:
      checkpoint(static_cast<std::uint32_t>(parcel.value));
      return true;
    case Parcel::Type::finish:
      finish(false);
      give_verdict(verdict_enough, "");  // other threads may still be at work
      answer(static_cast<std::uint32_t>(parcel.value));
      return false;
    case Parcel::Type::end:
      finish(end_ != End::exited && end_ != End::executed && memory_.control().leaving == 0);
      return false;
  }
  return true;
}

// What comes after the last event that is wanted is not the trace's any more.
std::size_t Session::add(std::span<BookedEvent> events) {
  if (outputs_.bytes() >= settings_.bytes_max) return std::numeric_limits<std::size_t>::max();
  if (events.size() > settings_.events_max - events_) events = events.first(settings_.events_max - events_);
  if (events.empty()) return std::numeric_limits<std::size_t>::max();
  for (auto& [event, old] : events) event.time_ns = settings_.times ? ticks_.time_of(event.time_ns) : unknown;
  events_ += events.size();
  return outputs_.add(events);
}

void Session::at_cut(const Parcel& parcel) {
  ticks_.tell(parcel.clock_stamp, parcel.clock_ns);
  order_.merge(parcel.stamp);
  const bool due = parcel.clock_ns - flushed_ns_ >= flush_ns || flush_asked_.exchange(false) || rings_fill_up();
  if (due && events_ != events_flushed_) {
    outputs_.flush();
    events_flushed_ = events_;
    if (memory_.is_durable() && outputs_.totals().allocations != 0) save();
  }
  if (due) flushed_ns_ = parcel.clock_ns;
  const std::uint64_t age = parcel.clock_ns - memory_.control().start_ns;
  if (events_ < settings_.events_max && outputs_.bytes() < settings_.bytes_max && age < settings_.time_ns_max) return;
  finish(false);
  give_verdict(verdict_enough, "");
}

bool Session::rings_fill_up() {
  if (!memory_.is_durable()) return false;
  for (std::uint32_t i = 0; i < memory_.ring_count(); ++i) {
    if (order_.settled(i).position > memory_.saved(memory_.ring(i)).position + memory_.ring(i).slots / 2) return true;
  }
  return false;
}

// What is valid stays so until `saves` rises, and then everything else is.
void Session::save() {
  Control& control = memory_.control();
  const std::uint64_t next = control.saves + 1;
  const auto lengths = outputs_.lengths();
  std::copy(lengths.begin(), lengths.end(), control.saved_bytes[next & 1]);
  for (std::uint32_t i = 0; i < memory_.ring_count(); ++i) memory_.ring(i).saved[next & 1] = order_.settled(i);
  __atomic_store_n(&control.saves, next, __ATOMIC_SEQ_CST);
  ring_bell();
}

void Session::ring_bell() {
  __atomic_fetch_add(&memory_.control().bell, 1, __ATOMIC_SEQ_CST);
  Memory::wake(&memory_.control().bell);
}

void Session::checkpoint(std::uint32_t request) {
  outputs_.begin_checkpoint();
  const pid_t copy = ::fork();
  if (copy == 0) {
    int status = 0;
    try {
      outputs_.become_copy();
      finish(false);
    } catch (const OutputError& error) {
      status = error.error;
    }
    ::_exit(status);
  }
  int status = 0;
  if (copy > 0) ::waitpid(copy, &status, 0);
  if (copy > 0 && status != 0) throw OutputError{memory_.control().paths[0], WEXITSTATUS(status)};
  answer(request);
}

void Session::finish(bool truncated) {
  if (outputs_.is_whole() && order_.is_empty()) return;
  order_.finish();
  if (truncated && wait_status_ >= 0 && WIFSIGNALED(wait_status_)) {
    const std::string label = "killed by signal " + std::to_string(WTERMSIG(wait_status_));
    order_.add({.kind = Kind::mark, .time_ns = ~std::uint64_t{0} >> 1, .label = label});
  }
  Repairs repairs = order_.repairs();
  repairs.other += lost();
  outputs_.finish(repairs, truncated);
}

// The kernel ends all processes of a container with the first, and so the collectors of those that have ended before
// it.
void Session::answer(std::uint32_t request) {
  for (int tries = 0; memory_.process() == 1 && tries < neighbour_tries_max && has_busy_neighbour(); ++tries) {
    ::poll(nullptr, 0, neighbour_pause_ms);
  }
  Control& control = memory_.control();
  __atomic_store_n(&control.done, request, __ATOMIC_SEQ_CST);
  Memory::wake(&control.done);
}

void Session::give_verdict(std::uint32_t verdict, const std::string& message) {
  Control& control = memory_.control();
  const std::size_t length = std::min(message.size(), sizeof control.message - 1);
  std::memcpy(control.message, message.data(), length);
  control.message[length] = 0;
  __atomic_store_n(&control.verdict, verdict, __ATOMIC_SEQ_CST);
  drainer_.call_threads();
}

void Session::fail(const OutputError& error) {
  error_ = error.error;
  const std::string what = error.error == EFBIG ? "the limit on file sizes is reached by " : "cannot go on writing ";
  give_verdict(verdict_failed, what + error.path + " (error " + std::to_string(error.error) + ")");
}

std::uint64_t Session::lost() {
  std::uint64_t sum = __atomic_load_n(&memory_.control().ringless, __ATOMIC_RELAXED) + backlog_.lost();
  for (std::uint32_t i = 0; i < memory_.ring_count(); ++i) sum += memory_.ring(i).lost;
  return sum;
}

// One line for who started the program, and for tests.
void Session::report() {
  if (memory_.control().status_path[0] == 0) return;
  const int fd = ::open(memory_.control().status_path, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0) return;
  Control& control = memory_.control();
  const Totals& totals = outputs_.totals();
  const std::string line =
      "pid=" + std::to_string(control.process) + " events=" + std::to_string(totals.events) +
      " threads=" + std::to_string(totals.threads) + " bytes=" + std::to_string(outputs_.bytes()) +
      " time_ns=" + std::to_string(clock_ns() - control.start_ns) + " lost=" + std::to_string(lost()) +
      " repairs=" + std::to_string(order_.repairs().total()) + " inversions=" + std::to_string(order_.inversions()) +
      " doubts=" + std::to_string(order_.repairs()[Repair::order_race]) + " leases=" + std::to_string(control.leases) +
      " wait_status=" + std::to_string(wait_status_) + " drain_cpu_ns=" + std::to_string(drain_cpu_ns_) +
      " cpu_ns=" + std::to_string(cpu_ns(CLOCK_PROCESS_CPUTIME_ID)) + " failed=" + std::to_string(error_) +
      " path=" + control.paths[0] + "\n";
  if (::write(fd, line.data(), line.size()) < 0) ::close(fd);
  ::close(fd);
}

}  // namespace cmt::collector
