#include "cmtreplay/run/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace cmt::replay {
namespace {

constexpr std::uint32_t spins = 4000;  // some 50 us
constexpr int glance_ms = 20;          // between two looks at a worker that is given operations
constexpr int patience_ms = 250;       // at one that is left alone

int cpu_count(const std::vector<int>& bound) {
  if (!bound.empty()) return static_cast<int>(bound.size());
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/// A new trace is written in recorded order, in which an address may be handed out only after it came back.
Order order_for(const PreparedTrace& trace, const RunOptions& options) {
  return options.pointers && trace.order() == Order::free ? Order::strict : trace.order();
}

}  // namespace

bool more_threads_than_cpus(const Stage& stage) {
  return stage.trace.lanes() > static_cast<std::uint32_t>(cpu_count(stage.cpus));
}

std::string Death::text(unsigned timeout_seconds) const {
  return hung ? "no call has returned for " + std::to_string(timeout_seconds) + " s" : ending.text();
}

Worker::Worker(const Stage& stage, const Allocator& allocator, const RunOptions& options)
    : stage_(stage),
      order_(order_for(stage.trace, options)),
      streamed_(!stage.trace.chunks() || order_ != stage.trace.order()),
      slots_("slots", stage.trace.slots() * sizeof(void*)),
      stacks_("stacks", 0),
      watchdog_(stage.timeout_seconds) {
  if (streamed_)
    feed_ = std::make_unique<StreamedFeed>(stage.trace, order_, [this] { wait_for_room(); });
  else
    feed_ = std::make_unique<PreparedFeed>(stage.trace);
  ControlSizes sizes = feed_->sizes();
  sizes.latencies = options.latencies;
  region_ = std::make_unique<ControlRegion>(sizes);
  feed_->open(*region_);
  stacks_.promise(std::uint64_t{sizes.lanes - 1} * lane_stack_bytes);
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
    throw std::system_error(errno, std::generic_category(), "socketpair");
  talk_ = Fd(fds[0]);
  const Fd its_end(fds[1]);
  fcntl(its_end.get(), F_SETFD, 0);
  fill_control(stage, allocator, options);
  region_->get().talk_fd = its_end.get();
  child_ = std::make_unique<Child>(launch_of(stage.worker, std::to_string(region_->fd()), allocator));
  if (!stage.cpus.empty()) pin();
}

void Worker::fill_control(const Stage& stage, const Allocator& allocator, const RunOptions& options) {
  control& control = region_->get();
  control.operations_fd = feed_->operations_fd();
  control.chunk_count = feed_->chunk_count();
  control.slots_fd = slots_.fd();
  control.stacks_fd = stacks_.fd();
  control.pointers_fd = options.pointers ? options.pointers->fd() : -1;
  control.target = allocator.null ? target_null : target_process;
  control.drain_fd = options.drain ? options.drain->fd() : -1;
  control.drain_count = static_cast<std::uint32_t>(stage.trace.end_slots().size());
  control.counts_usable = options.counts_usable ? 1 : 0;
  control.verification_fd = options.verification_fd;
  control.touch = allocator.null || options.verification_fd >= 0 ? touch_none : stage.touched;
  control.replaced = allocator.replaced;
  control.several = order_ == Order::one_thread ? 0 : 1;
  control.spins = more_threads_than_cpus(stage) ? 0 : spins;
  control.slot_count = stage.trace.slots();
  control.pointer_count = stage.trace.pointers();
  control.pace = stage.pace;
}

void Worker::pin() {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : stage_.cpus) CPU_SET(static_cast<unsigned>(cpu), &set);
  if (sched_setaffinity(pid(), sizeof set, &set) != 0)
    throw std::system_error(errno, std::generic_category(), "binding to the CPUs of --pin");
}

std::uint64_t Worker::replay_bytes() const {
  const std::uint64_t ring = streamed_ ? std::uint64_t{feed_->chunk_count()} * chunk_words * sizeof(std::uint64_t) : 0;
  const std::uint64_t stacks = (region_->lanes().size() - 1) * lane_stack_used_bytes;
  return stage_.trace.slots() * sizeof(void*) + region_->bytes() + ring + stacks;
}

/// Runs what talks to the worker, and tells of its death.
template <class Act>
std::optional<Death> Worker::guarded(Act act) {
  try {
    act();
    return std::nullopt;
  } catch (const Gone&) {
    return death();
  }
}

std::optional<Death> Worker::wait_until_ready() {
  return guarded([this] { wait_for_byte(); });
}

std::optional<Death> Worker::advance(const Mark& mark) {
  return guarded([this, &mark] {
    feed_->advance(mark);
    go();
    wait_until_still();
  });
}

std::optional<Death> Worker::finish() {
  return guarded([this] {
    feed_->finish();
    go();
    wait_for_byte();
  });
}

