/// The memory that the traced program and its collector share. C and C++. doc/design/ring.md has the
/// design, an example and reasons; here is who writes which field and in which order.
///
///     offset 0                   struct Control
///     next multiple of 128       struct Ring, rings_limit of them: the first rings_large are large, the others small
///
///     ring->slots_at, each ring  struct Slot, ring->slots of them
///     control->stacks_at         struct StackShare (preload/stack_share.h), where call stacks are recorded
///
/// # Records
///
/// A position counts the slots that a ring has handed out, and never wraps: position p is slot p % slots, in lap p /
/// slots. The owner, and the signal handlers that interrupt it:
///  1. `reserved` += n, by machine_add(): on x86-64 one xadd instruction without a lock prefix.
///  2. If position + n > `soft`: if position + n > `limit` too, wait for `limit`, or drop the event (`lost` += 1).
///  3. Store `body`; then store `head` with release order, with slot_valid and the parity of the lap.
///
/// The collector reads in the order of positions and stops at the first that is not published. It flushes the cache
/// lines, and then stores `tail`, `soft` and `limit`, in this order.
///
/// # Limits
///
/// Slots below `limit` are backed by memory, so that no write raises SIGBUS. A thread whose record lies beyond `soft`
/// rings the collector's bell and stores `soft` = `limit`. The collector stores `soft` = 0 to make a thread look at
/// Control (`verdict`, `paused`) at its next event. It lowers `limit` in a ring without records, and releases the
/// memory beyond it. A thread that has read the old limit writes one event at most, at `tail`. With CMTTRACE_RINGS this
/// memory is a file, and `limit` rises only when the trace's files hold the records, in whole blocks.
///
/// # Stamps
///
/// A stamp is the low 32 bits of processor_stamp() (preload/processor.h). record_stamp_high has the upper bits of the
/// stamps after it. A signal handler may record other upper bits: so a thread compares its own after step 1, and makes
/// the slot void where they differ.
///
/// A *true* stamp is the clock, read when the event happens, after a fence. A *coarse* stamp is `Control::clock`, or
/// an earlier one of its thread: the clock is not read. A stamp may be early, never late, and an event is published
/// after all events that it depends on.
///
/// An event that makes or ends a block has a true stamp if other rings have touched its memory last, or nobody knows
/// who has (preload/program/owners.h). So if two rings have an event about the same memory, the later event has a true
/// stamp. The stamp of the earlier one is not after its own moment. In a process with one thread all have coarse ones.
///
/// `clock` rises only. It is at least the clock at which the collector began its last pass. Some events must not seem
/// to come after later ones of other threads. These are allocations and releases whose owner cannot be noted, and all
/// events that neither make nor end a block. Marks, begins and ends of threads, and malloc_trim are examples of the
/// latter. A thread takes a true stamp for each of them, and raises `clock` beyond it.
///
/// In a process whose threads often free each other's blocks each event has a true stamp, if reading the clock is fast.
/// With CMTTRACE_TIME=1 each event reads it in any process, after a fence from the second thread on. With a time
/// step (CMTTRACE_TIME=100us) the collector raises `clock` as often as that.
///
/// # Call stacks
///
/// Where they are recorded (`stacks_at` is not 0), an event has its stack's records before its other ones. They are a
/// record_stack, and record_frames if there are more than stack_frames_first new frames. A frame is an index of
/// UnwindTable::rule (preload/stack_share.h). A record has the difference from the ring's last stack: how many outer
/// frames are kept, and the frames added to them, outermost first.
///
///     last stack   main  run  parse  list          record_stack   kept 2, added 3: parse item text
///     this stack   main  run  parse  item  text    kept 3, added 2: item text. Or kept 2, since `parse` calls from
///                                                  another place: a frame is a return address
///
/// - Kinds that have stacks: those that allocate; with `stacks_of_frees` also those that only release. Such an event
///   without a record_stack has the ring's last stack. A realloc has one in the event at its end.
///
/// - The ring's last stack changes as soon as all its frames are there, whatever record follows. A stack too large for
///   one reservation comes in several record_stacks: each of the further ones keeps the frames that were sent.
///
/// - is_cut: the stack has further frames outside of these, which are not known. It never changes where kept is not 0.
///   A cut stack of no frames: not known at all.
///
/// - is_apart: the stack of a signal handler that interrupts a capture. All its frames are here. It belongs to the next
///   event alone, and the ring's last stack stays as it is.
///
/// - After a drop, a void, a pause, a fork and a new owner, kept is 0. So a reader that does not know the ring's last
///   stack knows it again. (This concerns events with a record_stack only.)
///
/// - `number` counts the ring's record_stacks that are not apart, modulo 16. A reader that finds kept > 0 and another
///   number than the next has missed one, and does not know the ring's last stack.
///
/// # Pools
///
/// The bits of the alignment of a pool_malloc or pool_free have the number of its pool. The number of pool_python is 0,
/// so that its records are as short as those of malloc. Their stamps and stacks are as those of malloc and free. A
/// realloc is a pool_free and a pool_malloc. Both may come after it if no other thread can get the old block meanwhile,
/// as with CPython's lock. A call that returned NULL has no records. Pools from pools_known on are the program's own
/// (preload/cmttrace.h): their names are in Control::pools.
///
/// # Pages of large blocks
///
/// Where they are recorded (`touched_min` is not 0), a record_block comes before each event that makes or ends a block
/// of at least so many bytes. The begin of a realloc is such an end. It has the block's address. If block_is_asked is
/// set, the record_page_runs after it are all pages that were in memory then: before the program had the block, or at
/// its end. If not, the kernel could not be asked. A block that begins without a record_block ends without one: the
/// program has no time to ask about it, or all of its pages were in memory.
///
/// - record_pages is an event of its own: pages of a block that lives on. Without a record_since it has runs that do
///   not fit the next event. With one it is of a moment between that stamp and its own, and about a block that lived
///   all the time. With a size and no runs: the block lives on, because the realloc that has announced its end was
///   refused.
///
/// - The collector appends such events for what it has seen from outside, as those of a ring of its own. It has raised
///   `clock` to the first stamp before it looked, and beyond the second afterwards. So the memory was the block's if
///   its allocation has a stamp below the first one, and its end one above the second. The collector may have taken the
///   block for one that was at the address before, and left out what it had seen of that one. So the runs are all of
///   the block's pages only if block_is_whole is set and the size is the block's.
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
  rings_large_max = 512,    // large rings: ring_slots_large slots, 256 KiB
  rings_small_max = 12288,  // small rings: ring_slots_small slots, 16 KiB
  rings_max = rings_large_max + rings_small_max,
  ring_slots_large = 16384,
  ring_slots_small = 1024,
  ring_slots_at_rest = 2048,    // 32 KiB
  ring_slots_crowded = 256,     // one page
  rings_roomy = 256,            // the first so many rings start with ring_slots_at_rest slots
  rings_bytes_max = 64 << 20,   // memory that all rings may use
  rings_volume_min = 16 << 20,  // the least room of a volume that takes them as a file
  slot_bytes = 16,
  stamp_slack = 512,         // stamps that are read without a fence are early by less than this
  time_step_ns_min = 10000,  // how often the collector may be asked to raise Control::clock
  outputs_max = 4,
  output_path_bytes = 4096,
  command_bytes_max = 16384,
  message_bytes = 256,
  label_bytes_max = 1024,
  piece_bytes = 14,  // of a label, in a record_piece
};

