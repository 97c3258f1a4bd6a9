/* The protocol between cmtreplay and its worker: operations, and a control region in shared memory.
 *
 * An operation is one word of 8 bytes:
 *
 *     bits 0-3    the call (enum operation)
 *     bits 4-31   the slot: index of the call's pointer in the table of live blocks
 *
 *     bits 32-63  the size in bytes; 0xffffffff: the size is in the next word
 *
 * Further words follow if a call needs more: first a size that did not fit, then the arguments named at each operation.
 *
 * Each thread's operations are a lane (doc/design/replay_threads.md). Lane 0 is the worker's main thread, which
 * starts the others. A lane's words are in chunks of 8 KiB. The last word of a lane in a chunk links to the lane's next
 * chunk. An operation is never split over two chunks. The position of a lane counts words from its beginning, as if its
 * chunks were contiguous.
 *
 * There are two ways to hand over operations:
 *
 * - Prepared: all chunks are filled before the start.
 * - Through a ring: the parent fills some chunks and states in `published` how far each lane may go. It reuses the
 *   chunks that the worker has left (chunk_free).
 *
 * In both a lane that has reached `published` sleeps on it as a futex, and the parent sleeps on `changes`.
 *
 * Operations, slots, stacks, control and returned pointers are each in a memfd. Their names begin with "cmtreplay-": by
 * these names the parent distinguishes them from the allocator's memory in /proc/PID/smaps.
 *
 * Parent and worker also share a socket. The worker writes a byte to it when it is ready and after the end, and then
 * waits for a byte of the parent. A worker that dies closes its end, so that the parent notices at once.
 *
 * Both sides include this file, protocol.c and latency.h. The worker's other files are its own. */
#pragma once

#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The calls by name, in the order of struct calls. */
enum call {
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
  call_count
};
extern const char* const call_names[call_count];

enum operation {
  operation_malloc = 0,
  operation_free = 1,
  operation_calloc = 2,        /* argument: count; the size is that of an element */
  operation_realloc = 3,       /* the block stays in its slot and is touched whole */
  operation_realloc_from = 4,  /* argument: old size; the bytes before it were touched already */
  operation_realloc_new = 5,   /* realloc(NULL, size) */
  operation_reallocarray = 6,  /* arguments: count, old size */
  operation_aligned_alloc = 7, /* argument: alignment, as in the next two */
  operation_posix_memalign = 8,
  operation_memalign = 9,
  operation_valloc = 10,
  operation_pvalloc = 11,
  operation_free_sized = 12,   /* the size is the one that the program stated */
  operation_free_foreign = 13, /* another lane makes the block: waits for it */
  operation_take_block = 14,   /* out of its slot, for the next operation; size 1: another lane makes it */
  operation_control = 15       /* no call: the slot is an enum control_word, and the size is its argument */
};

enum control_word {
  control_link = 0,        /* the lane continues in chunk ARGUMENT */
  control_start = 1,       /* starts a thread on lane ARGUMENT; in lane 0 only */
  control_exit = 2,        /* the thread ends */
  control_end = 3,         /* the trace ends while the thread lives */
  control_epoch_begin = 4, /* ARGUMENT is the epoch, as in the next */
  control_epoch_end = 5,
  control_await_turn = 6, /* ARGUMENT is the turn */
  control_pass_turn = 7,
  control_time = 8,      /* the next word: recorded nanoseconds since the first event, for pace and recorded clock */
  control_alignment = 9, /* of the free_sized that follows: 2 to the power of ARGUMENT */
  control_several = 10,  /* from now on several threads hand over blocks in slots; lane 0 only */
  /* Writes to the block in slot ARGUMENT. With several threads it writes to the block that was taken out before, and
   * puts it into that slot. The next words: the offset of the first byte; how many bytes are written; their distance;
   * the block's size if its last byte is written too, else 0. */
  control_touch = 11,
  control_give_back = 12, /* a call that gives memory back, by enum give_back; two words of arguments follow */
  /* Gives whole pages of a block back to the kernel; slots as in control_touch. The next words: the offset of the first
   * byte, and how many bytes. */
  control_discard = 13
};

