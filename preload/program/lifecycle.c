#include "preload/program/lifecycle.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "preload/program/collector_start.h"
#include "preload/program/holders.h"
#include "preload/program/pages/touched.h"
#include "preload/program/real.h"
#include "preload/program/rings.h"
#include "preload/program/settings.h"
#include "preload/text.h"

enum { destructor_rounds_max = 3, fast_clock_ns = 14, touched_min_auto = 65536 };

enum TracerState tracer_state;

static struct {
  bool is_started;
  bool may_open_files;
  bool ignores_children;
  bool is_paused;  // by the program, or from the start
  bool has_key;
  pthread_key_t key;
} state;

static struct {
  bool are_wanted, of_frees;
  uint32_t frames_max;
  const char* fault;         // to be said
  struct StackShare* share;  // at the same address in all processes
} stacks;

static void read_stack_settings(void) {
  stacks.of_frees = setting_is("CMTTRACE_STACKS_OF_FREES", "1");
  stacks.are_wanted = !is_under_valgrind && (stacks.of_frees || setting_is("CMTTRACE_STACKS", "1"));
  stacks.frames_max = (uint32_t)setting_number("CMTTRACE_STACK_FRAMES", unwind_frames_max);
}

// A filter of system calls that stands already may end the program for those that ask about pages: so they are made
// only where somebody wants them to be.
static void read_touched_setting(void) {
  const bool is_asked_for = setting_is_given("CMTTRACE_TOUCHED");
  const bool is_auto = setting_is("CMTTRACE_TOUCHED", "auto") || (!is_asked_for && !has_system_call_filter());
  const uint64_t min = is_auto ? touched_min_auto : setting_bytes("CMTTRACE_TOUCHED", 0);
  touched_begin(is_under_valgrind ? 0 : min, is_auto);
  record_short_below(large_blocks_min, record_usable);
}

/// How many entries a capture may have been given that a signal handler has interrupted, and that goes on in the child
/// which the handler has forked (unwind_begin_process).
struct GivenOut {
  uint32_t rules, modules, text;
};

static struct GivenOut given_to_interrupted_capture(void) {
  if (!stacks.share || !stacks_is_busy(&thread_self)) return (struct GivenOut){0};
  return (struct GivenOut){stacks.share->table.used, stacks.share->modules, stacks.share->text_used};
}

// Returns why there are no stacks, or NULL.
static const char* map_stacks(struct Control* control, struct GivenOut given_out) {
  struct StackShare* share = rings_map_stacks(control, stacks.share);
  if (!share) return "there is no room for the table of call stacks";
  stacks.share = share;
  share->table.used = given_out.rules;
  share->modules = given_out.modules;
  share->text_used = given_out.text;
  control->stack_frames_max = stacks.frames_max;
  control->stacks_of_frees = stacks.of_frees;
  return stacks_begin_process(share, stacks.frames_max, stacks.of_frees);
}

static void begin_stacks(struct Control* control, struct GivenOut given_out) {
  stacks_end_process();  // the parent's
  const char* fault = stacks.are_wanted ? map_stacks(control, given_out) : NULL;
  if (!fault) return;
  stacks_end_process();
  control->stacks_at = 0;
  stacks.are_wanted = false;  // in children too
  stacks.fault = fault;
}

// When it is known that the program is recorded at all.
static void report_missing_stacks(void) {
  if (stacks.fault) write_message(stacks.fault, "; the program is recorded without stacks", 0);
  stacks.fault = NULL;
}

static void begin_process(void) {
  bool is_forked = tracing.generation != 0;
  if (tracing.control) state.is_paused = tracing.control->paused;
  const struct GivenOut given_out = given_to_interrupted_capture();
  rings_forget(tracing.control);
  tracing.control = NULL;
  tracing.generation++;
  tracing.is_collector_started = tracing.is_finishing = false;
  collector_forget();
  if (is_forked && state.ignores_children) tracing.is_stopped = true;
  if (state.is_paused || tracing.is_stopped) {
    stacks_end_process();  // what its parent has is its parent's
    set_recording_generation(not_recording);
    return;
  }
  long failed = rings_map(&tracing.control, stacks.are_wanted ? sizeof(struct StackShare) : 0);
  if (failed) {
    tracing_stop(path_is_given(path_rings) ? "cannot create CMTTRACE_RINGS" : "cannot make the rings",
                 "; the program goes on untraced", -failed);
    return;
  }
  struct Control* control = tracing.control;
  control->process = process_id();
  control->forked = is_forked;
  control->clock_is_ns = clock_is_slow;
  control->start_ns = clock_ns(CLOCK_MONOTONIC);
  control->start_stamp = clock_stamp(false);
  control->start_wall = clock_ns(CLOCK_REALTIME) / 1000000000u;
  control->clock = control->start_stamp;
  control->touched_min = large_blocks_min;
  record_begin_process(control);
  begin_stacks(control, given_out);
  set_recording_generation(tracing.generation);
  if (state.may_open_files) tracing_start_collector();
}

static void claim_ring(void) {
  struct Thread* self = &thread_self;
  self->guard = NULL;
  self->stamp_floor = 0;
  self->ring = rings_claim(tracing.control);
  if (!self->ring) {
    self->ringless = tracing.generation;
    return;
  }
  __atomic_store_n(&self->ring->left, 0, __ATOMIC_RELAXED);
  self->slots = ring_slots(tracing.control, self->ring);
  self->clock = &tracing.control->clock;
  const uint32_t ring = ring_number(tracing.control, self->ring);
  self->holder = holder_of_ring(ring);
  stacks_claim(self, ring);
  // The ring is complete: in a sandbox signals are not blocked, and a handler records into it from here on.
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  self->generation = tracing.generation;
  const uint32_t number = __atomic_fetch_add(&tracing.control->threads, 1, __ATOMIC_RELAXED);
  if (number) record_second_thread();
  record_long(&(struct Call){.kind = (enum Kind)record_owner, .size = number});
  if (number) record_long(&(struct Call){.kind = kind_thread_start});
}