/// A record. `head`, from bit 0: kind (7 bits), alignment (6 bits: the base-2 logarithm plus 1; 0: none), valid, parity
/// of the lap, has_old_block, address (48 bits). `body`: stamp (32 bits), size (32 bits).
struct Slot {
  uint64_t head;
  uint64_t body;
};

enum {
  slot_kind_mask = (1 << 7) - 1,
  slot_alignment_shift = 7,
  slot_alignment_mask = (1 << 6) - 1,
  slot_valid = 1 << 13,
  slot_parity = 1 << 14,
  slot_has_old_block = 1 << 15,  // a realloc was given a block; record_realloc_begin before it names the block
  slot_address_shift = 16,
};

/// Kinds of records. Numbers below 64 are events (cmt/kinds.h). Records from record_stamp_high on have no stamp: `body`
/// is a value, which belongs to the next event.
enum {
  record_events = 64,         // so many kinds of events
  record_realloc_begin = 64,  // with a stamp: a realloc of the block at `address` begins
  record_owner = 65,          // with a stamp: the ring belongs to thread number `size` from here on
  record_pages = 66,          // with a stamp: pages of the block at `address`, which lives on
  record_stamp_high = 72,     // the upper 32 bits of all stamps from here on
  record_count = 73,          // elements
  record_size = 74,           // a size of more than 32 bits
  record_alignment = 75,      // an alignment that is no power of two or above 2^61
  record_usable_size = 76,
  record_piece = 77,   // piece_bytes of a label: see slot_of_piece
  record_void = 78,    // a reserved slot that holds nothing; records before it, of an event not yet ended, are void too
  record_stack = 79,   // see Call stacks, and slot_of_stack
  record_frames = 80,  // up to stack_frames_more frames: see slot_of_frames
  record_block = 81,   // of a large block, at `address`: flags, and above them its size, where it is known
  record_page_run = 82,  // see slot_of_page_run
  record_since = 83,     // of a record_pages: a stamp
};