/* Calls that give memory back, and their arguments. */
enum give_back {
  give_back_trim = 0,    /* malloc_trim: the pad, 0 */
  give_back_mallopt = 1, /* the parameter, the value */
  give_back_mallctl = 2  /* bits 0-7: index in mallctl_names; 8: a value is written; 16-47: the arena. The value */
};

/* jemalloc's names that are replayed, with # for an arena. Others may end blocks (arena.#.reset) or write files. */
enum { mallctl_purge = 0, mallctl_count = 11 };
extern const char* const mallctl_names[mallctl_count];

enum {
  page_bytes = 4096,
  address_shift_bytes = 2 * 1024 * 1024 + page_bytes,
  slot_bits = 28,
  slot_null = 0,    /* holds NULL */
  slot_scratch = 1, /* for a malloc(0) that returned NULL in the trace: freed at once; with one lane only */
  slot_first = 2,
  chunk_words = 1024,
  lane_stack_bytes = 1024 * 1024,
  lane_stack_used_bytes = 32 * 1024 /* touched before the start */
};

#define unknown_usable UINT64_MAX
#define SIZE_IN_NEXT_WORD UINT32_MAX

static inline uint64_t operation_word(enum operation kind, uint32_t slot, uint32_t size) {
  return (uint64_t)kind | (uint64_t)slot << 4 | (uint64_t)size << 32;
}

/* The allocator that the worker calls. */
enum target {
  target_process = 0, /* the process's malloc: libc's, or the preloaded library's */
  target_null = 1     /* the built-in null allocator, which touches nothing */
};

/* A thread that touches more bytes than these at once sets lane_touching meanwhile. */
enum { touch_slow_bytes = 1024 * 1024 };

/* The bytes of each block that are written. */
enum touch {
  touch_none = 0,
  touch_first = 1, /* the first byte */
  touch_pages = 2, /* a byte in each page, the first and the last among them */
  touch_all = 3
};

/* The operations of an epoch (worker/schedule.h). */
enum { epoch_operations = 4096 };

/* The reason why a thread waits now. */
enum waiting {
  waiting_for_nothing = 0,
  waiting_for_lane = 1, /* another lane's block, the run-ahead window, or its turn */
  waiting_for_time = 2  /* the other lanes to come as far in recorded time */
};

/* How often a thread had to wait, and how long in all. */
struct wait_counts {
  uint64_t block_waits, block_wait_ns;   /* true dependencies: a block was not made yet */
  uint64_t window_waits, window_wait_ns; /* false ones: too far ahead */
  uint64_t turn_waits, turn_wait_ns;
  uint32_t waiting; /* enum waiting */
};

enum lane_state {
  lane_unused = 0,  /* no thread */
  lane_running = 1, /* in a call, between two calls, or waiting (`waits`) */
  lane_idle = 2,    /* has reached `published` */
  lane_pacing = 3,  /* until the recorded time */
  lane_ended = 4,   /* the trace has ended, or the thread */
  lane_touching = 5 /* reads or writes a large block: the replay's own work, which may take long */
};

struct lane {
  /* Written by the parent. */
  uint64_t published __attribute__((aligned(128))); /* words that may be read */
  uint32_t first_chunk;

  /* Written by the worker. */
  uint64_t position __attribute__((aligned(128))); /* of the current operation, in bytes */
  uint32_t state, sleeping;
  uint64_t refused; /* calls that returned NULL here and not in the trace */
  struct {          /* calls that give memory back: those that did, that failed, and that have no counterpart */
    uint64_t done, failed, missing;
  } given_back;
  uint64_t starved_ns; /* time without words to carry out */
  uint64_t stated_ns;  /* recorded time of the next operation (worker/clock/time_window.h) */
  struct wait_counts waits;
  struct { /* where to continue while no thread runs it */
    uint32_t opened, chunk;
    uint64_t sequence, words;
  } cursor;
  struct {                      /* its current or last thread */
    uint64_t handle, replay;    /* pointers in the worker */
    uint32_t started, ended_by; /* enum control_word */
    uint32_t number;            /* in the kernel */
  } thread;
};

/* A moment by the recorded clock, and by the time that the program would have had: run/control/program_clock.h. Both
 * since the first event. */
