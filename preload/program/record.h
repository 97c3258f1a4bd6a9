/// Recording an event: the path that every call takes, as inline functions, and the rest in append.c and record.c.
///
/// `thread_self.guard` is the frame of the outermost of our functions that is at work in this thread, so that what the
/// real function calls of ours in turn (aligned_alloc calls memalign, operator new calls malloc) is no event. A frame
/// that an exception or longjmp has left must not guard for ever: see guard_holds.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/protocol.h"

/// The values are libcmt's, and on the wire (format-spec/cmt.md, "Kinds").
enum Kind {
  kind_malloc = 0,
  kind_free = 1,
  kind_calloc = 2,
  kind_realloc = 3,
  kind_reallocarray = 4,
  kind_aligned_alloc = 5,
  kind_posix_memalign = 6,
  kind_memalign = 7,
  kind_valloc = 8,
  kind_pvalloc = 9,
  kind_free_sized = 10,
  kind_free_aligned_sized = 11,
  kind_operator_new = 12,
  kind_operator_new_nothrow = 13,
  kind_operator_new_array = 14,
  kind_operator_new_array_nothrow = 15,
  kind_operator_delete = 16,
  kind_operator_delete_sized = 17,
  kind_operator_delete_array = 18,
  kind_operator_delete_array_sized = 19,
  kind_thread_start = 20,
  kind_thread_exit = 21,
  kind_thread_name = 22,
  kind_mark = 23,
  // Of a guard alone.
  kind_own_use = 63,            ///< the tracer calls what may call malloc
  kind_of_allocators_own = 64,  ///< a flag: an operator new that is the allocator's, not the C++ library's
};

/// An event that has more than an address and a size.
struct Call {
  enum Kind kind;
  uint32_t flags;  ///< slot_has_old_block
  const void* address;
  uint64_t size;
  bool has_count;
  uint64_t count;
  uint64_t alignment;
  const char* label;
};

/// What a guard leaves in its frame; the inner malloc of operator new finds the event that it is made for here.
struct Guard {
  uint64_t token;
  enum Kind kind;  ///< of operator new, else kind_malloc
  uint64_t size;
  uint64_t alignment;
};

/// What belongs to a thread. Zero at its birth, but for the generation: a new thread may be the first to record in a
/// forked child, where record_state is 0.
struct Thread {
  struct Guard* guard;
  struct Slot* slots;
  struct Ring* ring;
  uint32_t number;      ///< from 1 on, in its process
  uint64_t lease;       ///< its stamps, while it records alone
  uint64_t others;      ///< places that all other threads had reserved when it last looked
  uint32_t generation;  ///< the process (counted in forks, from 1) in which the ring is ours; no_generation: none yet
  uint32_t epoch;       ///< upper bits of the last stamp
  uint64_t guards;      ///< for tokens
  const void* retry_caller;  ///< of the malloc inside operator new that has failed
  struct Guard retry;
  uint8_t has_destructor;  ///< whether its end will be noticed
  uint8_t destructor_rounds;
  uint32_t ringless;  ///< the generation in which there was no ring for it
};

extern __thread struct Thread thread_self;

/// The process's generation while it records. Another value, different from all threads': 0 before the start and in a
/// forked child, and `not_recording`. In a page that the kernel wipes in a child.
extern uint32_t record_state[1024];
static const uint32_t not_recording = 0xffffffffu;
enum { no_generation = 0x7fffffff };

static inline uint32_t record_generation(void) { return __atomic_load_n(&record_state[0], __ATOMIC_RELAXED); }

extern bool record_clock_is_ns;
extern bool record_usable;
/// A second thread has made an event, in this process or in one that it was forked from.
extern bool record_second_thread;

/// The number of the thread that records alone (preload/protocol.h), or 0.
extern uint32_t lease_holder;

static inline bool record_is_alone(const struct Thread* self) {
  return __atomic_load_n(&lease_holder, __ATOMIC_RELAXED) == self->number;
}

static inline bool record_has_threads(void) { return __atomic_load_n(&record_second_thread, __ATOMIC_RELAXED); }

uint64_t record_slow_clock(void);
/// Makes the thread able to record, if it may. Before the real function is called.
bool record_enter(void);
/// The place `at` lies past `soft`: waits, drops or stops. False where the record is not to be written.
bool record_wait(struct Ring* ring, uint64_t at, uint64_t count);
/// Appends an event of several records, or with a new epoch.
void record_long(const struct Call* call);
/// Appends an event, with other threads at work.
void record_among_others(uint32_t kind, const void* address, uint64_t size);
/// One that may be more than a record.
void record_plainly(uint32_t kind, const void* address, uint64_t size);
/// The same where a place is reserved at which it cannot stand.
void record_anew(uint64_t at, uint32_t kind, const void* address, uint64_t size);

static inline bool record_allowed(void) {
  return __builtin_expect(thread_self.generation == record_generation(), 1) || record_enter();
}

/// Now. rdtsc may run before what comes before it is done, by as long as a cache line takes to come from another
/// processor; `fenced`, it does not.
static inline uint64_t record_clock(bool fenced) {
  if (__builtin_expect(record_clock_is_ns, 0)) return record_slow_clock();
  if (fenced) __builtin_ia32_lfence();
  return __builtin_ia32_rdtsc() >> stamp_shift;
}

/// Whether an event needs a stamp that is not early. What ends a block does, where there are other threads: it may have
/// been handed over a moment ago, by a thread that had freed it and been given the same address again, and all that
/// takes an allocator with caches a thread 30 ns.
static inline bool record_ends_block(uint32_t kind) {
  kind &= slot_kind_mask;
  return kind == record_realloc_begin || kind == kind_free || kind == kind_free_sized ||
         kind == kind_free_aligned_sized || (kind >= kind_operator_delete && kind <= kind_operator_delete_array_sized);
}

