// Order. Per-thread order is free; across threads one thing must hold: a block's end comes before the next block at the
// same address. So a free is recorded before the real call and an allocation after it: between a free's line and the
// next allocation's at that address lies the real free. Only realloc does both in one call, and there the lock is held
// around it: whoever got the old address in the meantime waits for the lock before it says so.
//
// Tags. They rise by one an allocation. A process that starts has some in reserve below its first, for blocks from
// before the start: what a forked child inherited keeps its tag, and what was never seen gets one of the reserve, so
// that such a free is a line like all others.
//
// A signal handler that allocates may have interrupted the lock's owner. It then leaves its events in `nested`, and the
// owner writes them before it gives the lock away. Order is kept: nobody else can write in between.
//
// Fork. A child finds `alive` wiped by the kernel (MADV_WIPEONFORK: also after _Fork and clone), and starts over: the
// lock open, the buffer empty, a file of its own. It is looked at before the lock, so a lock that a lost thread held
// blocks nobody. A child of vfork or posix_spawn shares memory and thread with its parent, and so its file.
#include "preload/record.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "preload/line.h"
#include "preload/output.h"
#include "preload/sys.h"
#include "preload/tags.h"

enum { tags_in_reserve = 1000, nested_max = 64, destructor_rounds_max = 3, wipe_on_fork = 18 };

__thread struct Thread thread_self;

static struct {
  struct Lock lock;
  uint32_t generation;
  uint32_t threads;
  uint64_t next_tag;
  uint64_t first_tag;
  uint64_t next_unseen_tag;
  uint64_t start_ns;
  bool times;
  bool stopped;
  bool ending;
  bool has_key;
  pthread_key_t key;
  uint32_t nested_count;
  struct Call nested[nested_max];
} state;

static uint32_t always_alive = 1;
static uint32_t* alive = &always_alive;  // 0 in a forked child that has not begun

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void begin_process(void) {
  state.lock.word = 0;
  state.generation++;
  state.threads = 0;
  state.nested_count = 0;
  state.next_unseen_tag = state.next_tag;
  state.first_tag = state.next_tag += tags_in_reserve;
  state.start_ns = now_ns();
  output_begin_process();
  *alive = 1;
}

static void begin_forked_child(void) {
  bool torn = state.lock.word != 0;
  begin_process();
  if (torn && !tags_rebuild()) record_stop("no memory for the table of tags", "", 0);
}

static void look_for_fork(void) {
  if (__builtin_expect(*alive == 0, 0)) begin_forked_child();
}

// Kernels before 4.14 wipe nothing.
static void after_fork(void) {
  if (alive == &always_alive) *alive = 0;
  look_for_fork();
}

void record_start(void) {
  uint32_t* page = sys_map(4096);
  if (page && sys(SYS_madvise, page, 4096, wipe_on_fork) == 0) alive = page;
  state.next_tag = 1;
  begin_process();
}

void record_stop(const char* what, const char* detail, long error) {
  if (__atomic_exchange_n(&state.stopped, true, __ATOMIC_RELAXED)) return;
  say(what, detail, error);
}

static uint64_t bytes_asked(const struct Call* call) {
  return call->kind == call_reallocarray && call->arguments[0] == 0 ? 0
                                                                    : call->arguments[call->kind == call_reallocarray];
}

static bool ends_given(const struct Call* call) {
  return !line_allocates(call->kind) || call->result || bytes_asked(call) == 0;
}

static uint64_t tag_of_given(const struct Call* call) {
  uint64_t address = (uint64_t)call->given;
  bool ends = ends_given(call);
  uint64_t tag = ends ? tags_take(address) : tags_find(address);
  if (tag) return tag;
  if (state.next_unseen_tag == state.first_tag) return 0;
  tag = state.next_unseen_tag++;
  if (!ends) tags_put(address, tag);
  return tag;
}

static void add_line(struct Line* line) { output_added(line_write(output_room(line_bytes_max), line)); }

// A block whose end we did not see (a call that is not among ours) must not seem to live beside the new one.
static void end_forgotten(const struct Line* of) {
  uint64_t tag = tags_find((uint64_t)of->call->result);
  if (tag < state.first_tag) return;
  struct Call call = {.kind = call_free, .given = of->call->result};
  struct Line line = {&call, tag, 0, of->time_ns, of->thread};
  add_line(&line);
  output_count_repair();
}