struct clock_point {
  uint64_t recorded_ns, program_ns;
};

/* Returns the program's time at a recorded one: on the line between two points, and after the last at its distance from
 * there. Without points they are equal. */
static inline uint64_t program_time(const struct clock_point* points, uint32_t count, uint64_t recorded_ns) {
  uint32_t from = 0, to = count; /* points[from] is not after the time */
  if (count == 0) return recorded_ns;
  while (to - from > 1) {
    const uint32_t middle = from + (to - from) / 2;
    if (points[middle].recorded_ns <= recorded_ns)
      from = middle;
    else
      to = middle;
  }
  const struct clock_point* const point = &points[from];
  const uint64_t beyond = recorded_ns - point->recorded_ns;
  if (to == count) return point->program_ns + beyond;
  const uint64_t program = point[1].program_ns - point->program_ns,
                 recorded = point[1].recorded_ns - point->recorded_ns;
  return point->program_ns + (uint64_t)((double)beyond / (double)recorded * (double)program);
}

struct control {
  /* Written by the parent before the worker starts. */
  int32_t operations_fd, slots_fd, stacks_fd, pointers_fd; /* pointers_fd -1: returned pointers are not kept */
  int32_t socket_fd;
  int32_t drain_fd; /* the slots, 4 bytes each, whose blocks are freed after the end; -1: none */
  uint32_t drain_count;
  uint32_t counts_usable;  /* usable_bytes is kept */
  int32_t verification_fd; /* of a struct verification; -1: the calls are not checked */
  int32_t target, touch;
  uint32_t touches_recorded; /* control_touch writes */
  uint32_t gives_back;       /* the trace has calls that give memory back */
  uint32_t counterparts;     /* 1: the library's own calls of the same purpose are made for these */
  uint64_t touched_min;      /* blocks of so many bytes and more are written by control_touch only */
  uint32_t replaced;         /* a bit for each call that the library lacks, in the order of call_names */
  uint32_t lane_count, chunk_count;
  uint32_t several;  /* lanes may free each other's blocks, from control_several on: worker/schedule.h */
  uint32_t recycles; /* chunks are given back: the operations come through a ring */
  uint32_t spins;    /* before a thread that waits sleeps */
  uint32_t epoch_mask;
  uint64_t slot_count, pointer_count;
  uint64_t epochs_offset, lanes_offset, free_offset, latencies_offset; /* in this region, of what follows; 0: none */
  uint64_t clock_points_offset;                                        /* the same, of struct clock_point */
  uint32_t clock_point_count;
  double pace; /* recorded time over the replay's */
  uint32_t
      clock_recorded;    /* the allocator reads the recorded clock (worker/clock/recorded_clock.h); else the system's */
  uint32_t is_debugged;  /* SIGTRAP is a debugger's */
  uint32_t trapped_lane; /* number + 1 of the lane that stops for a debugger before its next word; 0: none */
  uint64_t limits[2];    /* of address space and data, in bytes (getrlimit) */
  uint32_t address_shift; /* of all that the allocator maps, in units of address_shift_bytes */

  /* Written by the worker. */
  uint32_t changes __attribute__((aligned(128))); /* counts lanes that got idle or ended, and freed chunks */
  uint32_t wake_at;                               /* wake the parent at this count, or when a lane got idle */
  uint32_t parent_sleeps, main_sleeps;            /* whether the parent waits on `changes`; the main thread */
  uint64_t usable_bytes;                          /* of all live blocks; unknown_usable: not known */
  uint64_t pointer_next;                          /* index of the next returned pointer */
  uint64_t wall_ns, cpu_ns;                       /* from the first operation to the last */
  uint64_t kernel_ns;                             /* the part of cpu_ns in the kernel */
  uint64_t clock_ticks;                           /* the same duration as wall_ns, to convert ticks */
  uint64_t empty_ticks;                           /* between two readings of the clock */
  uint64_t minor_faults, major_faults;
  uint32_t faulted_lane;   /* number + 1 of the lane in which a signal came */
  int32_t setup_errno;     /* why the worker could not start; 0: it could */
  int32_t thread_errno;    /* why a thread could not be started */
  uint32_t thread_refused; /* 1: since the allocator refused the memory of its table */
  uint32_t limits_lowered; /* with setup_errno: a limit of memory is lower than the parent's */
  uint32_t clock_read;     /* the allocator read a clock, between the first operation and the last */
  uint32_t
      stamps_watched; /* readings of the processor's time stamp counter were looked for (worker/clock/other_clocks.h) */
  uint32_t stamps_read;      /* it read that counter */
  uint32_t clock_strays;     /* times that one of its threads did not sleep by the clock, and was left behind */
  uint32_t waits_for_parent; /* 1 while it does */
  uint32_t calls_outside;    /* calls and checks of blocks that it has made after the trace's last event */
};

