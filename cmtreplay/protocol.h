/* What cmtreplay and its worker say to each other: operations, and a page of control.
 *
 * The parent decodes the trace and leaves the worker as little as can be left: an operation is one word of 8 bytes,
 *
 *     bits 0-3    which call (enum operation)
 *     bits 4-31   the slot: where in the table of live blocks the call's pointer stands
 *     bits 32-63  the size in bytes; 0xffffffff: it stands in the next word instead
 *
 * and where a call needs more, further words follow: first the size that did not fit, then the calls' own, as said at
 * each operation. Slots are recycled, the last freed first, so that the table has as many entries as blocks are live at
 * the peak, and is as warm in the cache as the program's own pointers were. Slot 0 holds NULL for ever.
 *
 * Operations, slots, control and returned pointers each lie in a memfd of their own. Their names begin with
 * "cmtreplay-": so the parent can tell them apart from the allocator's memory in /proc/PID/smaps.
 *
 * They share a socket as well. The worker writes a byte to it whenever it has stopped, and goes on when it has read
 * one. It stops before the start, at every mark, and after the end, which is a mark too. A worker that dies closes its
 * end: so its death is seen at once. */
#pragma once

#include <stdint.h>

enum operation {
  operation_malloc = 0,
  operation_free = 1,
  operation_calloc = 2,        /* count; the size is one element's */
  operation_realloc = 3,       /* the slot is kept; the whole block is touched */
  operation_realloc_from = 4,  /* old size: bytes before it were touched long ago */
  operation_realloc_new = 5,   /* realloc(NULL, size) */
  operation_reallocarray = 6,  /* count, old size */
  operation_aligned_alloc = 7, /* alignment, as in the next two */
  operation_posix_memalign = 8,
  operation_memalign = 9,
  operation_valloc = 10,
  operation_pvalloc = 11
};

enum {
  slot_bits = 28,
  slot_null = 0,    /* holds NULL */
  slot_scratch = 1, /* for a malloc(0) that returned NULL in the trace: freed at once */
  slot_first = 2,
  marks_max = 128
};

#define SIZE_IN_NEXT_WORD UINT32_MAX

static inline uint64_t operation_word(enum operation kind, uint32_t slot, uint32_t size) {
  return (uint64_t)kind | (uint64_t)slot << 4 | (uint64_t)size << 32;
}

/* Which allocator the worker calls. */
enum target {
  target_process = 0, /* what the process's malloc is: libc's, or the preloaded library's */
  target_null = 1     /* the built-in one that touches nothing */
};

struct control {
  /* Written by the parent before the worker starts. */
  int32_t operations_fd, slots_fd, pointers_fd; /* pointers_fd -1: returned pointers are not kept */
  int32_t talk_fd;                              /* a socket */
  int32_t target;
  uint32_t replaced; /* a bit for each call that the library lacks, in the order of call_names */
  uint32_t mark_count;
  uint64_t operation_words; /* length of the operations */
  uint64_t slot_count, pointer_count;
  uint64_t marks[marks_max]; /* words after which to stop, rising; the last is operation_words */

  /* Written by the worker. */
  volatile uint64_t position; /* the word of the operation that is being carried out */
  uint64_t wall_ns, cpu_ns;   /* from the first operation to the last, stops at marks included */
  uint64_t refused;           /* calls that returned NULL here and not in the trace */
  uint64_t minor_faults, major_faults;
  int32_t setup_errno; /* why the worker could not begin; 0: it could */
};
