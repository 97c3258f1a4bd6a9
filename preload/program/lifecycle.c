// The seldom part of recording: a thread's first event, a ring that is full, a process's beginning and end.
//
// Fork. `record_state` is wiped by the kernel in a child (MADV_WIPEONFORK: also after _Fork and clone); the child's
// first event then makes memory of its own and starts a collector of its own. The parent's rings stay mapped until
// then, and nobody writes there: a thread's generation is compared with `record_state` before each event. No lock is
// involved that a lost thread could hold. A child of vfork or posix_spawn shares memory and thread with its parent, and
// so its ring.
//
// Threads. A ring whose owner has said thread_exit is taken over by the next new thread, once the owner is gone: other
// destructors, and libc itself, free memory after ours. So 1,000 short threads need a few rings. What is still unread
// in it stays there, before the new owner's records.
//
// What starts or claims blocks signals, so that a handler finds it done or not begun. All waiting is in pieces of 0.1
// s, each followed by a look whether the collector still lives, and bounded.
#include "preload/program/record.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "preload/program/alone.h"
#include "preload/program/clock.h"
#include "preload/program/collector_link.h"
#include "preload/program/environment.h"
#include "preload/program/name.h"
#include "preload/program/output.h"
#include "preload/program/real.h"
#include "preload/program/rings.h"
#include "preload/program/sandbox.h"
#include "preload/program/sys.h"

enum { destructor_rounds_max = 3, wipe_on_fork = 18, wait_rounds_max = 600, lock_rounds_max = 10 };

__thread struct Thread thread_self = {.generation = no_generation};
_Alignas(4096) uint32_t record_state[1024];
bool record_clock_is_ns;
bool record_second_thread;
bool record_usable;

static struct {
  struct Control* control;
  uint32_t generation;
  bool started;
  bool files_allowed;
  bool collector_started;
  bool drops;
  bool childless;  // children are not recorded
  bool waits;      // at its end, until its trace is whole
  bool paused;     // by the program, or from the start
  bool stopped;    // for ever
  bool ending;
  bool has_key;
  pthread_key_t key;
} state;

static void set_generation(uint32_t generation) { __atomic_store_n(&record_state[0], generation, __ATOMIC_RELAXED); }

// Says it once; the threads notice by their next look at record_state.
void record_stop(const char* what, const char* detail, long error) {
  set_generation(not_recording);
  if (__atomic_exchange_n(&state.stopped, true, __ATOMIC_RELAXED)) return;
  if (!state.collector_started) rings_discard(state.control);
  if (what) say(what, detail, error);
}

// Wakes the collector if it sleeps at least so deeply.
static void ring_bell(uint32_t depth) {
  struct Control* control = state.control;
  __atomic_fetch_add(&control->bell, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&control->asleep, __ATOMIC_SEQ_CST) >= depth && !sandbox_entered)
    sys(SYS_futex, &control->bell, FUTEX_WAKE, 1);
}

// Whether the word has not changed in a tenth of a second.
static bool wait_in_vain(const uint32_t* word, uint32_t seen) {
  static const struct timespec tenth = {.tv_nsec = 100000000};
  if (sandbox_entered) return sandbox_wait(word, seen);
  return sys(SYS_futex, word, FUTEX_WAIT, seen, &tenth) == -ETIMEDOUT;
}

// The collector's last word: it needs no more, or can do no more.
static bool has_verdict(void) {
  uint32_t verdict = __atomic_load_n(&state.control->verdict, __ATOMIC_ACQUIRE);
  if (verdict == verdict_failed) record_stop(state.control->message, "", 0);
  if (verdict == verdict_enough) record_stop(NULL, "", 0);
  return verdict != verdict_go_on;
}

static bool collector_is_lost(void) {
  if (has_verdict()) return true;
  if (!collector_gone()) return false;
  if (!has_verdict()) record_stop("the collector has ended; the program goes on untraced", "", 0);
  return true;
}

static bool collector_ready(void) {
  if (state.collector_started) return true;
  state.collector_started = true;
  long failed = collector_start(state.control);
  if (!failed) return true;
  rings_discard(state.control);
  record_stop("cannot start the collector", "; the program goes on untraced", -failed);
  return false;
}

// A child of vfork, which may be the first to record after a fork, is not the process.
static uint32_t own_process(void) {
  if (record_state[1] == 0) record_state[1] = (uint32_t)sys(SYS_getpid, 0);
  return record_state[1];
}

static bool is_vforked(void) { return !sandbox_entered && own_process() != (uint32_t)sys(SYS_getpid, 0); }