/// Pools, in the bits of the alignment of their events.
enum {
  pool_python,         // pymalloc's blocks
  pool_python_arenas,  // the memory that pymalloc has for them
  pool_heaptrack,      // blocks that the program reports by heaptrack's functions
  pools_known,
  pools_max = slot_alignment_mask + 1,
  pool_name_bytes = 64,
};

/// Their names in the trace (format-spec/cmt.md, "Pools").
static const char* const pool_names[pools_known] = {"python", "python arenas", "heaptrack"};

/// Flags of a record_block.
enum {
  block_is_asked = 1,
  block_is_kept = 2,    // the result of a realloc, in its old place: the pages of the old block are as they were
  block_ends = 4,       // it is about to be given back
  block_has_more = 8,   // of record_pages: there are further ones of the same moment
  block_is_whole = 16,  // of record_pages: with those before that have more, all pages of a block of that size
  block_is_last = 32,   // of record_pages: the process ends, and the kernel could not be asked
  // In record_pages: the program has given back the pages from `address` on. The size is how many bytes they are.
  block_discards = 64,
  block_flags_mask = 255,
  block_bytes_shift = 8,
};

static inline uint32_t slot_kind(uint64_t head) { return (uint32_t)head & slot_kind_mask; }

/// The six bits of the alignment.
static inline uint32_t slot_alignment(uint64_t head) {
  return (uint32_t)(head >> slot_alignment_shift) & slot_alignment_mask;
}

/// A record with a piece of a label: `length` bytes, at most piece_bytes, in `address` and `body`. The length is in the
/// bits of the alignment.
static inline struct Slot slot_of_piece(const char* text, size_t length) {
  struct Slot slot = {record_piece | (uint64_t)length << slot_alignment_shift, 0};
  memcpy((char*)&slot + slot_address_shift / 8, text, length);
  return slot;
}

/// The reverse. Returns how many bytes of `text` are the label's.
static inline size_t piece_of_slot(const struct Slot* slot, char text[piece_bytes]) {
  memcpy(text, (const char*)slot + slot_address_shift / 8, piece_bytes);
  const size_t length = slot_alignment(slot->head);
  return length < piece_bytes ? length : (size_t)piece_bytes;
}

