// Begins and ends the recording of processes and threads, as lifecycle.h describes: at the start, after a fork, when
// attached.
#include "preload/program/lifecycle.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "preload/program/collector_start.h"
#include "preload/program/hooks/find.h"
#include "preload/program/launch/restart.h"
#include "preload/program/owners.h"
#include "preload/program/pages/touched.h"
#include "preload/program/pools/pool_table.h"
#include "preload/program/pools/python_pool.h"
#include "preload/program/real.h"
#include "preload/program/rings.h"
#include "preload/program/sampling/sampler.h"
#include "preload/program/settings.h"
#include "preload/program/variants.h"
#include "preload/text.h"

enum { destructor_rounds_max = 3, fast_clock_ns = 14, touched_min_auto = 4096, get_name = 16 /* of prctl */ };

enum TracerState tracer_state;

static struct {
  bool may_open_files;
  bool ignores_children;
  bool is_paused;  // by the program, or from the start
  bool has_key;
  const char* sampler_fault;  // to be said
  pthread_key_t key;
} state;

/// pthread_key_create, pthread_setspecific and pthread_getspecific, or NULL in a program that was linked without
/// libpthread. Such a program has one thread, which ends with the process.
static struct {
  int (*create)(pthread_key_t*, void (*)(void*));
  int (*set)(pthread_key_t, const void*);
  void* (*get)(pthread_key_t);
} keys;

static struct {
  bool are_wanted, of_frees, with_interpreters;
  uint32_t frames_max;
  const char* fault;         // to be said
  struct StackShare* share;  // at the same address in all processes
} stacks;

static void read_stack_settings(void) {
  stacks.of_frees = setting_is(setting_stacks_of_frees, "1");
  stacks.are_wanted = !is_under_valgrind && (stacks.of_frees || setting_is(setting_stacks, "1"));
  stacks.frames_max = (uint32_t)setting_number(setting_stack_frames);
  stacks.with_interpreters = !setting_is(setting_frames, "none");
  if (sampler_interval() != 0) return;
  if (stacks.are_wanted && setting_has(setting_pool, "python")) python_pool_begin();
  pool_table_begin(setting_has(setting_pool, "own"), setting_has(setting_pool, "heaptrack"));
}