std::optional<Death> Worker::drain() {
  return guarded([this] {
    going_ = false;
    go();
    wait_for_byte();
  });
}

void Worker::go() {
  if (going_) return;
  going_ = true;
  const char byte = 'g';
  while (send(talk_.get(), &byte, 1, MSG_NOSIGNAL) < 0 && errno == EINTR) continue;
}

void Worker::check_set_up() {
  const control& control = region_->get();
  if (control.setup_errno != 0)
    throw std::system_error(control.setup_errno, std::generic_category(), "the worker's memory");
  if (control.thread_errno != 0)
    throw std::system_error(control.thread_errno, std::generic_category(), "the worker's threads");
}

/// What there is to see within so many milliseconds, a byte from the worker apart. Throws Gone.
void Worker::look_after(int milliseconds) {
  std::array<pollfd, 2> wanted{
      {{.fd = talk_.get(), .events = 0, .revents = 0}, {.fd = stage_.interrupts.fd(), .events = POLLIN, .revents = 0}}};
  poll(wanted.data(), wanted.size(), milliseconds);
  if (stage_.interrupts.pending()) throw Interrupted();
  if (wanted[0].revents & POLLHUP) throw Gone();
  if (!watchdog_.look(region_->lanes(), Watchdog::Clock::now())) return;
  hung_ = true;
  throw Gone();
}

void Worker::wait_for_byte() {
  pollfd wanted{.fd = talk_.get(), .events = POLLIN, .revents = 0};
  std::array<pollfd, 2> both{{wanted, {.fd = stage_.interrupts.fd(), .events = POLLIN, .revents = 0}}};
  char byte = 0;
  while (poll(both.data(), both.size(), patience_ms) <= 0 || (both[0].revents & (POLLIN | POLLHUP)) == 0) look_after(0);
  if (stage_.interrupts.pending()) throw Interrupted();
  if (read(talk_.get(), &byte, 1) != 1) throw Gone();
  check_set_up();
}

/// Sleeps until `missing` says 0: how many changes it takes at least. Has a glance at the worker now and then.
template <class Missing>
static void wait_for_changes(control& control, Missing missing, const std::function<void()>& glance) {
  __atomic_store_n(&control.parent_sleeps, 1U, __ATOMIC_SEQ_CST);
  for (;;) {
    const std::uint32_t seen = __atomic_load_n(&control.changes, __ATOMIC_SEQ_CST);
    const std::uint32_t changes = missing();
    if (changes == 0) break;
    __atomic_store_n(&control.wake_at, seen + changes, __ATOMIC_SEQ_CST);
    futex_wait(&control.changes, seen, glance_ms * 1'000'000, 1);
    glance();
  }
  __atomic_store_n(&control.parent_sleeps, 0U, __ATOMIC_SEQ_CST);
}

/// Until half of the ring is free, or the worker has nothing more to do.
void Worker::wait_for_room() {
  go();
  const std::uint32_t wanted = feed_->chunk_count() / 2;
  const auto missing = [this, wanted]() -> std::uint32_t {
    const std::span freed(region_->freed(), feed_->chunk_count());
    const auto count = static_cast<std::uint32_t>(
        std::count_if(freed.begin(), freed.end(), [](auto& byte) { return __atomic_load_n(&byte, __ATOMIC_ACQUIRE); }));
    return count >= wanted || (count > 0 && is_still()) ? 0 : wanted - count;
  };
  wait_for_changes(region_->get(), missing, [this] { look_after(0); });
}

void Worker::wait_until_still() {
  wait_for_changes(
      region_->get(), [this] { return is_still() ? 0U : 1U; }, [this] { look_after(0); });
}

bool Worker::is_still() {
  for (const lane& lane : region_->lanes()) {
    const std::uint32_t state = __atomic_load_n(&lane.state, __ATOMIC_ACQUIRE);
    const bool rests = state == lane_unused || state == lane_idle || state == lane_ended;
    const std::uint64_t published = __atomic_load_n(&lane.published, __ATOMIC_RELAXED);
    if (!rests || __atomic_load_n(&lane.position, __ATOMIC_RELAXED) != published * sizeof(std::uint64_t)) return false;
  }
  return true;
}

Death Worker::death() {
  if (hung_) child_->kill();
  const Ending ending = child_->wait();
  check_set_up();
  const auto lanes = std::as_const(*region_).lanes();
  const std::uint32_t faulted = region_->get().faulted_lane;
  const std::uint32_t lane = faulted != 0 ? faulted - 1 : Watchdog::culprit(lanes);
  Death death{.ending = ending, .hung = hung_};
  if (going_) death.event = stage_.trace.event_at(lane, lanes[lane].position / sizeof(std::uint64_t), order_);
  return death;
}

}  // namespace cmt::replay