static void write_event(const struct Call* call) {
  struct Line line = {call, 0, 0, state.times ? now_ns() - state.start_ns : UINT64_MAX, thread_self.number};
  if (!tags_reserve()) {
    output_flush(end_truncated);
    record_stop("no memory for the table of tags; the trace ends here", "", 0);
  }
  if (state.stopped) return;
  if (call->given) line.given_tag = tag_of_given(call);
  if (call->result) {
    end_forgotten(&line);
    line.result_tag = state.next_tag++;
    tags_put((uint64_t)call->result, line.result_tag);
  }
  add_line(&line);
  if (state.ending) output_flush(end_complete);
}

static void write_nested(void) {
  for (uint32_t done = 0, count = 0;;) {
    uint32_t seen = __atomic_load_n(&state.nested_count, __ATOMIC_RELAXED);
    for (count = seen < nested_max ? seen : nested_max; done < count; done++) write_event(&state.nested[done]);
    if (!__atomic_compare_exchange_n(&state.nested_count, &seen, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
      continue;
    for (; seen > nested_max; seen--) output_count_repair();
    return;
  }
}

static void keep_nested(const struct Call* call) {
  uint32_t place = __atomic_fetch_add(&state.nested_count, 1, __ATOMIC_RELAXED);
  if (place < nested_max) state.nested[place] = *call;
  if (place < nested_max) state.nested[place].label = NULL;
}

enum Entry { entry_none, entry_taken, entry_nested };

static void name_thread(void) {
  thread_self.number = state.threads++;
  thread_self.generation = state.generation;
  if (thread_self.number) write_event(&(struct Call){.kind = call_thread_start});
}

static enum Entry enter(void) {
  if (state.stopped) return entry_none;
  look_for_fork();
  if (thread_self.generation != state.generation) thread_self.id = (uint32_t)sys(SYS_gettid, 0);
  if (lock_is_mine(&state.lock, thread_self.id)) return entry_nested;
  lock_take(&state.lock, thread_self.id);
  if (thread_self.generation != state.generation) name_thread();
  return entry_taken;
}

// Noticing the thread's end may need memory of the program's heap: that is an event, and must not happen inside.
static void notice_end(void) {
  int saved = errno;
  thread_self.has_destructor = 1;
  pthread_setspecific(state.key, &thread_self);
  errno = saved;
}

static void leave(void) {
  do {
    if (!lock_is_mine(&state.lock, thread_self.id)) lock_take(&state.lock, thread_self.id);
    write_nested();
    lock_give(&state.lock);
  } while (__atomic_load_n(&state.nested_count, __ATOMIC_RELAXED) != 0);
  if (!thread_self.has_destructor && state.has_key) notice_end();
}

void record(const struct Call* call) {
  enum Entry entry = enter();
  if (entry == entry_nested) keep_nested(call);
  if (entry != entry_taken) return;
  write_event(call);
  leave();
}

bool record_hold(void) { return enter() == entry_taken; }

void record_release(bool held, const struct Call* call) {
  if (held) {
    write_event(call);
    leave();
  } else {
    record(call);
  }
}

// Other destructors may run after ours and call free: ours asks to be called again until the last round.
static void thread_ends(void* unused) {
  (void)unused;
  if (thread_self.destructor_rounds++ < destructor_rounds_max)
    notice_end();
  else
    record(&(struct Call){.kind = call_thread_exit});
}

void record_files_allowed(void) {
  const char* times = getenv("CMTTRACE_TIME");
  state.times = times && strcmp(times, "1") == 0;
  state.has_key = pthread_key_create(&state.key, thread_ends) == 0;
  pthread_atfork(NULL, NULL, after_fork);
  if (enter() != entry_taken) return;
  output_room(0);
  leave();
}

// A vfork child's end is not its parent's, and a forked child that recorded nothing has nothing to end.
static bool is_recording(void) { return !state.stopped && *alive != 0 && output_is_ours(); }

// Also where a signal handler that ends the process has interrupted the lock's owner: the buffer holds whole lines at
// any time.
static void end_process(bool for_good) {
  enum Entry entry = is_recording() ? enter() : entry_none;
  if (entry == entry_none) return;
  state.ending = true;
  output_flush(end_complete);
  if (for_good && !output_finish()) state.stopped = true;
  if (entry == entry_taken) leave();
}

void record_end_now(void) { end_process(false); }

void record_end_for_good(void) { end_process(true); }

bool record_before_exec(void) {
  if (!is_recording() || enter() != entry_taken) return false;
  output_flush(end_complete);
  return true;
}

void record_exec_failed(bool held) {
  if (!held) return;
  if (!state.ending) output_go_on();
  leave();
}
