/* What a worker that verifies says to cmtreplay: the faults that it found, in shared memory, so that they outlive a
 * worker that dies of one. */
#pragma once

#include <stdint.h>

#include "target.h"

/* Each breaks a promise that malloc(3) or C makes to programs. */
enum fault {
  fault_misaligned = 0,   /* the address is no multiple of what was asked for, or of what its size may need */
  fault_overlap = 1,      /* some of its bytes are in a block that is live: `other` is where that begins */
  fault_contents = 2,     /* what was written to the block was not there any more when it was freed: `other` is where */
  fault_moved = 3,        /* the same, over a realloc */
  fault_not_zero = 4,     /* calloc: `other` is the first byte that is not 0 */
  fault_usable = 5,       /* malloc_usable_size says less than was asked for: `other` is what it said */
  fault_usable_other = 6, /* malloc_usable_size promised bytes that are in another live block: `other` is that one */
  fault_impossible = 7,   /* more than an address space holds was asked for, and a block returned */
  fault_lost = 8          /* a realloc that was refused did not leave the block as it was */
};

enum { fault_count = 9, findings_max = 1000 };

#define finding_at_end UINT64_MAX

struct finding {
  uint32_t fault;       /* enum fault */
  uint32_t call;        /* as in call_names */
  uint64_t lane;        /* of operations, and where in it the call stands: so the event is known */
  uint64_t position;    /* finding_at_end: after the trace */
  uint64_t address;     /* of the block */
  uint64_t size, count; /* as asked for; count 1 where the call has none */
  uint64_t alignment;   /* as asked for, or what the block needs by its size; 0 where it is not meant */
  uint64_t other;
};

struct verification {
  uint64_t found; /* all of them; the first findings_max are kept */
  uint64_t blocks, bytes;
  uint64_t has_usable_size;
  uint64_t trying_impossible; /* call + 1 while an impossible call is made: an allocator may end the process there */
  struct finding findings[findings_max];
};

/* From here on for the worker.
 *
 * The calls, each with its checks around. `replaced` as in completed_calls: stand-ins promise less. Returns an errno
 * where there is not enough address space. */
int verify(struct calls* calls, uint32_t replaced, struct verification* shared);

/* After the replay, on one thread: looks at the blocks that were never freed, and asks for what cannot be had. */
void verify_end(void);

/* Where the operation that this thread carries out stands. */
void verify_place(uint64_t* lane, uint64_t* position);