enum { block_page_bytes = 4096, block_page_bytes_huge = 2 << 20 };

/// Pages of a block, in units of block_page_bytes, counted from the one in which the block begins. `is_unsure`: they
/// are in memory, but may have been read only. `is_huge`: they are parts of huge pages.
static inline struct Slot slot_of_page_run(uint64_t first, uint64_t count, bool is_unsure, bool is_huge) {
  const uint32_t flags = (uint32_t)is_unsure | (uint32_t)is_huge << 1;
  const struct Slot slot = {first << slot_address_shift | flags << slot_alignment_shift | record_page_run, count};
  return slot;
}

enum {
  stack_frames_first = 5,  // in a record_stack
  stack_frames_more = 6,   // in a record_frames
  stack_index_bits = 17,
  stack_count_bits = 13,
  stack_numbers = 16,
};

/// The fields of a record_stack beside its frames.
struct StackRecord {
  uint32_t kept;    ///< outer frames of the ring's last stack
  uint32_t added;   ///< frames that follow, here and in record_frames
  uint32_t number;  ///< below stack_numbers
  bool is_cut;
  bool is_apart;
};

/// The 112 bits above the flags of a slot, as one number.
__extension__ typedef unsigned __int128 SlotPayload;

static inline struct Slot slot_of_payload(uint32_t kind, uint32_t flags, SlotPayload payload) {
  const struct Slot slot = {
      (uint64_t)payload << slot_address_shift | (uint64_t)flags << slot_alignment_shift | kind,
      (uint64_t)(payload >> (64 - slot_address_shift)),
  };
  return slot;
}

static inline SlotPayload payload_of_slot(const struct Slot* slot) {
  return (SlotPayload)slot->body << (64 - slot_address_shift) | slot->head >> slot_address_shift;
}

/// How many slots a stack takes.
static inline uint32_t stack_slots(uint32_t added) {
  if (added <= stack_frames_first) return 1;
  return 1 + (added - stack_frames_first + stack_frames_more - 1) / stack_frames_more;
}

/// `frames`: the first that are added. If there are fewer, the others are not read back.
static inline struct Slot slot_of_stack(const struct StackRecord* stack, const uint32_t frames[stack_frames_first]) {
  // Without a loop: this is done for most allocations.
  const uint64_t low = stack->kept | (uint64_t)stack->added << 13 | (uint64_t)frames[0] << 26 |
                       (uint64_t)frames[1] << 43 | (uint64_t)frames[2] << 60;
  const uint64_t high = frames[2] >> 4 | (uint64_t)frames[3] << 13 | (uint64_t)frames[4] << 30;
  const uint32_t flags = (uint32_t)stack->is_cut | (uint32_t)stack->is_apart << 1 | stack->number << 2;
  return slot_of_payload(record_stack, flags, (SlotPayload)high << 64 | low);
}
static_assert(stack_count_bits == 13 && stack_index_bits == 17 && stack_frames_first == 5, "as slot_of_stack has it");

/// The reverse, without the frames. Its frames are above the lowest 2 * stack_count_bits of its payload.
static inline struct StackRecord stack_head_of_slot(const struct Slot* slot) {
  const uint64_t payload = (uint64_t)payload_of_slot(slot);
  const uint32_t flags = slot_alignment(slot->head), count_mask = (1u << stack_count_bits) - 1;
  const struct StackRecord stack = {
      (uint32_t)payload & count_mask,
      (uint32_t)(payload >> stack_count_bits) & count_mask,
      flags >> 2,
      (flags & 1) != 0,
      (flags & 2) != 0,
  };
  return stack;
}

