// Fills in the control region, starts the process, and waits for it without missing its death.
#include "cmtreplay/run/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <system_error>

#include "cmtreplay/run/control/program_clock.h"
#include "toolkit/output/numbers.h"

namespace cmt::replay {
namespace {

constexpr std::uint32_t spins = 4000;       // some 50 us
constexpr int check_fed_worker_ms = 20;     // distance of checks while the worker is given operations
constexpr int check_alone_worker_ms = 250;  // while it runs by itself

int cpu_count(const std::vector<int>& bound) {
  if (!bound.empty()) return static_cast<int>(bound.size());
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

touch touch_of(const std::string& name) {
  if (name == "none") return touch_none;
  if (name == "first") return touch_first;
  return name == "all" ? touch_all : touch_pages;
}

/// The order of a run. A new trace is written in recorded order, so an address may be reused only by an event after the
/// one that frees it.
Order order_for(const PreparedTrace& trace, const RunOptions& options) {
  return options.pointers && trace.plan().order == Order::free ? Order::strict : trace.plan().order;
}

/// A file of fixed size. An allocator that writes a message at every call fills it, and later ones are lost.
Fd open_messages() {
  constexpr off_t bytes_max = 1 << 20;
  Fd file(memfd_create("messages", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (ftruncate(file.get(), bytes_max) != 0 || fcntl(file.get(), F_ADD_SEALS, F_SEAL_GROW) != 0)
    throw std::system_error(errno, std::generic_category(), "a file for an allocator's messages");
  return file;
}

/// While it lives, processes that this thread starts get the same addresses each time. Some allocators draw random
/// numbers from their addresses (jemalloc spreads its purges by them), and then draw the same ones in every run. A
/// sandbox may forbid fixed addresses; they then differ.
class FixedAddresses {
 public:
  explicit FixedAddresses(bool wanted) : before_(wanted ? personality(unknown_persona) : -1) {
    if (before_ != -1) personality(static_cast<unsigned long>(before_) | ADDR_NO_RANDOMIZE);
  }
  ~FixedAddresses() {
    if (before_ != -1) personality(static_cast<unsigned long>(before_));
  }
  FixedAddresses(const FixedAddresses&) = delete;
  FixedAddresses& operator=(const FixedAddresses&) = delete;

 private:
  static constexpr unsigned long unknown_persona = 0xffffffff;  ///< only asks for the current persona

  int before_;
};

}  // namespace

bool more_threads_than_cpus(const PreparedTrace& trace, const ReplayOptions& options) {
  return trace.plan().lanes > static_cast<std::uint32_t>(cpu_count(options.cpus));
}

bool uses_counterparts(const ReplayOptions& options, const Allocator& allocator) {
  return options.counterparts || !allocator.prefix.empty();
}

bool is_clock_recorded(const ReplaySettings& settings, bool memory_run) {
  const ClockRuns runs = settings.options.clock;
  const bool has_times = settings.trace.plan().facts.recorded_ns != unknown;
  return has_times && (runs == ClockRuns::all || (runs == ClockRuns::memory && memory_run));
}

std::string Death::text() const {
  if (!cause.empty()) return cause;
  if (hung())
    return (began ? "no call has returned for " : "it has not started for ") + std::to_string(timeout_seconds) + " s";
  const std::string killed = ending.signal == SIGKILL ? ", perhaps by the kernel, as memory was short" : "";
  return ending_text(ending) + killed + (touched ? ", while its block was touched" : "");
}

std::string Death::place(std::uint64_t events) const {
  if (event != 0) return "at event " + output::with_commas(event) + " of " + output::with_commas(events);
  return began ? "after the last event" : "before the first event";
}

WorkerProcess::WorkerProcess(const ReplaySettings& settings, const Allocator& allocator, const RunOptions& options)
    : settings_(settings),
      name_(allocator.name),
      printed_(allocator.printed),
      messages_(options.is_debugged ? Fd() : open_messages()),
      order_(order_for(settings.trace, options)),
      slots_("slots", settings.trace.plan().slots * sizeof(void*)),
      stacks_("stacks", 0),
      watchdog_(settings.options.timeout_seconds) {
  open_feed(options);
  ControlSizes sizes = feed_->sizes();
  sizes.latencies = options.latencies;
  ProgramClock clock;
  if (is_clock_recorded(settings, options.memory)) clock = program_clock(settings.trace.plan());
  sizes.clock_points = static_cast<std::uint32_t>(clock.points.size());
  region_ = std::make_unique<ControlRegion>(sizes);
  std::copy(clock.points.begin(), clock.points.end(), region_->clock_points().begin());
  feed_->attach(*region_);
  stacks_.resize(std::uint64_t{sizes.lanes - 1} * lane_stack_bytes);
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
    throw std::system_error(errno, std::generic_category(), "socketpair");
  socket_ = Fd(fds[0]);
  const Fd worker_end(fds[1]);
  fcntl(worker_end.get(), F_SETFD, 0);
  fill_control(allocator, options);
  region_->get().socket_fd = worker_end.get();
  const Fd no_input(open("/dev/null", O_RDONLY | O_CLOEXEC));
  launch::SpawnOptions spawn = worker_command(settings.worker, std::to_string(region_->fd()), allocator);
  spawn.input_fd = no_input.get();
  spawn.output_fd = spawn.error_fd = options.is_debugged ? STDERR_FILENO : messages_.get();
  const FixedAddresses fixed(region_->get().clock_recorded != 0);
  child_ = options.is_debugged ? launch::ChildProcess::become(spawn) : std::make_unique<launch::ChildProcess>(spawn);
  if (!settings.options.cpus.empty()) bind_to_cpus();
}

WorkerProcess::~WorkerProcess() {
  child_.reset();
  if (messages_.get() >= 0) print_messages();
}

void WorkerProcess::print_messages() const {
  const off_t bytes = lseek(messages_.get(), 0, SEEK_CUR);  // the worker has moved it
  if (bytes <= 0) return;
  std::string text(static_cast<std::size_t>(bytes), '\0');
  if (pread(messages_.get(), text.data(), text.size(), 0) != bytes || !printed_->insert(text).second) return;
  if (settings_.before_message) settings_.before_message();
  std::fputs(text.c_str(), stderr);
}

void WorkerProcess::open_feed(const RunOptions& options) {
  const auto when_full = [this] { wait_for_room(); };
  const PreparedTrace& trace = settings_.trace;
  if (!trace.chunks().kept() || order_ != trace.plan().order)
    feed_ = std::make_unique<PlanningFeed>(trace, order_, when_full);
  else if (!trace.chunks().in_memory() || options.small)
    feed_ = std::make_unique<CopyingFeed>(trace, when_full);
  else
    feed_ = std::make_unique<PreparedFeed>(trace);
}

void WorkerProcess::fill_control(const Allocator& allocator, const RunOptions& options) {
  control& control = region_->get();
  control.operations_fd = feed_->chunks().memory().fd();
  control.chunk_count = feed_->chunks().count();
  control.slots_fd = slots_.fd();
  control.stacks_fd = stacks_.fd();
  control.pointers_fd = options.pointers ? options.pointers->fd() : -1;
  control.target = allocator.null ? target_null : target_process;
  control.drain_fd = options.drain ? options.drain->fd() : -1;
  control.drain_count = static_cast<std::uint32_t>(settings_.trace.plan().end_slots.size());
  control.counts_usable = options.counts_usable ? 1 : 0;
  control.verification_fd = options.verification_fd;
  control.touch = allocator.null || options.verification_fd >= 0 ? touch_none : touch_of(settings_.options.touch);
  control.touches_recorded = allocator.null || options.verification_fd >= 0 ? 0 : 1;
  if (const TraceFacts& facts = settings_.trace.plan().facts; facts.touched_min != 0)
    control.touched_min = facts.touched_min;
  control.gives_back = settings_.trace.plan().facts.give_back_calls != 0 ? 1 : 0;
  control.counterparts = uses_counterparts(settings_.options, allocator) ? 1 : 0;
  control.replaced = allocator.replaced;
  control.several = order_ == Order::one_thread ? 0 : 1;
  control.spins = more_threads_than_cpus(settings_.trace, settings_.options) ? 0 : spins;
  control.slot_count = settings_.trace.plan().slots;
  control.pointer_count = settings_.trace.plan().pointers;
  control.pace = settings_.options.pace;
  control.clock_recorded = is_clock_recorded(settings_, options.memory) ? 1 : 0;
  control.is_debugged = options.is_debugged ? 1 : 0;
  control.address_shift = options.address_shift;
  rlimit space{}, data{};
  getrlimit(RLIMIT_AS, &space);
  getrlimit(RLIMIT_DATA, &data);
  control.limits[0] = space.rlim_cur;
  control.limits[1] = data.rlim_cur;
}

void WorkerProcess::bind_to_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : settings_.options.cpus) CPU_SET(static_cast<unsigned>(cpu), &set);
  if (sched_setaffinity(pid(), sizeof set, &set) != 0)
    throw std::system_error(errno, std::generic_category(), "binding to the CPUs of --pin");
}

std::uint64_t WorkerProcess::replay_bytes() const {
  const std::uint64_t ring = std::uint64_t{feed_->sizes().ring_chunks} * chunk_words * sizeof(std::uint64_t);
  const std::uint64_t stacks = (region_->lanes().size() - 1) * lane_stack_used_bytes;
  return settings_.trace.plan().slots * sizeof(void*) + region_->bytes() + ring + stacks;
}

void WorkerProcess::run_until(const Mark& mark) {
  feed_->publish_until(mark);
  resume();
  wait_for_changes([this] { return is_still() ? 0U : 1U; });
}

void WorkerProcess::run_to_end() {
  feed_->publish_rest();
  resume();
  wait_for_byte();
}

void WorkerProcess::stop_at(const StopPoint& point) {
  run_until(point.before);
  region_->get().trapped_lane = point.lane + 1;
  if (point.after.event != point.before.event) run_until(point.after);
}

void WorkerProcess::let_end() {
  resumed_ = false;
  resume();
}

void WorkerProcess::drain() {
  let_end();
  wait_for_byte();
}

void WorkerProcess::resume() {
  if (resumed_) return;
  resumed_ = true;
  const char byte = 'g';
  while (send(socket_.get(), &byte, 1, MSG_NOSIGNAL) < 0 && errno == EINTR) continue;
}

/// How the allocator has kept the worker from starting, or a thread. Empty: it has not. Throws std::system_error if the
/// machine has.
std::string WorkerProcess::set_up_fault() const {
  const control& control = region_->get();
  const int error = control.setup_errno != 0 ? control.setup_errno : control.thread_errno;
  if (error == 0) return "";
  if (control.setup_errno != 0 && control.limits_lowered != 0)
    return "it lowers the limit of its process's memory, and the replay's has no room there";
  if (control.setup_errno == 0 && control.thread_refused != 0)
    return "a thread cannot be started: the allocator refused the memory that pthread_create asks for";
  throw std::system_error(error, std::generic_category(),
                          name_ + (control.setup_errno != 0 ? ": the worker's memory" : ": the worker's threads"));
}

/// Throws Interrupted, or Death if the worker is dead or hangs.
void WorkerProcess::check_worker() {
  pollfd wanted{.fd = socket_.get(), .events = 0, .revents = 0};
  poll(&wanted, 1, 0);
  if (settings_.interrupts.pending()) throw Interrupted();
  if (settings_.on_wait) settings_.on_wait(share_done());
  // A process that the worker has forked may keep the socket open.
  if ((wanted.revents & POLLHUP) || child_->has_ended()) throw_death(false);
  const control& control = region_->get();
  const Outside outside{.rests = __atomic_load_n(&control.waits_for_parent, __ATOMIC_ACQUIRE) != 0,
                        .calls = __atomic_load_n(&control.calls_outside, __ATOMIC_RELAXED)};
  if (watchdog_.hangs(region_->lanes(), outside, Watchdog::Clock::now())) throw_death(true);
}

void WorkerProcess::wait_for_byte() {
  std::array<pollfd, 2> wanted{{{.fd = socket_.get(), .events = POLLIN, .revents = 0},
                                {.fd = settings_.interrupts.fd(), .events = POLLIN, .revents = 0}}};
  char byte = 0;
  while (poll(wanted.data(), wanted.size(), check_alone_worker_ms) <= 0 ||
         (wanted[0].revents & (POLLIN | POLLHUP)) == 0)
    check_worker();
  if (settings_.interrupts.pending()) throw Interrupted();
  if (read(socket_.get(), &byte, 1) != 1) throw_death(false);
  if (std::string fault = set_up_fault(); !fault.empty()) throw Death{.cause = std::move(fault)};
}

/// Sleeps until `missing` returns 0. It returns the least number of further changes that it takes until then.
template <class Missing>
void WorkerProcess::wait_for_changes(Missing missing) {
  control& control = region_->get();
  __atomic_store_n(&control.parent_sleeps, 1U, __ATOMIC_SEQ_CST);
  for (;;) {
    const std::uint32_t seen = __atomic_load_n(&control.changes, __ATOMIC_SEQ_CST);
    const std::uint32_t changes = missing();
    if (changes == 0) break;
    __atomic_store_n(&control.wake_at, seen + changes, __ATOMIC_SEQ_CST);
    futex_wait(&control.changes, seen, check_fed_worker_ms * 1'000'000, 1);
    check_worker();
  }
  __atomic_store_n(&control.parent_sleeps, 0U, __ATOMIC_SEQ_CST);
}

/// Waits until half of the ring is free, or until the worker has nothing more to do.
void WorkerProcess::wait_for_room() {
  resume();
  const std::uint32_t wanted = feed_->chunks().count() / 2;
  const auto missing = [this, wanted]() -> std::uint32_t {
    const std::span freed(region_->freed(), feed_->chunks().count());
    const auto count = static_cast<std::uint32_t>(
        std::count_if(freed.begin(), freed.end(), [](auto& byte) { return __atomic_load_n(&byte, __ATOMIC_ACQUIRE); }));
    return count >= wanted || (count > 0 && is_still()) ? 0 : wanted - count;
  };
  wait_for_changes(missing);
}

/// The share of the operations that is done. A run in another order than the planned one has a few operations more.
double WorkerProcess::share_done() const {
  double done = 0, all = 1;
  for (const lane& lane : std::as_const(*region_).lanes())
    done += static_cast<double>(__atomic_load_n(&lane.position, __ATOMIC_RELAXED)) / sizeof(std::uint64_t);
  for (const std::uint64_t end : settings_.trace.plan().ends) all += static_cast<double>(end);
  return done / all;
}

bool WorkerProcess::is_still() {
  for (const lane& lane : region_->lanes()) {
    const std::uint32_t state = __atomic_load_n(&lane.state, __ATOMIC_ACQUIRE);
    const bool rests = state == lane_unused || state == lane_idle || state == lane_ended;
    const std::uint64_t published = __atomic_load_n(&lane.published, __ATOMIC_RELAXED);
    if (!rests || __atomic_load_n(&lane.position, __ATOMIC_RELAXED) != published * sizeof(std::uint64_t)) return false;
  }
  return true;
}

/// Throws the death with its event: that of the lane in which a signal came, or else of the lane that hangs.
void WorkerProcess::throw_death(bool hung) {
  if (hung) child_->kill();
  Death death{.ending = child_->wait(), .timeout_seconds = hung ? settings_.options.timeout_seconds : 0};
  death.cause = set_up_fault();
  const auto lanes = std::as_const(*region_).lanes();
  const std::uint32_t faulted = region_->get().faulted_lane;
  const std::uint32_t lane = faulted != 0 ? faulted - 1 : Watchdog::hanging_lane(lanes);
  const OperationPosition position{.lane = lane, .words = lanes[lane].position / sizeof(std::uint64_t)};
  death.began = resumed_;
  death.touched = __atomic_load_n(&lanes[lane].state, __ATOMIC_ACQUIRE) == lane_touching;
  if (resumed_) death.event = settings_.trace.events_at({position}, order_).front();
  throw death;
}

}  // namespace cmt::replay