static inline const struct clock_point* control_clock_points(const struct control* control) {
  return (const struct clock_point*)((const char*)control + control->clock_points_offset);
}

static inline struct lane* control_lanes(struct control* control) {
  return (struct lane*)((char*)control + control->lanes_offset);
}

/* With --verify the worker writes the faults that it finds to shared memory, so that they outlive a worker that dies of
 * one. Each fault breaks a promise that malloc(3) or C makes to programs. */
enum fault {
  fault_misaligned = 0,   /* the address is no multiple of the alignment asked for, or that the size needs */
  fault_overlap = 1,      /* some of its bytes, or its address, are those of the live block at `other` */
  fault_contents = 2,     /* a byte written to the block, at `other`, had changed when it was freed */
  fault_moved = 3,        /* the same, over a realloc */
  fault_not_zero = 4,     /* calloc: `other` is the first byte that is not 0 */
  fault_usable = 5,       /* malloc_usable_size returned `other`, less than was asked for */
  fault_usable_other = 6, /* the usable bytes reach into the live block at `other` */
  fault_impossible = 7,   /* a request that no allocator can meet succeeded */
  fault_lost = 8,         /* a realloc that was refused did not leave the block as it was */
  fault_refused = 9,      /* a call returned NULL that had not when it was recorded */
  fault_error = 10,       /* a call that failed left `other` in errno or, as posix_memalign, returned it */
  fault_pointer = 11      /* a posix_memalign that failed wrote `address` to the caller's pointer */
};

enum { fault_count = 12, findings_max = 1000 };

#define finding_at_end UINT64_MAX

/* A block that a finding is about. */
struct finding_block {
  uint64_t size;
  uint64_t position; /* of the call that made it, in its lane; finding_at_end: after the trace */
  uint32_t lane;
  uint32_t is_known;
};

struct finding {
  uint32_t fault;       /* enum fault */
  uint32_t call;        /* as in call_names */
  uint64_t lane;        /* lane and position of the call, which lead to its event */
  uint64_t position;    /* finding_at_end: after the trace */
  uint64_t address;     /* of the block */
  uint64_t size, count; /* as asked for; count 1 if the call has none */
  uint64_t alignment;   /* asked for, or needed by the size; 0: of no matter */
  uint64_t other;
  struct finding_block old;       /* the block that the call frees or resizes */
  struct finding_block neighbour; /* the live block that overlaps */
};

/* Which call is being made after the replay: an allocator may end the process there. */
enum trying {
  trying_nothing = 0,
  trying_impossible = 1, /* a call that has to fail */
  trying_other = 2
};

struct verification {
  uint64_t found; /* all of them; the first findings_max are kept */
  uint64_t blocks, bytes;
  uint64_t unchecked; /* blocks for which the table of live blocks had no room */
  uint64_t has_usable_size;
  uint64_t trying; /* enum trying */
  struct finding tried;
  struct finding findings[findings_max];
};

uint64_t clock_nanoseconds(clockid_t clock);
static inline uint64_t monotonic_ns(void) { return clock_nanoseconds(CLOCK_MONOTONIC); }

/* The futex calls. futex_wait() sleeps only while the word is `seen`. `shared`: another process uses the word, too. */
void futex_wait(const uint32_t* word, uint32_t seen, uint64_t ns, int shared);
void futex_wake_all(const uint32_t* word, int shared);

#ifdef __cplusplus
}
#endif