/// The reverse. The first `added` of `frames` are valid.
static inline struct StackRecord stack_of_slot(const struct Slot* slot, uint32_t frames[stack_frames_first]) {
  const SlotPayload payload = payload_of_slot(slot);
  for (uint32_t i = 0; i < stack_frames_first; i++)
    frames[i] = (uint32_t)(payload >> (2 * stack_count_bits + i * stack_index_bits)) & ((1u << stack_index_bits) - 1);
  return stack_head_of_slot(slot);
}

/// `frames`: if fewer are left of `added`, the others are not read back.
static inline struct Slot slot_of_frames(const uint32_t frames[stack_frames_more]) {
  const uint64_t low = frames[0] | (uint64_t)frames[1] << 17 | (uint64_t)frames[2] << 34 | (uint64_t)frames[3] << 51;
  const uint64_t high = frames[3] >> 13 | (uint64_t)frames[4] << 4 | (uint64_t)frames[5] << 21;
  return slot_of_payload(record_frames, 0, (SlotPayload)high << 64 | low);
}
static_assert(stack_index_bits == 17 && stack_frames_more == 6, "as slot_of_frames has it");

/// The reverse. As many of `frames` are valid as are left of `added`.
static inline void frames_of_slot(const struct Slot* slot, uint32_t frames[stack_frames_more]) {
  const SlotPayload payload = payload_of_slot(slot);
  for (uint32_t i = 0; i < stack_frames_more; i++)
    frames[i] = (uint32_t)(payload >> (i * stack_index_bits)) & ((1u << stack_index_bits) - 1);
}

/// The state of a ring in the trace's files, for a recovery.
struct Saved {
  uint64_t position;    ///< of the first record that is not in the files
  uint32_t thread;      ///< the ring's thread number there
  uint32_t stamp_high;  ///< the stamps' upper bits there
};

/// Two cache lines: the first is written by the program, the second by the collector. Exceptions: the program sets
/// the first `soft` and `limit`, stores `soft` = `limit` (Limits); the collector clears `waiting`.
struct Ring {
  uint64_t reserved;   ///< positions handed out
  uint64_t slots_at;   ///< offset of its slots in the mapping
  uint32_t slots;      ///< how many, a power of two
  uint32_t owner;      ///< the kernel's id of the owner; 0: never used. Stored last when a ring is opened
  uint32_t waiting;    ///< the owner waits for `limit` to rise (a futex on `limit`)
  uint32_t left;       ///< the owner has recorded its exit: the ring is free once that thread is gone
  uint64_t lost;       ///< events dropped because the ring was full
  uint32_t processor;  ///< CPU number + 1 of the owner when it last passed `soft`
  uint32_t unused[5];
  uint64_t soft;
  uint64_t limit;
  uint64_t tail;            ///< positions read by the collector
  uint32_t saved_stack[2];  ///< for each of `saved`: the number in the files (cmt/stacks.h) of the ring's last stack
  struct Saved saved[2];
};

/// Control::asleep. A collector that sleeps briefly wakes by itself before a quarter-full ring is full.
enum { awake, asleep_briefly, asleep_deeply };
enum { request_none, request_checkpoint, request_finish };
enum { verdict_go_on, verdict_enough, verdict_failed };

/// Programs of which the launcher's file does not say that they are not recorded.
struct UnrecordedCounts {
  uint32_t children;  ///< forked children that could neither be recorded nor say so in status_path
  uint32_t programs;  ///< that were executed in another root folder, where the library is not
};

