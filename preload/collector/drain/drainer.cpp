// The passes of the drainer and the loop of its thread. The hard parts are how much memory each ring gets, and when to
// sleep.

#include "preload/collector/drain/drainer.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cassert>
#include <ctime>

#include "libcmt/trace/files.h"

namespace cmt::collector {
namespace {

constexpr std::uint64_t quiet_ns = 1'000'000'000, readable_after_ns = 1'000'000'000;
constexpr std::uint64_t page_records = 4096 / slot_bytes;
constexpr std::uint64_t deep_sleep_ns = 100'000'000, early_sleep_ns = 2'000'000;
constexpr timespec retry_sleep{0, 1'000'000};

static_assert(lock_at_work == recorder_at_work && lock_is_awaited == recorder_is_awaited);

/// The begin of the page that a position is in.
constexpr std::uint64_t page_of(std::uint64_t position) { return position / page_records * page_records; }

std::uint32_t waiting_threads(const Ring& ring) { return __atomic_load_n(&ring.waiting, __ATOMIC_ACQUIRE); }

/// As in the kernel's sched/types.h.
struct SchedAttributes {
  std::uint32_t size, policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime, deadline, period;
};

/// Asks the kernel for short time slices of the calling thread, which are granted sooner. Otherwise kernels from 6.12
/// on let other threads finish their slices first.
void request_short_slices() {
  SchedAttributes attributes{};
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0 || attributes.policy != SCHED_OTHER)
    return;
  attributes.runtime = 100'000;
  ::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace

std::optional<std::size_t> Drainer::pass(bool must) {
  CPU_ZERO(&busy_);
  if (!must && !backlog_.has_room()) return std::nullopt;
  WorkItem cut{.type = WorkItem::Type::cut};
  cut.clock_stamp = clock_stamp(memory_.start_facts());
  cut.clock_ns = clock_ns();
  cut.stamp = cut.clock_stamp - stamp_slack;
  memory_.raise_clock(cut.clock_stamp);
  memory_.control().clock_stamp = cut.clock_stamp;
  memory_.control().clock_ns = cut.clock_ns;
  memory_.note_progress();
  const std::uint32_t rings = memory_.ring_count();
  if (states_.size() < rings) states_.resize(rings);
  pace_.begin_pass(cut.clock_ns);
  std::size_t moved = 0;
  for (std::uint32_t i = 0; i < rings; ++i) moved += drain_ring(i, cut.clock_ns);
  backlog_.put(std::move(cut));
  if (hints_ != nullptr) hints_->put(blocks_);
  pace_.end_pass();
  return moved;
}

std::size_t Drainer::drain_ring(std::uint32_t number, std::uint64_t now_ns) {
  Ring& ring = memory_.ring(number);
  if (__atomic_load_n(&ring.owner, __ATOMIC_ACQUIRE) == 0) return 0;
  assert(number < states_.size());
  RingState& state = states_[number];
  if (state.limit == 0) {
    state = initial_state(ring);
    if (state.is_fully_backed) fully_backed_bytes_ += state.slots * slot_bytes;
  }
  const std::size_t moved = read_records(ring, state);
  if (memory_.is_recoverable()) raise_limit_to_saved(ring, state);
  if (moved == 0) {
    if (!memory_.is_recoverable()) shrink_if_quiet(ring, state, now_ns);
    if (state.is_crowded && waiting_threads(ring) != 0) back_next_page(ring, state);
    return 0;
  }
  memory_.note_progress();
  state.quiet_since_ns = now_ns;
  __atomic_store_n(&ring.tail, state.tail, __ATOMIC_RELEASE);
  if (!memory_.is_recoverable()) raise_limit(ring, state, moved);
  backlog_.put_records(number, packer_);
  return moved;
}

bool Drainer::skip_unpublished() {
  bool found = false;
  for (std::uint32_t i = 0; i < states_.size(); ++i) {
    RingState& state = states_[i];
    if (state.limit == 0) continue;
    const std::size_t skipped = memory_.skip_unpublished(memory_.ring(i), state.tail, state.limit, packer_);
    if (skipped == 0) continue;
    found = true;
    state.tail += skipped;
    backlog_.note_lost(skipped);
    backlog_.put_records(i, packer_);
  }
  return found;
}

// Reads in pieces, so that a waiting thread can go on while the rest is read.
std::size_t Drainer::read_records(Ring& ring, RingState& state) {
  constexpr std::uint64_t piece = 1024;
  std::size_t moved = 0, read, wanted = piece;
  do {
    // Beyond the limit, a file has holes. On a full volume a page of these cannot be read, either.
    if (memory_.is_recoverable()) wanted = std::min(piece, state.limit - state.tail);
    read = memory_.read(ring, state.tail, wanted, packer_, hints_ != nullptr ? &blocks_ : nullptr);
    moved += read;
    state.tail += read;
    if (read == piece && state.is_fully_backed && !memory_.is_recoverable())
      set_limit(ring, state, state.tail + state.slots);
  } while (read == piece && moved < state.slots);
  return moved;
}

Drainer::RingState Drainer::initial_state(const Ring& ring) const {
  RingState state{
      .slots = memory_.slots_of(ring).count, .tail = ring.tail, .limit = ring.limit, .quiet_since_ns = clock_ns()};
  state.is_fully_backed = state.limit - state.tail == state.slots;
  state.is_crowded = !state.is_fully_backed && state.limit - state.tail <= ring_slots_crowded;
  return state;
}

void Drainer::raise_limit_to_saved(Ring& ring, RingState& state) {
  state.is_fully_backed = state.is_fully_backed || memory_.allocate(ring, 0, state.slots);
  const std::uint64_t limit = memory_.saved(ring).position + state.slots;
  if (state.is_fully_backed && limit > state.limit) set_limit(ring, state, limit);
}

/// Whether so many more bytes are within the bound for all rings. The memory of rings at rest counts too: 32 KiB for
/// each large one, a page for each other one.
bool Drainer::may_grow(std::uint64_t bytes) const {
  const std::uint64_t rings = memory_.ring_count(), large = std::min<std::uint64_t>(rings, rings_large_max);
  const std::uint64_t at_rest = (large * ring_slots_at_rest + (rings - large) * page_records) * slot_bytes;
  return fully_backed_bytes_ + at_rest + bytes <= rings_bytes_max;
}

/// Backs the page after the limit of a crowded ring, and gives back the pages that have been read. Such a ring has the
/// page of its tail. It gets the next page when that one is read. It also gets the next page when its thread waits,
/// because the rest of a page may be too small for an event of several records.
void Drainer::back_next_page(Ring& ring, RingState& state) {
  const bool is_read = state.tail == state.limit;
  const std::uint64_t limit = (is_read ? page_of(state.tail) : state.limit) + page_records;
  if (limit > state.tail + state.slots || !memory_.allocate(ring, state.limit, limit)) return;
  memory_.release(ring, state.released, state.tail);
  state.released = page_of(state.tail);
  set_limit(ring, state, limit);
}

// A ring that the pass found a quarter full gets memory for all of its slots.
void Drainer::raise_limit(Ring& ring, RingState& state, std::size_t moved) {
  const std::uint64_t allowed = state.is_fully_backed ? state.slots : state.limit - (state.tail - moved);
  pace_.note_ring(moved, allowed);
  const std::uint32_t processor = __atomic_load_n(&ring.processor, __ATOMIC_RELAXED);
  if (moved * 16 >= allowed && processor != 0) CPU_SET(processor - 1, &busy_);
  if (!state.is_fully_backed && moved * 4 >= allowed && may_grow(state.slots * slot_bytes) &&
      memory_.allocate(ring, 0, state.slots)) {
    state.is_fully_backed = true;
    fully_backed_bytes_ += state.slots * slot_bytes;
  }
  state.is_shrinking = false;
  if (state.is_fully_backed) {
    set_limit(ring, state, state.tail + state.slots);
    return;
  }
  if (state.is_crowded) {
    const bool is_short = state.limit - state.tail < page_records / 2;
    const bool has_room = may_grow(memory_.ring_count() * page_records * slot_bytes);
    const bool is_needed = state.tail == state.limit || waiting_threads(ring) != 0 || (is_short && has_room);
    is_needed ? back_next_page(ring, state) : set_limit(ring, state, state.limit);
    return;
  }
  const std::uint64_t limit = std::max(state.limit, state.tail + std::min(allowed, std::uint64_t{ring_slots_at_rest}));
  if (!memory_.allocate(ring, state.limit, limit)) return;
  memory_.release(ring, page_of(state.tail - moved), state.tail);
  set_limit(ring, state, limit);
}

void Drainer::set_limit(Ring& ring, RingState& state, std::uint64_t limit) {
  state.limit = limit;
  __atomic_store_n(&ring.soft, state.tail + (limit - state.tail) / 4, __ATOMIC_SEQ_CST);
  if (memory_.are_threads_notified()) __atomic_store_n(&ring.soft, 0, __ATOMIC_SEQ_CST);
  __atomic_store_n(&ring.limit, limit, __ATOMIC_SEQ_CST);
  if (__atomic_exchange_n(&ring.waiting, 0, __ATOMIC_SEQ_CST) != 0) RingMemory::wake(&ring.limit);
}

/// Gives back memory of a ring that has been quiet for two seconds: lowers its limit first, and a second later releases
/// the memory beyond the limit. A thread that has read the old limit writes at most one event by that limit, and this
/// event is at the tail.
void Drainer::shrink_if_quiet(Ring& ring, RingState& state, std::uint64_t now_ns) {
  if (!state.is_fully_backed || now_ns - state.quiet_since_ns < quiet_ns) return;
  const bool is_small = state.slots <= ring_slots_at_rest;
  const std::uint64_t limit = is_small ? page_of(state.tail) + 2 * page_records : state.tail + ring_slots_at_rest;
  state.quiet_since_ns = now_ns;
  if (!state.is_shrinking) {
    state.is_shrinking = true;
    set_limit(ring, state, limit);
    return;
  }
  state.is_shrinking = state.is_fully_backed = false;
  state.is_crowded = is_small;
  state.released = page_of(state.tail);
  fully_backed_bytes_ -= state.slots * slot_bytes;
  memory_.release(ring, limit, state.tail + state.slots);
}

void leave_busy_processors(const cpu_set_t& allowed, const cpu_set_t& busy, int processor, pid_t thread) {
  if (processor < 0 || !CPU_ISSET(static_cast<std::size_t>(processor), &busy)) return;
  cpu_set_t busy_here, others;
  CPU_AND(&busy_here, &allowed, &busy);
  CPU_XOR(&others, &allowed, &busy_here);
  if (CPU_COUNT(&others) == 0 || ::sched_setaffinity(thread, sizeof others, &others) != 0) return;
  ::sched_setaffinity(thread, sizeof allowed, &allowed);
}

namespace {

class DrainThread {
 public:
  DrainThread(RingMemory& memory, Backlog& backlog, const SessionState& state, const std::vector<int>& outputs,
              LargeBlockHints* hints)
      : memory_(memory),
        backlog_(backlog),
        state_(state),
        outputs_(outputs),
        has_hints_(hints != nullptr),
        drainer_(memory, backlog, hints) {
    if (::sched_getaffinity(0, sizeof allowed_processors_, &allowed_processors_) != 0) CPU_ZERO(&allowed_processors_);
  }