// May allocate from the program's heap, which is an event: so not while an event is recorded.
static void notice_thread_end(void) {
  int saved = errno;
  thread_self.has_destructor = 1;
  pthread_setspecific(state.key, &thread_self);
  errno = saved;
}

// While nothing is recorded: the collector's command may have ended a pause.
static bool is_still_off(void) {
  if (tracing.is_stopped || !tracing.control) return true;
  if (tracing_has_verdict() || __atomic_load_n(&tracing.control->paused, __ATOMIC_RELAXED)) return true;
  stacks_restart();
  set_recording_generation(tracing.generation);
  return false;
}

bool enter_recording(void) {
  if (!state.is_started) return false;
  if (recording_generation() == not_recording && is_still_off()) return false;
  if (thread_self.generation == recording_generation()) return true;
  if (recording_generation() != 0 && thread_self.ringless == recording_generation()) {
    __atomic_fetch_add(&tracing.control->ringless, 1, __ATOMIC_RELAXED);
    return false;
  }
  if (recording_generation() == 0 && sandbox_entered) {
    if (tracing.control) __atomic_fetch_add(&tracing.control->ringless, 1, __ATOMIC_RELAXED);  // the parent's
    return false;
  }
  uint64_t before;
  if (!sandbox_entered) block_signals(&before);
  if (recording_generation() == 0) begin_process();
  if (recording_generation() == tracing.generation && thread_self.generation != tracing.generation) claim_ring();
  if (!sandbox_entered) restore_signals(&before);
  if (!thread_self.has_destructor && state.has_key) notice_thread_end();
  return thread_self.generation == recording_generation();
}

// Other destructors may run after ours and call free: ours asks to be called again until the last round.
static void thread_ends(void* unused) {
  (void)unused;
  if (thread_self.destructor_rounds++ < destructor_rounds_max) {
    notice_thread_end();
  } else if (recording_is_on()) {
    record_long(&(struct Call){.kind = kind_thread_exit});
    __atomic_store_n(&thread_self.ring->left, 1, __ATOMIC_RELEASE);
  }
}

void start_recording(void) {
  generation_page_start();
  clock_is_slow = !clock_has_steady_tsc();
  record_fast_clock(clock_cost_ns() < fast_clock_ns);
  state.is_started = true;
  read_stack_settings();
  read_touched_setting();
  begin_process();
}

bool tracer_start(void) {
  if (tracer_state != tracer_not_started) return tracer_state >= tracer_ready;
  int saved = errno;
  tracer_state = tracer_starts;
  remember_standard_error();
  real_find_all();
  start_recording();
  tracer_state = stacks_kinds ? tracer_ready_with_stacks : tracer_ready;
  errno = saved;
  return true;
}

void start_collecting(void) {
  state.may_open_files = true;
  tracing.drops = setting_is("CMTTRACE_ON_FULL", "drop");
  tracing.waits = setting_is("CMTTRACE_WAIT", "1");
  if (setting_is("CMTTRACE_TIME", "1")) record_times();
  if (setting_is("CMTTRACE_STAMPS", "all") || setting_is("CMTTRACE_STAMPS", "sparse"))
    record_fast_clock(setting_is("CMTTRACE_STAMPS", "all"));
  if (setting_is("CMTTRACE_USABLE", "1")) record_short_below(large_blocks_min, real.malloc_usable_size);
  if (is_allocator_code(*(const void**)&real.malloc_usable_size)) holders_usable_size = real.malloc_usable_size;
  state.has_key = pthread_key_create(&state.key, thread_ends) == 0;
  pthread_atfork(NULL, NULL, generation_page_after_fork);
  const char* parent = getenv("CMTTRACE_CHILD_OF");
  if (parent && *parent == 0) parent = NULL;
  state.ignores_children = parent != NULL;
  if (parent && strtol(parent, NULL, 10) != sys(SYS_getppid, 0)) tracing_stop(NULL, "", 0);
  if (!recording_is_on() || !tracing_start_collector()) return;
  report_missing_stacks();
  if (setting_is("CMTTRACE_START", "paused")) pause_recording(true);
  if (!thread_self.has_destructor && state.has_key) notice_thread_end();
}

void record_label(enum Kind kind, const char* label) {
  if (!recording_is_on()) return;
  char text[label_bytes_max + 1] = {0};
  memcpy(text, label, strnlen(label, label_bytes_max));
  make_utf8(text, strlen(text));
  record_long(&(struct Call){.kind = kind, .label = text});
}

// A child that a paused process forks records nothing until it is resumed.
void pause_recording(bool paused) {
  struct Control* control = tracing.control;
  if (!state.is_started || tracing.is_stopped) return;
  if (paused && recording_is_on()) record_label(kind_mark, "cmt_pause");
  state.is_paused = paused;
  if (control && recording_generation() != 0) {
    __atomic_store_n(&control->paused, paused, __ATOMIC_SEQ_CST);
    stacks_restart();
    set_recording_generation(paused ? not_recording : tracing.generation);
  } else if (!paused) {
    set_recording_generation(0);
  }
  if (!paused && recording_is_on()) record_label(kind_mark, "cmt_resume");
}