struct Control {
  // Written by the program before the collector starts. The collector copies it then (collector/drain/start_facts.h),
  // but not `bytes`, `rings_large` and `stack_frames_max`, which it does not use.
  char magic[8];  ///< ring_magic
  uint32_t process;
  uint32_t clock_is_ns;  ///< no usable clock of the processor: stamps are nanoseconds / 16
  uint64_t start_stamp;
  uint64_t start_ns;          ///< CLOCK_MONOTONIC at start_stamp
  uint64_t start_wall;        ///< seconds since 1970
  uint64_t bytes;             ///< of the mapping
  uint32_t rings_limit;       ///< entries of the table of rings
  uint32_t rings_large;       ///< the first so many have ring_slots_large slots
  uint32_t forked;            ///< blocks may be older than the trace: 1: a forked child; 2: a program attached to
  uint32_t outputs;           ///< files of the trace: the collector's descriptors from collector_output on. If there
                              ///< are none, paths[0] is that of the profiles
  uint64_t stacks_at;         ///< offset of struct StackShare in the mapping; 0: no stacks are recorded
  uint32_t stack_frames_max;  ///< the most frames of a stack
  uint32_t stacks_of_frees;   ///< events that only release have stacks too
  uint64_t touched_min;       ///< the least size of blocks whose pages are recorded; 0: none are
  uint64_t sample_bytes;      ///< the sampling interval at the start; 0: all blocks are recorded
  // Written by the program while it runs.
  uint32_t threads;        ///< thread numbers given
  uint32_t rings_used;     ///< rings that ever had an owner; may exceed rings_limit for a moment
  uint32_t request;        ///< incremented for each request; the program waits for `done` to reach it
  uint32_t request_kind;   ///< stored before `request`
  uint32_t bell;           ///< the futex on which the collector sleeps; incremented to wake it
  uint32_t exec_pending;   ///< the program is about to call exec
  uint32_t leaving;        ///< the program is about to end by itself, and waits for `readable` to be 0
  uint32_t made_control;   ///< the program has created control_path
  uint32_t stopped;        ///< a fault has ended the recording, at `stopped_ns`
  uint32_t bypasses;       ///< modules were loaded whose calls do not come to the tracer; `bypass` is the first,
  char bypass[256];        ///< stored before the count
  uint64_t stopped_ns;     ///< CLOCK_MONOTONIC
  uint64_t ringless;       ///< events of threads that got no ring
  uint64_t owners_bytes;   ///< memory that the owners of pieces take (program/owners.h)
  uint64_t held_ns;        ///< time for which threads have waited for room in their rings, all together
  uint64_t ended_wait_ns;  ///< time for which threads that have ended had waited for a processor
  uint64_t samples_lost;   ///< samples for which the table of live ones had no room
  // Written by both, on a cache line of its own.
  uint64_t unused_before_clock[8];
  uint64_t clock;  ///< a stamp that is not later than now (Stamps)
  uint64_t unused_after_clock[8];
  // Written by the collector.
  uint32_t asleep;
  uint32_t done;      ///< the last request that is done
  uint32_t verdict;   ///< whether the program should go on recording
  uint32_t paused;    ///< by a command; the program writes it too (cmt_pause)
  uint32_t readable;  ///< tools may read the trace before its end (libcmt/trace/files.h)
  /// The collector's thread, as a robust futex (set_robust_list(2)). The kernel adds collector_has_ended when the
  /// thread ends or is killed. 0: the thread has not begun, or the kernel has no such futexes.
  uint32_t collector;
  /// States saved for a recovery. Its parity is the index of the valid one in `saved_bytes` and in each Ring::saved;
  /// the collector writes the other one, and then increments this. A recovery truncates the files to the valid state.
  uint64_t saves;
  uint32_t times;                        ///< whether the trace has times
  uint32_t sandboxed;                    ///< by the program: it makes no system calls any more, and rings no bell
  uint64_t saved_bytes[2][outputs_max];  ///< lengths of the files
  uint64_t clock_stamp;                  ///< the stamp at which the last pass began,
  uint64_t clock_ns;                     ///< and the CLOCK_MONOTONIC of it
  uint64_t clock_raised_ns;              ///< CLOCK_MONOTONIC when step_clock() began last; 0: never
  uint64_t clock_step_ns;                ///< the longest time without a call
  uint64_t beats;                        ///< steps of the collector's work: threads that wait see that it goes on
  char message[message_bytes];           ///< the reason for verdict_failed
  uint32_t faults;                       ///< that do not end the recording. `fault` is the last,
  char fault[message_bytes];             ///< stored before the count
  // Written by the program before the collector starts, which copies it then (collector/drain/start_facts.h).
  char program[256];
  char allocator[64];  ///< the file name of the library whose malloc serves the program; empty: the program itself
  char command[command_bytes_max];
  char paths[outputs_max][output_path_bytes];
  char rings_path[output_path_bytes];    ///< the file that holds this memory; empty: memory without a name
  char control_path[output_path_bytes];  ///< a FIFO that takes commands; empty: none
  char status_path[output_path_bytes];   ///< a file to which a line is appended at the end; empty: none
  char pprof_path[output_path_bytes];    ///< of the profile at the end, if its name is free; empty: there are none
  /// The program's id where the collector and the trace's reader are, if that is another pid namespace than the
  /// program's (attach); 0: it is `process`.
  uint64_t process_outside;
  // Written by the program while it runs.
  char pools[pools_max][pool_name_bytes];  ///< names of pools from pools_known on, before their first events
  uint32_t pools_refused;                  ///< pools that got no number: their events are not recorded
  uint32_t pauses;                         ///< how often recording was paused, by the program or by a command
  struct UnrecordedCounts unrecorded;
};

