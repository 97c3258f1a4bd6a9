// All waiting is bounded. A thread waits 0.1 s at a time for the first second, and then 1 s. After each wait it checks
// that the collector is still there.
#include "preload/program/tracing.h"

#include <linux/futex.h>
#include <sched.h>

#include "preload/program/collector_start.h"
#include "preload/program/kernel.h"
#include "preload/program/rings.h"

enum { wipe_on_fork = 18, lock_tenths_max = 10 };
/// How long threads wait, in tenths of a second.
enum {
  silence_max = 600,           // for a collector that makes no progress
  attached_silence_max = 100,  // the same, where the kernel would not report its end, or it has not begun
  patience_max = 6000,         // for room in a ring, although the collector makes progress
  looks_often = 10,            // until they look every second only: thousands of threads would keep a processor busy
};

struct Tracing tracing;

static bool has_not_begun(void) { return false; }
bool (*enter_recording)(void) = has_not_begun;
_Alignas(4096) uint32_t generation_page[1024];

void generation_page_start(void) { sys(SYS_madvise, generation_page, sizeof generation_page, wipe_on_fork); }

void generation_page_after_fork(void) {
  set_recording_generation(0);
  if (!sandbox_entered) generation_page[1] = (uint32_t)sys(SYS_getpid, 0);
}

// A child of vfork may be the first to call this after a fork; it is not the process.
uint32_t process_id(void) {
  if (generation_page[1] == 0) generation_page[1] = (uint32_t)sys(SYS_getpid, 0);
  return generation_page[1];
}

bool is_vfork_child(void) { return !sandbox_entered && process_id() != (uint32_t)sys(SYS_getpid, 0); }

// There will be no collector: nothing of the rings is left, and the launcher knows.
static void abandon_start(bool is_fault, long error) {
  rings_discard(tracing.control);
  rings_close_descriptor();
  if (is_fault && !collector_report_refusal(error) && tracing.parents_counts)
    __atomic_fetch_add(&tracing.parents_counts->children, 1, __ATOMIC_RELAXED);
}

void tracing_stop(const char* what, const char* detail, long error) {
  const bool was_stopped = __atomic_exchange_n(&tracing.is_stopped, true, __ATOMIC_SEQ_CST);  // first: is_still_off()
  set_recording_generation(not_recording);
  if (was_stopped) return;
  if (!tracing.is_collector_started) abandon_start(what != NULL, error);
  if (!what) return;
  if (tracing.control) {
    tracing.control->stopped_ns = clock_ns(CLOCK_MONOTONIC);
    __atomic_store_n(&tracing.control->stopped, 1, __ATOMIC_RELEASE);
  }
  write_message(what, detail, error);
}

bool tracing_start_collector(void) {
  if (tracing.is_collector_started) return true;
  must(tracing.control != NULL);
  tracing.is_collector_started = true;
  long failed = collector_start(tracing.control);
  if (!failed) return true;
  if (failed == collector_has_no_room)
    tracing_stop("the limit on address space leaves no room for the collector", "; the program goes on untraced", 0);
  else if (collector_refused_type())
    tracing_stop(collector_refused_path(), collector_refused_type(), 0);
  else if (collector_refused_path())
    tracing_stop("cannot create ", collector_refused_path(), -failed);
  else
    tracing_stop("cannot start the collector", "; the program goes on untraced", -failed);
  abandon_start(true, failed < 0 ? -failed : 0);  // afterwards: it writes over the path that was refused
  return false;
}

void ring_bell(uint32_t depth) {
  struct Control* control = tracing.control;
  must(control != NULL && (depth == asleep_briefly || depth == asleep_deeply));
  __atomic_fetch_add(&control->bell, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&control->asleep, __ATOMIC_SEQ_CST) >= depth && !sandbox_entered)
    sys(SYS_futex, &control->bell, FUTEX_WAKE, 1);
}

bool tracing_has_verdict(void) {
  const uint32_t faults = __atomic_load_n(&tracing.control->faults, __ATOMIC_ACQUIRE);
  if (__atomic_exchange_n(&tracing.faults, faults, __ATOMIC_RELAXED) != faults && faults)
    write_message(tracing.control->fault, "", 0);
  uint32_t verdict = __atomic_load_n(&tracing.control->verdict, __ATOMIC_ACQUIRE);
  if (verdict == verdict_failed) tracing_stop(tracing.control->message, "", 0);
  if (verdict == verdict_enough) tracing_stop(NULL, "", 0);
  return verdict != verdict_go_on;
}

static uint32_t collector_word(void) { return __atomic_load_n(&tracing.control->collector, __ATOMIC_ACQUIRE); }