// Reserves `count` places and returns the first. Only the owner and its signal handlers do, and a signal cannot split
// one instruction, so it needs no lock prefix. The thread sanitizer does not see into assembly: there it is an atomic.
static inline uint64_t record_reserve(struct Ring* ring, uint64_t count) {
#ifdef CMT_SANITIZED
  return __atomic_fetch_add(&ring->reserved, count, __ATOMIC_RELAXED);
#else
  __asm__ volatile("xaddq %0, %1" : "+r"(count), "+m"(ring->reserved) : : "memory", "cc");
  return count;
#endif
}

/// Whether `count` places from `at` on lie below `soft`, so that `limit` need not be looked at. The acquire puts the
/// collector's earlier reads of these places before our writes. (Where we have stored `soft` ourselves, in record_wait,
/// the acquire of `limit` there does.)
static inline bool record_is_below_soft(const struct Ring* ring, uint64_t at, uint64_t count) {
  return at + count <= __atomic_load_n(&ring->soft, __ATOMIC_ACQUIRE);
}

static inline void record_publish(const struct Thread* self, uint64_t at, uint64_t head, uint64_t body) {
  uint32_t slots = self->ring->slots;
  struct Slot* slot = &self->slots[at & (slots - 1)];
  slot->body = body;
  head |= slot_valid | (at & slots ? slot_parity : 0);
  __atomic_store_n(&slot->head, head, __ATOMIC_RELEASE);
}

static inline uint64_t record_head(uint32_t kind, const void* address) {
  return (uint64_t)address << slot_address_shift | kind;
}

/// The stamp of an event of a thread that records alone.
static inline uint64_t record_lease(const struct Thread* self) {
  uint64_t told = __atomic_load_n(&self->ring->clock, __ATOMIC_RELAXED);
  return told > self->lease ? told : self->lease;
}

/// Whether an event is one record, but for a new epoch.
static inline bool record_is_short(uint64_t size) { return size >> 32 == 0 && !record_usable; }

/// Whether a record says all of its stamp. To be asked when its place is reserved: a signal handler that begins an
/// epoch does so before, and is seen here, or behind.
static inline bool record_is_of_epoch(const struct Thread* self, uint64_t stamp) { return stamp >> 32 == self->epoch; }

static inline void record_put(const struct Thread* self, uint64_t at, uint32_t kind, const void* address, uint64_t size,
                              uint64_t stamp) {
  record_publish(self, at, record_head(kind, address), size << 32 | (uint32_t)stamp);
}

/// Appends an event. `kind`: with flags of the head. A call of it would cost each event a few ns.
__attribute__((always_inline)) static inline void record(uint32_t kind, const void* address, uint64_t size) {
  struct Thread* self = &thread_self;
  if (!record_is_alone(self)) {
    record_among_others(kind, address, size);
    return;
  }
  uint64_t stamp = record_lease(self);
  if (__builtin_expect(!record_is_short(size), 0)) {
    record_plainly(kind, address, size);
    return;
  }
  uint64_t at = record_reserve(self->ring, 1);
  if (__builtin_expect(
          record_is_below_soft(self->ring, at, 1) && record_is_alone(self) && record_is_of_epoch(self, stamp), 1))
    record_put(self, at, kind, address, size, stamp);
  else
    record_anew(at, kind, address, size);
}

/// Whether code of the allocator's library.
bool guard_is_of_allocator(const void* code);

/// Whether a guard set before is that of a function which has not returned: its frame lies above ours, and still
/// holds its token. Where it does not, an exception or longjmp went past it. An allocator's own operator new tells us
/// nothing of its failures: there only what the allocator itself calls is inside, not a new_handler, and not what comes
/// after an exception.
static inline bool guard_holds(const struct Guard* guard, const void* frame, const void* caller) {
  if ((const void*)guard <= frame || guard->token != (thread_self.guards ^ (uintptr_t)guard)) return false;
  return __builtin_expect(guard->kind < kind_of_allocators_own, 1) || guard_is_of_allocator(caller);
}

/// Before the real function is called: whether the call is the program's own, and to be recorded.
static inline bool guard_enter(struct Guard* mine, enum Kind kind) {
  struct Thread* self = &thread_self;
  if (__builtin_expect(self->guard != NULL, 0) && guard_holds(self->guard, mine, __builtin_return_address(0)))
    return false;
  mine->token = ++self->guards ^ (uintptr_t)mine;
  mine->kind = kind;
  self->guard = mine;
  return true;
}

static inline void guard_leave(void) { thread_self.guard = NULL; }

/// From the start, in the only thread: memory and clock.
void record_start(void);
/// From the constructor: files can be opened, thread ends be noticed, and the collector be started.
void record_files_allowed(void);

/// No event is recorded from here on, in this process. Says so on standard error, once.
void record_stop(const char* what, const char* detail, long error);

/// The process is about to end. Where it waits for its trace (CMTTRACE_WAIT), that is whole as if it had, but what
/// follows still comes to it.
void record_leaving(void);
/// The process ends: the same, and the collector with it.
void record_finish(void);
/// Before an exec, the same as before an end; `record_exec_failed` where it has come back.
bool record_before_exec(void);
void record_exec_failed(bool announced);

/// While system calls are still allowed, in a process that is about to forbid them to itself, and maybe the clock: does
/// what needs them. False where this is not about this process, but about a child of vfork.
bool record_may_enter_sandbox(bool has_clock);

/// The calling thread's name, unless the caller is a child of vfork, which borrows the thread.
void record_own_name(const char* name);
/// A label of a mark or of the thread.
void record_label(enum Kind kind, const char* label);
void record_pause(bool paused);