/// The id by which the collector knows the program.
static inline uint32_t process_of(const struct Control* control) {
  return control->process_outside != 0 ? (uint32_t)control->process_outside : control->process;
}

/// Identifies the layout: other bytes mean another one.
#define ring_magic "cmtringE"

/// A flag of Control::collector: FUTEX_OWNER_DIED.
static const uint32_t collector_has_ended = 0x40000000;

/// The collector's descriptors.
enum { collector_memory = 3, collector_process = 4, collector_output = 5 };

/// The bytes of a trace that are locked, as in libcmt/trace/files.h.
static const int64_t lock_at_work = (int64_t)1 << 61;
static const int64_t lock_is_awaited = ((int64_t)1 << 61) + 1;

static_assert(sizeof(struct Ring) == 128, "two cache lines");
static_assert(sizeof(struct Slot) == slot_bytes, "a record is 16 bytes");
static_assert(record_events <= record_realloc_begin && (int)record_since <= (int)slot_kind_mask,
              "kinds fit their bits");
static_assert(2 * stack_count_bits + stack_frames_first * stack_index_bits <= 112, "frames fit a record_stack");
static_assert(stack_frames_more * stack_index_bits <= 112, "frames fit a record_frames");
static_assert(slot_alignment_shift == 7 && slot_valid == 1 << (slot_alignment_shift + 6), "the fields of a head meet");

/// Whether the record at `position` of a ring of `slots` slots is published, and whole.
static inline bool slot_is_published(const struct Slot* slot, uint64_t position, uint64_t slots) {
  const uint64_t wanted = (uint64_t)slot_valid | ((position & slots) != 0 ? (uint64_t)slot_parity : 0);
  return (__atomic_load_n(&slot->head, __ATOMIC_ACQUIRE) & (slot_valid | slot_parity)) == wanted;
}

/// An entry of the table of rings, which follows Control.
static inline struct Ring* ring_at(struct Control* control, uint32_t number) {
  const uint64_t begin = (sizeof(struct Control) + 127) & ~(uint64_t)127;
  return (struct Ring*)((char*)control + begin) + number;
}

static inline uint32_t ring_number(struct Control* control, const struct Ring* ring) {
  return (uint32_t)(ring - ring_at(control, 0));
}

static inline struct Slot* ring_slots(const struct Control* control, const struct Ring* ring) {
  return (struct Slot*)((char*)control + ring->slots_at);
}

/// The bytes of Control and the table of rings, in whole pages.
static inline uint64_t rings_control_bytes(uint32_t rings) {
  return (sizeof(struct Control) + 128 + rings * sizeof(struct Ring) + 4095) & ~(uint64_t)4095;
}