static void begin_process(void) {
  bool forked = state.generation != 0;
  if (state.control) state.paused = state.control->paused;
  rings_forget(state.control);
  state.control = NULL;
  state.generation++;
  state.collector_started = state.ending = false;
  collector_forget();
  if (forked && state.childless) state.stopped = true;
  if (state.paused || state.stopped) {
    set_generation(not_recording);
    return;
  }
  long failed = rings_map(&state.control);
  if (failed) {
    record_stop(name_is_given(name_rings) ? "cannot create CMTTRACE_RINGS" : "cannot make the rings",
                "; the program goes on untraced", -failed);
    return;
  }
  struct Control* control = state.control;
  control->process = own_process();
  control->forked = forked;
  control->clock_is_ns = record_clock_is_ns;
  control->start_ns = clock_ns(CLOCK_MONOTONIC);
  control->start_stamp = record_clock(false);
  control->start_wall = clock_ns(CLOCK_REALTIME) / 1000000000u;
  alone_begin_process(control);
  set_generation(state.generation);
  if (state.files_allowed) collector_ready();
}

static bool is_gone(uint32_t thread) {
  return !sandbox_entered && sys(SYS_tgkill, state.control->process, thread, 0) == -ESRCH;
}

// In a sandbox one that no kernel gives.
static uint32_t own_number(void) {
  if (sandbox_entered) return (uint32_t)1 << 31 | (uint32_t)((uintptr_t)&thread_self >> 6);
  return (uint32_t)sys(SYS_gettid, 0);
}