  /// Returns the processor time that it took.
  std::uint64_t run() {
    ::prctl(PR_SET_TIMERSLACK, 1);
    request_short_slices();
    while (!state_.is_finished) {
      const std::uint32_t bell = __atomic_load_n(&memory_.control().bell, __ATOMIC_SEQ_CST);
      const bool has_ended = state_.process_end != ProcessEnd::none;
      make_readers_wait(!has_ended);
      const auto moved = drainer_.pass();
      const bool was_asked = pass_on_request();
      stay_off_busy_processors();
      if (has_ended && moved == std::size_t{0} && !drainer_.skip_unpublished()) break;
      if (!was_asked && (!has_ended || !moved)) sleep(bell);
    }
    const std::uint64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    backlog_.put({.type = WorkItem::Type::end});
    return cpu_ns;
  }

 private:
  /// Holds the lock for which readers of the trace wait (libcmt/trace/files.h), except while the program is at work.
  /// The program may begin to leave at any time, and then waits until `readable` is 0.
  void make_readers_wait(bool is_running) {
    Control& control = memory_.control();
    const bool leaves = __atomic_load_n(&control.leaving, __ATOMIC_SEQ_CST) != 0;
    const bool readable = is_running && !leaves && clock_ns() - memory_.start_facts().start_ns > readable_after_ns;
    if (readable == (control.readable != 0)) return;
    struct flock lock = lock_of(readable ? F_UNLCK : F_WRLCK, recorder_is_awaited);
    for (const int fd : outputs_) ::fcntl(fd, F_OFD_SETLKW, &lock);
    __atomic_store_n(&control.readable, readable ? 1 : 0, __ATOMIC_SEQ_CST);
    RingMemory::wake(&control.readable);
  }

