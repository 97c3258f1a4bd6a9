/// One event in, one line of text out: the tags, the thread numbers, the order.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/lock.h"

enum CallKind {
  call_malloc,
  call_free,
  call_calloc,
  call_realloc,
  call_reallocarray,
  call_aligned_alloc,
  call_posix_memalign,
  call_memalign,
  call_valloc,
  call_pvalloc,
  call_free_sized,
  call_free_aligned_sized,
  call_thread_start,
  call_thread_exit,
  call_thread_name,
};

struct Call {
  enum CallKind kind;
  uint64_t arguments[2];  ///< sizes, counts and alignments, in the order of the line
  void* given;            ///< the block that the call was given
  void* result;           ///< the block that it returned
  const char* label;      ///< of thread_name
};

/// What belongs to a thread. Zero at its birth.
struct Thread {
  uint32_t id;             ///< the kernel's, which the lock is taken with
  uint32_t number;         ///< ours
  uint32_t generation;     ///< the process (counted in forks) in which id and number hold
  uint16_t inside;         ///< depth of calls into the real allocator: what it calls of ours is its own affair
  uint8_t has_destructor;  ///< whether its end will be noticed
  uint8_t destructor_rounds;
};

extern __thread struct Thread thread_self;

/// Before the first event, in the only thread.
void record_start(void);
/// From the constructor: files can be opened, and thread ends be noticed.
void record_files_allowed(void);

/// Writes the event of a call. Of a free: before the real one; of an allocation: after it.
void record(const struct Call* call);

/// A realloc gives its old block away before it has returned. Between the two, no other event is written; other
/// threads that got the old block's address wait before they say so.
bool record_hold(void);
void record_release(bool held, const struct Call* call);

/// No event is written from here on, in this process. Says so on standard error, once.
void record_stop(const char* what, const char* detail, long error);

/// The process is about to end: what was recorded is in the file, with the end line, and each further event goes
/// straight there too.
void record_end_now(void);
/// The same, for the last moment that we know of: waits until a .cmt is whole, and records nothing after it.
void record_end_for_good(void);
/// Before an exec: the file is whole as it would be at an exit. Other threads' events wait until exec has failed.
bool record_before_exec(void);
void record_exec_failed(bool held);
