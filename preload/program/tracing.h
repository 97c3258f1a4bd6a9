/// Whether this process is recorded, and its conversation with its collector.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/program/kernel.h"
#include "preload/protocol.h"

struct Tracing {
  struct Control* control;    ///< of this process; NULL before its first event
  uint32_t generation;        ///< forks since the first process began, plus 1; of the process that `control` belongs to
  bool is_collector_started;  ///< or its start has failed
  bool is_stopped;            ///< for ever, in forked children too
  bool is_finishing;          ///< the collector was asked to end
  bool drops;                 ///< a thread whose ring is full drops the event, rather than wait
  bool waits;                 ///< the process waits at its end until the trace is whole
  uint32_t faults;            ///< of the collector that were reported
  bool is_attached;           ///< the collector was started by another program, and may be gone unnoticed
  struct UnrecordedCounts* parents_counts;  ///< until a forked child has begun: its parent's; or NULL
};
extern struct Tracing tracing HIDDEN;

/// [0] is the generation while events are recorded. Otherwise it is a value that no thread has: not_recording or 0. It
/// is 0 before the start and in a forked child, where the kernel wipes this page (MADV_WIPEONFORK, after _Fork and
/// clone too). [1] is the process id. A thread compares its own generation with this one before each event. So no lock
/// is involved that a lost thread could hold.
extern uint32_t generation_page[1024] HIDDEN;
static const uint32_t not_recording = 0xffffffffu;

static inline uint32_t recording_generation(void) { return __atomic_load_n(&generation_page[0], __ATOMIC_RELAXED); }
static inline void set_recording_generation(uint32_t generation) {
  __atomic_store_n(&generation_page[0], generation, __ATOMIC_SEQ_CST);  // is_still_off() relies on it
}

/// Makes the calling thread able to record, if the process is recorded. lifecycle.c sets it when the first recording
/// begins; before that nothing is recorded. It is a pointer since lifecycle.c itself calls the files that call this.
extern bool (*enter_recording)(void) HIDDEN;

/// Makes the kernel wipe the page in forked children.
void generation_page_start(void);
/// Called in a forked child, if libc calls handlers of forks: kernels before 4.14 wipe nothing.
void generation_page_after_fork(void);

/// The id of this process. A child of vfork, which has a process id of its own, is no process here: it borrows its
/// parent's memory, thread and ring.
uint32_t process_id(void);
bool is_vfork_child(void);

/// Records nothing from here on, in this process. Says so on standard error once, unless `what` is NULL.
void tracing_stop(const char* what, const char* detail, long error);

/// Starts the collector, if it is not started. False if that fails; then the tracing is stopped.
bool tracing_start_collector(void);
/// Wakes the collector if it sleeps as deeply as `depth`.
void ring_bell(uint32_t depth);
/// Whether the collector wants no more events, or cannot take them. Then the tracing is stopped.
bool tracing_has_verdict(void);

/// For `count` slots from `position` on, which end beyond `soft`: waits until they are below `limit`. False if the
/// event must not be written: it was dropped, or the tracing is stopped.
bool wait_for_room(struct Ring* ring, uint64_t position, uint64_t count);

/// The process may be about to end. With CMTTRACE_WAIT its trace is whole afterwards, and events can still follow.
void tracing_leave(void);
/// The process ends: the collector does too.
void tracing_finish(void);
/// Before an exec; `tracing_exec_failed` after one that has returned, with the result of this.
bool tracing_before_exec(void);
void tracing_exec_failed(bool was_held);