  /// Puts a new request into the backlog, after all records that its thread made before the request.
  bool pass_on_request() {
    Control& control = memory_.control();
    const std::uint32_t request = __atomic_load_n(&control.request, __ATOMIC_ACQUIRE);
    if (request == requests_seen_) return false;
    const bool is_finish = __atomic_load_n(&control.request_kind, __ATOMIC_RELAXED) == request_finish;
    // The pass before may have read that thread's ring too early.
    do drainer_.pass(true);
    while (is_finish && drainer_.skip_unpublished());
    requests_seen_ = request;
    backlog_.put({.type = is_finish ? WorkItem::Type::finish : WorkItem::Type::checkpoint, .request = request});
    return true;
  }

  /// Moves the drainer and the encoder away from the processors of the program's threads. The kernel would wake the
  /// drainer where the bell was rung, so that it takes its time from the program.
  void stay_off_busy_processors() const {
    const cpu_set_t& busy = drainer_.busy_processors();
    if (CPU_COUNT(&busy) == 0) return;
    leave_busy_processors(allowed_processors_, busy, ::sched_getcpu(), 0);
    leave_busy_processors(allowed_processors_, busy, state_.encode_processor, state_.encode_thread);
  }

  /// If pages of large blocks are watched, sleeps are short in a young process, so that its blocks are found early.
  timespec deep_sleep() const {
    const std::uint64_t age_ns = clock_ns() - memory_.start_facts().start_ns;
    return {0, static_cast<long>(has_hints_ ? std::clamp(age_ns / 16, early_sleep_ns, deep_sleep_ns) : deep_sleep_ns)};
  }