static bool take_over(struct Ring* ring, uint32_t self) {
  uint32_t owner = __atomic_load_n(&ring->owner, __ATOMIC_ACQUIRE);
  if (owner == 0 || (owner != self && !is_gone(owner))) return false;
  return __atomic_compare_exchange_n(&ring->owner, &owner, self, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static struct Ring* ring_left(uint32_t self, bool any) {
  struct Control* control = state.control;
  uint32_t used = __atomic_load_n(&control->rings_used, __ATOMIC_ACQUIRE);
  if (used > control->rings_limit) used = control->rings_limit;
  for (uint32_t i = 0; i < used; i++) {
    struct Ring* ring = ring_at(control, i);
    if ((any || __atomic_load_n(&ring->left, __ATOMIC_RELAXED)) && take_over(ring, self)) return ring;
  }
  return NULL;
}

static struct Ring* ring_for(uint32_t self) {
  struct Control* control = state.control;
  struct Ring* ring = ring_left(self, false);
  if (ring) return ring;
  uint32_t fresh = __atomic_fetch_add(&control->rings_used, 1, __ATOMIC_ACQ_REL);
  if (fresh < control->rings_limit) return rings_open(control, fresh, self) ? ring_at(control, fresh) : NULL;
  __atomic_fetch_sub(&control->rings_used, 1, __ATOMIC_ACQ_REL);
  return ring_left(self, true);
}

static void claim(void) {
  struct Thread* self = &thread_self;
  self->guard = NULL;
  self->epoch = 0;
  self->ring = ring_for(own_number());
  if (!self->ring) {
    self->ringless = state.generation;
    return;
  }
  self->generation = state.generation;
  __atomic_store_n(&self->ring->left, 0, __ATOMIC_RELAXED);
  self->slots = (struct Slot*)((char*)state.control + self->ring->slots_at);
  __atomic_store_n(&self->ring->busy, 0, __ATOMIC_RELAXED);
  uint32_t number = __atomic_fetch_add(&state.control->threads, 1, __ATOMIC_RELAXED);
  self->number = number + 1;
  if (number) __atomic_store_n(&record_second_thread, true, __ATOMIC_RELAXED);  // before anyone gets a block from us
  record_long(&(struct Call){.kind = (enum Kind)record_owner, .size = number});
  if (number) record_long(&(struct Call){.kind = kind_thread_start});
}

// Noticing the thread's end may need memory of the program's heap: that is an event, and must not happen inside.
static void notice_end(void) {
  int saved = errno;
  thread_self.has_destructor = 1;
  pthread_setspecific(state.key, &thread_self);
  errno = saved;
}

// Nothing is recorded; from outside the pause may be over.
static bool still_off(void) {
  if (state.stopped || !state.control) return true;
  if (has_verdict() || __atomic_load_n(&state.control->paused, __ATOMIC_RELAXED)) return true;
  set_generation(state.generation);
  return false;
}

bool record_enter(void) {
  if (!state.started) return false;
  if (record_generation() == not_recording && still_off()) return false;
  if (thread_self.generation == record_generation()) return true;
  if (record_generation() != 0 && thread_self.ringless == record_generation()) {
    __atomic_fetch_add(&state.control->ringless, 1, __ATOMIC_RELAXED);
    return false;
  }
  if (record_generation() == 0 && sandbox_entered) {
    if (state.control) __atomic_fetch_add(&state.control->ringless, 1, __ATOMIC_RELAXED);  // our parent's
    return false;
  }
  uint64_t before;
  if (!sandbox_entered) block_signals(&before);
  if (record_generation() == 0) begin_process();
  if (record_generation() == state.generation && thread_self.generation != state.generation) claim();
  if (!sandbox_entered) restore_signals(&before);
  if (!thread_self.has_destructor && state.has_key) notice_end();
  return thread_self.generation == record_generation();
}

static bool give_back(struct Ring* ring, uint64_t at, uint64_t count) {
  uint64_t end = at + count;
  if (!__atomic_compare_exchange_n(&ring->reserved, &end, at, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return false;
  __atomic_fetch_add(&ring->lost, 1, __ATOMIC_RELAXED);
  ring_bell(asleep_briefly);
  return true;
}

// Whether the time was up.
static bool wait_for_limit(struct Ring* ring, uint64_t seen) {
  __atomic_store_n(&ring->waiting, 1, __ATOMIC_SEQ_CST);
  ring_bell(asleep_briefly);
  return wait_in_vain((const uint32_t*)&ring->limit, (uint32_t)seen);
}

// The collector stops at a place that is not published. Where that is one of ours from before, the event was
// interrupted by a signal handler, which we are in or which never came back, or its vforked child was killed: waiting
// is in vain. The tail may be told later than the limit that comes of it, and then another lap has its place. But it is
// told before the place is given back to the kernel, which empties it: only a tail that still stands is one.
static bool is_held_up(const struct Ring* ring, uint64_t at, uint64_t limit) {
  uint64_t tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
  return tail < at && limit <= tail + ring->slots &&
         !slot_is_published(&thread_self.slots[tail & (ring->slots - 1)], tail, ring->slots) &&
         __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) == tail;
}

bool record_wait(struct Ring* ring, uint64_t at, uint64_t count) {
  uint64_t limit = __atomic_load_n(&ring->limit, __ATOMIC_ACQUIRE);
  for (int rounds = 0; at + count > limit;) {
    if (!collector_ready() || collector_is_lost()) return false;
    if (state.drops && give_back(ring, at, count)) return false;
    if (is_held_up(ring, at, limit)) {
      record_stop("an event was interrupted and did not go on; the program goes on untraced", "", 0);
      return false;
    }
    if (rounds == wait_rounds_max) {
      record_stop("the collector does not go on; the program goes on untraced", "", 0);
      return false;
    }
    rounds += wait_for_limit(ring, limit);
    uint64_t now = __atomic_load_n(&ring->limit, __ATOMIC_ACQUIRE);
    if (now != limit) rounds = 0;
    limit = now;
  }
  if (!record_is_below_soft(ring, at, count)) {
    __atomic_store_n(&ring->soft, limit, __ATOMIC_RELAXED);
    if (state.collector_started) ring_bell(asleep_deeply);
  }
  if (!sandbox_entered) __atomic_store_n(&ring->processor, (uint32_t)sched_getcpu() + 1, __ATOMIC_RELAXED);
  alone_try(&thread_self);
  if (!has_verdict() && __atomic_load_n(&state.control->paused, __ATOMIC_RELAXED)) set_generation(not_recording);
  return true;
}

void record_own_name(const char* name) {
  if (!is_vforked()) record_label(kind_thread_name, name);
}

bool record_may_enter_sandbox(bool has_clock) {
  if (is_vforked()) return false;
  if (record_allowed()) ring_bell(asleep_briefly);
  if (state.control) sandbox_begin(state.control, record_clock(true));
  if (!has_clock) record_clock_is_ns = true;
  return true;
}

// Other destructors may run after ours and call free: ours asks to be called again until the last round.
static void thread_ends(void* unused) {
  (void)unused;
  if (thread_self.destructor_rounds++ < destructor_rounds_max) {
    notice_end();
  } else if (record_allowed()) {
    record_long(&(struct Call){.kind = kind_thread_exit});
    __atomic_store_n(&thread_self.ring->left, 1, __ATOMIC_RELEASE);
  }
}

// Kernels before 4.14 wipe nothing.
static void after_fork(void) {
  set_generation(0);
  if (!sandbox_entered) record_state[1] = (uint32_t)sys(SYS_getpid, 0);
}

void record_start(void) {
  sys(SYS_madvise, record_state, sizeof record_state, wipe_on_fork);
  record_clock_is_ns = !clock_has_steady_tsc();
  state.started = true;
  begin_process();
}

void record_files_allowed(void) {
  state.files_allowed = true;
  state.drops = environment_says("CMTTRACE_ON_FULL", "drop");
  if (!environment_says("CMTTRACE_TIME", "1")) alone_allow();
  state.waits = environment_says("CMTTRACE_WAIT", "1");
  record_usable = environment_says("CMTTRACE_USABLE", "1");
  state.has_key = pthread_key_create(&state.key, thread_ends) == 0;
  pthread_atfork(NULL, NULL, after_fork);
  const char* parent = getenv("CMTTRACE_CHILD_OF");
  if (parent && *parent == 0) parent = NULL;
  state.childless = parent != NULL;
  if (parent && strtol(parent, NULL, 10) != sys(SYS_getppid, 0)) record_stop(NULL, "", 0);
  if (!record_allowed() || !collector_ready()) return;
  if (environment_says("CMTTRACE_START", "paused")) record_pause(true);
  if (!thread_self.has_destructor && state.has_key) notice_end();
  alone_try(&thread_self);
}

// A forked child of a paused process begins when it is resumed.
void record_pause(bool paused) {
  struct Control* control = state.control;
  if (!state.started || state.stopped) return;
  if (paused && record_allowed()) record_label(kind_mark, "cmt_pause");
  state.paused = paused;
  if (control && record_generation() != 0) {
    __atomic_store_n(&control->paused, paused, __ATOMIC_SEQ_CST);
    set_generation(paused ? not_recording : state.generation);
  } else if (!paused) {
    set_generation(0);
  }
  if (!paused && record_allowed()) record_label(kind_mark, "cmt_resume");
}

// A vfork child's end is not its parent's, and a forked child that recorded nothing has nothing to end.
static bool is_ours(void) { return state.control && record_generation() != 0 && !is_vforked(); }

static bool can_ask(void) { return !state.stopped && !state.ending && state.collector_started && is_ours(); }

// With the first process of a container the kernel ends all others, and so the collector.
static bool is_waited_for(void) { return can_ask() && (state.waits || state.control->process == 1); }

static bool ask(uint32_t kind) {
  struct Control* control = state.control;
  if (!is_waited_for()) return false;
  state.ending = kind == request_finish;
  __atomic_store_n(&control->request_kind, kind, __ATOMIC_RELAXED);
  uint32_t mine = __atomic_add_fetch(&control->request, 1, __ATOMIC_SEQ_CST);
  ring_bell(asleep_briefly);
  for (int rounds = 0; rounds < wait_rounds_max;) {
    uint32_t done = __atomic_load_n(&control->done, __ATOMIC_ACQUIRE);
    if ((int32_t)(done - mine) >= 0) return true;
    if (collector_gone()) return !collector_is_lost();
    rounds += wait_in_vain(&control->done, done);
  }
  return false;
}

// From here on who reads the trace waits for its end.
static void announce_end(void) {
  struct Control* control = state.control;
  if (!can_ask()) return;
  __atomic_store_n(&control->leaving, 1, __ATOMIC_SEQ_CST);
  if (!__atomic_load_n(&control->readable, __ATOMIC_SEQ_CST)) return;
  ring_bell(asleep_briefly);
  for (int rounds = 0; rounds < lock_rounds_max && __atomic_load_n(&control->readable, __ATOMIC_ACQUIRE); rounds++) {
    if (collector_gone()) return;
    wait_in_vain(&control->readable, 1);
  }
}

void record_leaving(void) {
  announce_end();
  ask(request_checkpoint);
}

void record_finish(void) {
  announce_end();
  if (!ask(request_finish)) return;
  if (!sandbox_entered) collector_reap();
  if (!has_verdict()) record_stop(NULL, "", 0);
}

bool record_before_exec(void) {
  if (!can_ask()) return false;
  announce_end();
  ask(request_checkpoint);
  __atomic_store_n(&state.control->exec_pending, 1, __ATOMIC_RELEASE);
  return true;
}

void record_exec_failed(bool announced) {
  if (!announced) return;
  __atomic_store_n(&state.control->leaving, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&state.control->exec_pending, 0, __ATOMIC_RELEASE);
}