// An existing filter of system calls may end the program at a system call that asks about pages. With a filter the
// pages are recorded only if the setting is given.
static void read_touched_setting(void) {
  if (sampler_interval() != 0) {
    touched_begin(0, false);
    choose_short_events(0, usable_size_of);
    return;
  }
  const bool is_asked_for = setting_is_given(setting_touched);
  const bool is_auto = setting_is(setting_touched, "auto") || (!is_asked_for && system_call_filters() == 0);
  const uint64_t min = is_auto ? touched_min_auto : setting_bytes(setting_touched);
  touched_begin(is_under_valgrind ? 0 : min, is_auto);
  choose_short_events(large_blocks_min, usable_size_of);
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

static void put_given_out(struct GivenOut given_out) {
  stacks.share->table.used = given_out.rules;
  stacks.share->modules = given_out.modules;
  stacks.share->text_used = given_out.text;
}

// Returns why there are no stacks, or NULL.
static const char* map_stacks(struct Control* control, struct GivenOut given_out) {
  struct StackShare* share = rings_map_stacks(control, stacks.share);
  if (!share) return "there is no room for the table of call stacks";
  stacks.share = share;
  put_given_out(given_out);
  control->stack_frames_max = stacks.frames_max;
  control->stacks_of_frees = stacks.of_frees;
  return stacks_begin_process(share, stacks.frames_max, stacks.of_frees, stacks.with_interpreters);
}

static void begin_stacks(struct Control* control, struct GivenOut given_out) {
  stacks_end_process();  // the parent's
  const char* fault = stacks.are_wanted ? map_stacks(control, given_out) : NULL;
  if (!stacks.are_wanted) control->stacks_at = 0;
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

// The rings of a process that begins, with what their reader is to know of it.
static long make_rings(bool is_forked, struct GivenOut given_out) {
  const bool has_share = stacks.are_wanted || tracing.is_attached;  // attached: the next recording may have stacks
  if (!owners_prepare()) return -ENOMEM;
  const long failed = rings_map(&tracing.control, has_share ? sizeof(struct StackShare) : 0);
  if (failed) return failed;
  struct Control* control = tracing.control;
  must(control->rings_limit != 0);
  control->process = process_id();
  control->collector = 0;
  control->forked = tracing.is_attached ? 2 : is_forked;
  control->clock_is_ns = clock_is_slow;
  control->start_ns = clock_ns(CLOCK_MONOTONIC);
  control->start_stamp = clock_stamp(false);
  control->start_wall = clock_ns(CLOCK_REALTIME) / 1000000000u;
  control->clock = control->start_stamp;
  control->touched_min = large_blocks_min;
  strcpy(control->allocator, allocator_name());
  make_utf8(control->allocator, strlen(control->allocator));
  control->sample_bytes = sampler_interval();
  pool_table_name(control);
  owners_begin_process(&control->owners_bytes);
  touched_begin_process();
  begin_stacks(control, given_out);
  return 0;
}

// A forked child may see other files than its parent, after chroot(2) or in a mount namespace of its own. Then it can
// neither create its trace nor report that to the launcher. Its parent's collector does while the parent runs, by a
// count in the parent's rings. A child that has no rings yet when it forks leaves this count to its own child. The page
// of the count keeps the parent's rings in memory until the child has its first event, or ends.
static void know_parents_counts(void) {
  if (!tracing.parents_counts && !sandbox_entered && !tracing.is_stopped)
    tracing.parents_counts = rings_share_counts(tracing.control);
}

// Detaches the forked thread from its parent's collector: a signal handler may have forked within an event, which goes
// on here. A child that records nothing may exec soon: it has no more to do.
static void part_from_parent(void) {
  generation_page_after_fork();
  sampler_after_fork();
  if (sandbox_entered) return;
  const struct GivenOut given_out = given_to_interrupted_capture();
  know_parents_counts();
  rings_forget(tracing.control);
  if (given_out.rules || given_out.modules || given_out.text) put_given_out(given_out);
}

static void begin_recording(void) {
  must(recording_generation() == 0);
  bool is_forked = tracing.generation != 0;
  tracing.is_attached = false;  // what is attached to is the parent
  if (tracing.control) state.is_paused = tracing.control->paused;
  const struct GivenOut given_out = given_to_interrupted_capture();
  sampler_begin_process();
  if (is_forked) sampler_after_fork();
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
  const long failed = make_rings(is_forked, given_out);
  if (failed) {
    tracing_stop(path_is_given(path_rings) ? "cannot create CMTTRACE_RINGS" : "cannot make the rings",
                 "; the program goes on untraced", -failed);
    return;
  }
  set_recording_generation(tracing.generation);
  if (state.may_open_files) tracing_start_collector();
}

static void begin_process(void) {
  if (tracing.generation != 0) know_parents_counts();
  begin_recording();
  rings_release_counts(tracing.parents_counts);
  tracing.parents_counts = NULL;
}

// The first events of several threads may come at the same time, in a forked child or after a pause. The number of the
// process that begins is its own: a forked child does not wait for a thread that its parent has.
static void begin_process_once(void) {
  static uint32_t beginning;
  if (recording_generation() != 0) return;
  const uint32_t mine = (uint32_t)sys(SYS_getpid, 0);
  while (recording_generation() == 0) {
    uint32_t before = __atomic_load_n(&beginning, __ATOMIC_RELAXED);
    if (before == mine) {
      sys(SYS_sched_yield, 0);
    } else if (__atomic_compare_exchange_n(&beginning, &before, mine, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
      if (recording_generation() == 0) begin_process();
      __atomic_store_n(&beginning, 0, __ATOMIC_RELEASE);
      return;
    }
  }
}

// Records the name of a thread that had one before the recording, or that got it from another thread.
static void record_own_name(void) {
  char name[16] = {0};
  if (sandbox_entered || sys(SYS_prctl, get_name, name) != 0 || name[0] == 0) return;
  make_utf8(name, strlen(name));
  record_long(&(struct Call){.kind = kind_thread_name, .label = name}, NULL);
}

static bool others_name_threads;

void note_name_of_other(void) { __atomic_store_n(&others_name_threads, true, __ATOMIC_RELAXED); }

static void claim_ring(void) {
  struct Thread* self = &thread_self;
  if (self->generation == tracing.generation) {  // in a sandbox a signal handler may have come between
    self->mark = thread_mark(tracing.generation);
    return;
  }
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
  must(ring < tracing.control->rings_limit);
  self->owner = owner_of_ring(ring);
  self->foreign_frees = 0;
  self->asking.at = 0;
  self->begin_ns = sandbox_entered ? 0 : clock_ns(CLOCK_MONOTONIC);
  self->foreign_since = __atomic_load_n(&self->ring->reserved, __ATOMIC_RELAXED);
  stacks_claim(self, ring);
  // The ring is complete: in a sandbox signals are not blocked, and a handler records into it from here on.
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  self->generation = tracing.generation;
  self->mark = thread_mark(tracing.generation);
  const uint32_t number = __atomic_fetch_add(&tracing.control->threads, 1, __ATOMIC_RELAXED);
  if (number) stamps_for_threads();
  record_long(&(struct Call){.kind = (enum Kind)record_owner, .size = number}, NULL);
  if (number) record_long(&(struct Call){.kind = kind_thread_start}, NULL);
  if (tracing.is_attached) record_own_name();
}

// May allocate a block of the program's heap, which the C library frees when the thread ends. So this allocation is an
// event, even inside of the call that begins the thread's recording. Not to be called while an event is recorded.
static void notice_thread_end(void) {
  int saved = errno;
  struct Guard* const guard = thread_self.guard;
  const uint64_t guards = thread_self.guards;
  thread_self.has_destructor = 1;
  thread_self.guard = NULL;
  keys.set(state.key, &thread_self);
  thread_self.guard = guard;
  thread_self.guards = guards;
  errno = saved;
}

// While nothing is recorded: the collector's command may have ended a pause.
static bool is_still_off(void) {
  if (tracing.is_stopped || !tracing.control) return true;
  if (tracing_has_verdict() || __atomic_load_n(&tracing.control->paused, __ATOMIC_RELAXED)) return true;
  stacks_restart();
  set_recording_generation(tracing.generation);
  if (!__atomic_load_n(&tracing.is_stopped, __ATOMIC_SEQ_CST)) return false;
  set_recording_generation(not_recording);  // attached_end() came between
  return true;
}

// Where an ended thread's variables are there, they become those of a new thread. A forked thread has another word too,
// and still has the key's value, which the C library removes from each thread that ends. The guard and the sampler's
// numbers stay: the call that is being recorded uses them, and they are valid in any thread.
static void forget_ended_thread(void) {
  struct Thread* self = &thread_self;
  const uint32_t word = thread_word();
  if (self->word == word) return;
  const bool is_known = self->word == 0 || (state.has_key && keys.get && keys.get(state.key) == self);
  self->word = word;
  self->mark = self->generation = 0;
  if (is_known) return;
  self->ringless = 0;
  self->has_destructor = self->destructor_rounds = 0;
  self->is_in_pool = false;
  self->retry_caller = self->last_made = NULL;
  self->unwinder = NULL;
}

// enter_recording, once a recording has begun.
static bool enter(void) {
  if (recording_generation() == not_recording && is_still_off()) return false;
  forget_ended_thread();
  if (thread_has_ring_of(&thread_self, recording_generation())) return true;
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
  begin_process_once();
  if (recording_generation() == tracing.generation && !thread_has_ring_of(&thread_self, tracing.generation))
    claim_ring();
  if (!sandbox_entered) restore_signals(&before);
  if (!thread_self.has_destructor && state.has_key) notice_thread_end();
  return thread_has_ring_of(&thread_self, recording_generation());
}

static bool is_started(void) { return enter_recording == enter; }

// The kernel forgets what a thread has waited for a processor when the thread ends, so that the collector could not
// ask. /proc/thread-self/schedstat has "RAN WAITED SLICES". Opening it costs 40 us, as much as a short thread takes.
static void report_waits(void) {
  enum { short_ns = 4000000 };
  if (sandbox_entered || !tracing.control->times || clock_ns(CLOCK_MONOTONIC) - thread_self.begin_ns < short_ns) return;
  char text[64];
  const long file = sys(SYS_openat, AT_FDCWD, "/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  const long length = sys(SYS_read, file, text, sizeof text);
  sys(SYS_close, file);
  uint64_t waited_ns = 0;
  long at = 0;
  while (at < length && text[at] != ' ') at++;
  for (at++; at < length && text[at] >= '0' && text[at] <= '9'; at++)
    waited_ns = waited_ns * 10 + (uint64_t)(text[at] - '0');
  __atomic_fetch_add(&tracing.control->ended_wait_ns, waited_ns, __ATOMIC_RELAXED);
}

// Other destructors may run after ours and call free: ours asks to be called again until the last round.
static void thread_ends(void* unused) {
  (void)unused;
  if (thread_self.destructor_rounds++ < destructor_rounds_max) {
    notice_thread_end();
  } else if (recording_is_on()) {
    must(thread_self.ring != NULL);
    report_waits();
    if (__atomic_load_n(&others_name_threads, __ATOMIC_RELAXED)) record_own_name();
    record_long(&(struct Call){.kind = kind_thread_exit}, NULL);
    __atomic_store_n(&thread_self.ring->left, 1, __ATOMIC_RELEASE);
  }
}

static enum StampChoice default_stamps(void) {
  if (!has_sparse_stamps) return stamps_all;
  return clock_cost_ns() < fast_clock_ns ? stamps_by_sharing : stamps_sparse;
}

void start_recording(void) {
  generation_page_start();
  clock_is_slow = !clock_is_steady();
  stamps_choose(default_stamps());
  enter_recording = enter;
  state.sampler_fault = sampler_begin(setting_bytes(setting_sample_bytes));
  read_stack_settings();
  read_touched_setting();
  begin_process();
}

// From here on the interposed functions do what is recorded.
static void become_ready(void) {
  tracer_state = stacks_kinds ? tracer_ready_with_stacks : tracer_ready;
  const enum Variant of_all = stacks_kinds ? variant_framed : variant_plain;
  variants_choose(sampler_interval() != 0 ? variant_sampled : of_all);
}

bool tracer_start(void) {
  if (tracer_state != tracer_not_started) return tracer_state >= tracer_ready;
  int saved = errno;
  tracer_state = tracer_starts;
  remember_standard_error();
  if (has_sanitizer()) restart_without_us();
  const struct RealFault fault = real_find_all();
  if (fault.what) real_die(fault);
  start_recording();
  become_ready();
  errno = saved;
  return true;
}

// pthread_atfork is a part of each library that glibc links, and calls the other one, which musl lacks.
void notice_forks(void) {
  int (*of_glibc)(void (*)(void), void (*)(void), void (*)(void), void*) = NULL;
  int (*of_others)(void (*)(void), void (*)(void), void (*)(void)) = NULL;
  const struct Wanted names[] = {{"__register_atfork", (void**)&of_glibc}, {"pthread_atfork", (void**)&of_others}};
  find_all(names, sizeof names / sizeof *names, find_everywhere);
  if (of_glibc)
    of_glibc(NULL, NULL, part_from_parent, &__dso_handle);
  else if (of_others)
    of_others(NULL, NULL, part_from_parent);
}

static void notice_threads(void) {
  const struct Wanted names[] = {{"pthread_key_create", (void**)&keys.create},
                                 {"pthread_setspecific", (void**)&keys.set},
                                 {"pthread_getspecific", (void**)&keys.get}};
  find_all(names, sizeof names / sizeof *names, find_everywhere);
  state.has_key = keys.create && keys.set && keys.create(&state.key, thread_ends) == 0;
}

static void read_recording_settings(void) {
  tracing.drops = setting_is(setting_on_full, "drop");
  tracing.waits = setting_is(setting_wait, "1");
  if (setting_is(setting_time, "1")) stamps_for_times();
  if (setting_is(setting_stamps, "all")) stamps_choose(stamps_all);
  if (setting_is(setting_stamps, "sparse")) stamps_choose(stamps_sparse);
  if (sampler_interval() != 0) stamps_choose(stamps_all);
  if (setting_is(setting_usable, "1")) choose_short_events(large_blocks_min, real.malloc_usable_size);
  if (is_allocator_code(*(const void**)&real.malloc_usable_size)) owners_usable_size = real.malloc_usable_size;
}

// The pause at the begin is meant, and is not counted as one in which calls are missing.
static void begin_paused_if_wanted(void) {
  if (!setting_is(setting_start, "paused")) return;
  pause_recording(true);
  if (tracing.control) __atomic_store_n(&tracing.control->pauses, 0, __ATOMIC_RELAXED);
}

void start_collecting(void) {
  state.may_open_files = true;
  read_recording_settings();
  notice_threads();
  if (state.sampler_fault) tracing_stop(state.sampler_fault, "; the program goes on untraced", 0);
  const char* parent = setting_value(setting_child_of);
  if (parent && *parent == 0) parent = NULL;
  state.ignores_children = parent != NULL;
  if (parent && (long)setting_number(setting_child_of) != sys(SYS_getppid, 0)) tracing_stop(NULL, "", 0);
  if (!recording_is_on() || !tracing_start_collector()) return;
  report_missing_stacks();
  begin_paused_if_wanted();
  if (!thread_self.has_destructor && state.has_key) notice_thread_end();
}

// A child that a paused process forks records nothing until it is resumed.
void pause_recording(bool paused) {
  if (!is_started() || tracing.is_stopped) return;
  if (paused && recording_is_on()) {
    record_long_label(kind_mark, "cmt_pause");
    __atomic_fetch_add(&tracing.control->pauses, 1, __ATOMIC_RELAXED);
  }
  struct Control* const control = tracing.control;  // after the first event, with which a forked child's begins
  state.is_paused = paused;
  if (control && recording_generation() != 0) {
    __atomic_store_n(&control->paused, paused, __ATOMIC_SEQ_CST);
    stacks_restart();
    set_recording_generation(paused ? not_recording : tracing.generation);
  } else if (!paused) {
    set_recording_generation(0);
  }
  if (!paused && recording_is_on()) record_long_label(kind_mark, "cmt_resume");
}

// In the first recording of the process.
static const char* start_attached(void) {
  static char line[128];
  tracer_state = tracer_starts;
  real_order = find_everywhere;
  const struct RealFault fault = real_find_all();
  tracer_state = tracer_not_started;
  if (fault.what) {
    stpcpy(stpcpy(line, fault.what), fault.detail);
    return line;
  }
  if (is_under_valgrind) return "valgrind runs the program";
  generation_page_start();
  clock_is_slow = !clock_is_steady();
  notice_threads();
  notice_forks();
  return NULL;
}

// A forked child has its parent's rings until its first event.
static void forget_last_recording(void) {
  collector_forget();
  if (tracing.control && recording_generation() == 0) rings_forget(tracing.control);
  tracing.control = NULL;
  stacks.share = NULL;
  stacks.fault = NULL;
  large_blocks_forget();
  stamps_forget();
}

const char* attached_begin(void) {
  const char* fault = is_started() ? NULL : start_attached();
  if (fault) return fault;
  fault = sampler_begin(setting_bytes(setting_sample_bytes));
  if (fault) return fault;
  generation_page[1] = (uint32_t)sys(SYS_getpid, 0);
  forget_last_recording();
  set_recording_generation(not_recording);
  tracing.is_stopped = tracing.is_attached = tracing.is_collector_started = true;
  tracing.is_finishing = false;
  tracing.generation++;
  enter_recording = enter;
  state.may_open_files = true;
  state.is_paused = false;
  state.ignores_children = !setting_is(setting_follow, "1");
  thread_session++;
  sampler_begin_process();
  stamps_choose(default_stamps());
  read_stack_settings();
  read_touched_setting();
  read_recording_settings();
  rings_keep_place();
  if (make_rings(false, (struct GivenOut){0}) != 0) return "there is no memory for the rings";
  become_ready();
  report_missing_stacks();
  return NULL;
}

void attached_resume(void) {
  must(tracing.control != NULL && tracing.generation != 0);
  tracing.is_stopped = false;
  set_recording_generation(tracing.generation);
  begin_paused_if_wanted();
}

void attached_end(void) {
  struct Control* control = tracing.control;
  const bool is_parents = recording_generation() == 0;  // this is a forked child
  // In this order: another thread that finds nothing recorded would take it for the end of a pause (is_still_off).
  __atomic_store_n(&tracing.is_stopped, true, __ATOMIC_SEQ_CST);
  set_recording_generation(not_recording);
  python_pool_end();
  tracer_state = tracer_ready;
  variants_choose(variant_plain);
  if (!control || !tracing.is_attached || is_parents) return;
  __atomic_store_n(&control->request_kind, request_finish, __ATOMIC_RELAXED);
  __atomic_add_fetch(&control->request, 1, __ATOMIC_SEQ_CST);
  ring_bell(asleep_briefly);
}

void attached_release(void) {
  if (tracing.control) rings_detach(tracing.control);
  owners_forget();
  large_blocks_forget();
  stacks_release();
}

bool attached_is_on(void) {
  return tracing.is_attached && tracing.control && !tracing.is_stopped && recording_generation() != 0;
}
