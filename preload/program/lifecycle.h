/// The seldom part of recording: a process's start, a thread's first event and its end, pauses.
///
/// A forked child's first event makes rings of its own (tracing.h). Until then memory that nobody reads is where the
/// parent's are, so that an event that a signal handler has interrupted and forked within goes on there. After _Fork()
/// and clone(), which call no handler, they stay mapped, and such an event gives its slots back.
///
/// Starting a process and claiming a ring block signals, so that a handler finds them done or not begun.
#pragma once

#include <stdbool.h>

#include "preload/program/record.h"
#include "preload/program/tracing.h"

enum TracerState {
  tracer_not_started,
  tracer_starts,  ///< the real functions are being looked for
  tracer_ready,
  tracer_ready_with_stacks,  ///< ready, and call stacks are recorded
};
extern enum TracerState tracer_state HIDDEN;

/// At the first call: finds the real functions, creates the rings and chooses the clock. The process has one thread
/// then, because the dynamic loader calls malloc before any constructor. False while the functions are being looked
/// for: the call came out of dlsym, and the arena serves it.
bool tracer_start(void);
static inline bool tracer_is_ready(void) { return __builtin_expect(tracer_state >= tracer_ready, 1) || tracer_start(); }
/// tracer_start() without the real functions.
void start_recording(void);

/// Replaces tracer_start() and start_collecting() in an attached tracer, while no module leads to it yet and signals
/// are blocked. Returns NULL, or why the program cannot be recorded. The rings are there then, with their descriptor,
/// and nothing is recorded until attached_resume().
const char* attached_begin(void);
/// The rings are the collector's. From here on all threads' events are recorded.
void attached_resume(void);
/// No event is recorded any more; the collector is asked to finish.
void attached_end(void);
/// When no thread is in the tracer: gives back the memory that the recording has taken. Addresses stay reserved, since
/// a thread may have been interrupted in the tracer, and for the next attach.
void attached_release(void);
/// Whether this process, and not its parent, has a recording that attached_end() has not ended.
bool attached_is_on(void);

/// Names this library to functions that register handlers.
extern void* __dso_handle HIDDEN;
/// Has forked children part from the recording of their parent. May allocate.
void notice_forks(void);
/// From the tracer's constructor on: files can be opened, ends of threads be noticed, and the collector be started.
void start_collecting(void);

void pause_recording(bool paused);

/// A thread has named another one. From here on each thread reads its name at its end, and records it.
void note_name_of_other(void);