  /// Sleeps until the bell rings again, or for a time. If the rings fill fast, this time is until the fullest ring is a
  /// quarter full. The bell would mostly wake this thread on the processor of the thread that rang, and take that
  /// thread's time.
  void sleep(std::uint32_t bell) {
    Control& control = memory_.control();
    const bool is_called = backlog_.has_room() && __atomic_load_n(&control.sandboxed, __ATOMIC_RELAXED) == 0;
    const auto brief_ns = is_called ? drainer_.sleep_ns() : std::nullopt;
    const timespec brief{0, static_cast<long>(brief_ns.value_or(0))};
    const timespec deep = deep_sleep();
    const timespec& time = !is_called ? retry_sleep : brief_ns ? brief : deep;
    __atomic_store_n(&control.asleep, brief_ns ? asleep_briefly : asleep_deeply, __ATOMIC_SEQ_CST);
    ::syscall(SYS_futex, &control.bell, FUTEX_WAIT, bell, &time, nullptr, 0);
    __atomic_store_n(&control.asleep, awake, __ATOMIC_SEQ_CST);
  }

  // Shared with the other threads.
  RingMemory& memory_;
  Backlog& backlog_;
  const SessionState& state_;
  const std::vector<int>& outputs_;
  const bool has_hints_;
  // The drainer's own.
  Drainer drainer_;
  cpu_set_t allowed_processors_;
  std::uint32_t requests_seen_ = 0;
};

}  // namespace

std::uint64_t run_drainer(RingMemory& memory, Backlog& backlog, const SessionState& state,
                          const std::vector<int>& outputs, LargeBlockHints* hints) {
  return DrainThread(memory, backlog, state, outputs, hints).run();
}

}  // namespace cmt::collector