static bool has_collector_ended(void) { return collector_is_gone() || (collector_word() & collector_has_ended); }

static bool is_collector_lost(void) {
  if (tracing.is_stopped || tracing_has_verdict()) return true;
  if (!has_collector_ended()) return false;
  if (!tracing_has_verdict()) tracing_stop("the collector has ended; the program goes on untraced", "", 0);
  return true;
}

// False if a signal handler has reserved slots after these.
static bool drop_event(struct Ring* ring, uint64_t position, uint64_t count) {
  uint64_t end = position + count;
  if (!__atomic_compare_exchange_n(&ring->reserved, &end, position, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    return false;
  __atomic_fetch_add(&ring->lost, 1, __ATOMIC_RELAXED);
  ring_bell(asleep_briefly);
  return true;
}

// Whether the collector waits at a position of this thread that is not published and lies before `position`. Then a
// signal handler has interrupted that event, and this is the handler or it never returned, or a vfork child was killed
// there: waiting is in vain. `tail` may be stored later than `limit`; then another lap is in the slot. But it is stored
// before the slot is released, which empties it: the slot at `tail` is evidence only if `tail` is still the same
// afterwards.
static bool is_after_unpublished(const struct Ring* ring, uint64_t position, uint64_t limit) {
  uint64_t tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
  const struct Slot* slot = &ring_slots(tracing.control, ring)[tail & (ring->slots - 1)];
  return tail < position && limit <= tail + ring->slots && !slot_is_published(slot, tail, ring->slots) &&
         __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) == tail;
}

/// The tenths of a second that a thread has waited: in all, and since the collector made progress.
struct Patience {
  int tenths, silent_tenths;
  uint64_t beats;
};

// Waits for `*word` to differ from `seen`, and counts the time.
static void wait_patiently(struct Patience* patience, const uint32_t* word, uint32_t seen) {
  const int tenths = patience->tenths < looks_often ? 1 : 10;
  if (!wait_timed_out(word, seen, tenths)) return;
  patience->tenths += tenths;
  patience->silent_tenths += tenths;
}

// A collector that is stopped, or gets no processor, makes no progress either. The collector of an attached
// process may end unnoticed if the kernel has no robust futexes. So it is given up soon.
static bool is_exhausted(struct Patience* patience) {
  const uint64_t beats = __atomic_load_n(&tracing.control->beats, __ATOMIC_RELAXED);
  if (beats != patience->beats) patience->silent_tenths = 0;
  patience->beats = beats;
  return patience->tenths >= patience_max ||
         patience->silent_tenths >= (tracing.is_attached && collector_word() == 0 ? attached_silence_max : silence_max);
}

static void wait_for_limit(struct Ring* ring, uint64_t seen, struct Patience* patience) {
  __atomic_store_n(&ring->waiting, 1, __ATOMIC_SEQ_CST);
  ring_bell(asleep_briefly);
  wait_patiently(patience, (const uint32_t*)&ring->limit, (uint32_t)seen);
}

static bool await_limit(struct Ring* ring, uint64_t position, uint64_t count, uint64_t* limit) {
  *limit = __atomic_load_n(&ring->limit, __ATOMIC_ACQUIRE);
  const uint32_t generation = tracing.generation;
  for (struct Patience patience = {0}; position + count > *limit;) {
    // Attached anew meanwhile: what this thread waited for says nothing of the new recording.
    if (__atomic_load_n(&tracing.generation, __ATOMIC_ACQUIRE) != generation) return false;
    // A signal handler has forked, and this is the child: with its parent's ring, or, after an event, with none there.
    if (recording_generation() == 0 || ring->slots == 0) return false;
    if (!tracing_start_collector() || is_collector_lost()) return false;
    if (tracing.drops && drop_event(ring, position, count)) return false;
    if (is_after_unpublished(ring, position, *limit)) {
      tracing_stop("an event was interrupted and did not go on; the program goes on untraced", "", 0);
      return false;
    }
    if (is_exhausted(&patience)) {
      tracing_stop("the collector does not go on; the program goes on untraced", "", 0);
      return false;
    }
    wait_for_limit(ring, *limit, &patience);
    const uint64_t now = __atomic_load_n(&ring->limit, __ATOMIC_ACQUIRE);
    if (now != *limit) patience.tenths = patience.silent_tenths = 0;
    *limit = now;
  }
  return true;
}

// In a sandbox the clock may not be read.
static bool wait_until_below_limit(struct Ring* ring, uint64_t position, uint64_t count, uint64_t* limit) {
  struct Control* const control = tracing.control;
  const bool is_full = position + count > __atomic_load_n(&ring->limit, __ATOMIC_ACQUIRE);
  if (!is_full || sandbox_entered) return await_limit(ring, position, count, limit);
  const uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
  const bool has_room = await_limit(ring, position, count, limit);
  // Not in a child that a signal handler has forked meanwhile: it has no rings yet, or others.
  if (tracing.control == control)
    __atomic_fetch_add(&control->held_ns, clock_ns(CLOCK_MONOTONIC) - begin_ns, __ATOMIC_RELAXED);
  return has_room;
}

bool wait_for_room(struct Ring* ring, uint64_t position, uint64_t count) {
  uint64_t limit;
  must(count != 0);
  if (!wait_until_below_limit(ring, position, count, &limit)) return false;
  must(position + count <= limit);
  if (position + count > __atomic_load_n(&ring->soft, __ATOMIC_ACQUIRE)) {
    __atomic_store_n(&ring->soft, limit, __ATOMIC_RELAXED);
    if (tracing.is_collector_started) ring_bell(asleep_deeply);
  }
  processor_fence_after_atomic();  // the collector stores `soft` after what is asked for here
  if (!sandbox_entered) __atomic_store_n(&ring->processor, (uint32_t)sched_getcpu() + 1, __ATOMIC_RELAXED);
  if (!tracing_has_verdict() && __atomic_load_n(&tracing.control->paused, __ATOMIC_RELAXED))
    set_recording_generation(not_recording);
  return true;
}

// A vfork child's end is not its parent's, and a forked child that has recorded nothing has no collector.
static bool can_request(void) {
  return !tracing.is_attached && !tracing.is_stopped && !tracing.is_finishing && tracing.is_collector_started &&
         tracing.control && recording_generation() != 0 && !is_vfork_child();
}

// Asks the collector, if the process waits for its trace, and waits until it is done. With the first process of a
// container the kernel ends all others, the collector too: so that one always waits.
static bool request(uint32_t kind) {
  struct Control* control = tracing.control;
  if (!can_request() || !(tracing.waits || control->process == 1)) return false;
  tracing.is_finishing = kind == request_finish;
  __atomic_store_n(&control->request_kind, kind, __ATOMIC_RELAXED);
  uint32_t mine = __atomic_add_fetch(&control->request, 1, __ATOMIC_SEQ_CST);
  ring_bell(asleep_briefly);
  for (struct Patience patience = {0}; !is_exhausted(&patience);) {
    uint32_t done = __atomic_load_n(&control->done, __ATOMIC_ACQUIRE);
    if ((int32_t)(done - mine) >= 0) return true;
    if (has_collector_ended()) return !is_collector_lost();
    wait_patiently(&patience, &control->done, done);
  }
  return false;
}

// From here on, tools that open the trace wait until it is whole.
static void announce_end(void) {
  struct Control* control = tracing.control;
  if (!can_request()) return;
  collector_await_name();
  __atomic_store_n(&control->leaving, 1, __ATOMIC_SEQ_CST);
  if (!__atomic_load_n(&control->readable, __ATOMIC_SEQ_CST)) return;
  ring_bell(asleep_briefly);
  for (int tenths = 0; tenths < lock_tenths_max && __atomic_load_n(&control->readable, __ATOMIC_ACQUIRE); tenths++) {
    if (has_collector_ended()) return;
    wait_timed_out(&control->readable, 1, 1);
  }
}

void tracing_leave(void) {
  announce_end();
  request(request_checkpoint);
}

void tracing_finish(void) {
  if (can_request() && has_collector_ended()) is_collector_lost();
  announce_end();
  if (!request(request_finish)) return;
  if (!sandbox_entered) collector_reap();
  if (!tracing_has_verdict()) tracing_stop(NULL, "", 0);
}

// With an attached process's collector nobody waits for the trace.
bool tracing_before_exec(void) {
  const bool is_recorded =
      tracing.is_attached && !tracing.is_stopped && tracing.control && recording_generation() != 0 && !is_vfork_child();
  if (is_recorded) __atomic_store_n(&tracing.control->exec_pending, 1, __ATOMIC_RELEASE);
  if (is_recorded || !can_request()) return is_recorded;
  tracing_leave();
  __atomic_store_n(&tracing.control->exec_pending, 1, __ATOMIC_RELEASE);
  return true;
}

void tracing_exec_failed(bool was_held) {
  if (!was_held) return;
  __atomic_store_n(&tracing.control->leaving, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&tracing.control->exec_pending, 0, __ATOMIC_RELEASE);
}
