/// What the traced program and its collector share: the memory, and the rules by which both use it. C and C++ alike.
///
/// The program may not notice us. So its threads do nothing but append records of 16 bytes to rings of their own: no
/// lock, no system call, no line of memory that another thread writes. Everything else (order, tags, files) is done by
/// the collector, another process, which may be late, slow or dead without harm to the program.
///
/// A record is published by its own first word, which is written last and carries the valid bit and the parity of
/// the lap. So a program that is killed leaves whole records, all that it published, and there is no counter to
/// publish. A place is reserved by one xadd instruction without a lock prefix, which a signal handler comes before
/// or after, never between; a handler that interrupts a thread between its reservation and its publication appends
/// behind it, and the collector, which stops at the first place that is not published, takes both in order. Where the
/// handler never comes back the place stays empty, and only at the end does the collector go past it.
///
/// What the collector has read it takes out of all caches. Else its thread, a lap later, would have to take each line
/// back from the collector's cache, and that is felt where the two processors have no cache in common: 31 ns an event
/// in the program, 9 with it. (A prefetch to write, 256 to 2,048 bytes ahead, did nothing: the line was there, only not
/// its own.)
///
/// A ring has `soft` and `limit`, both counted in places since the ring began, both written by the collector. Beyond
/// `limit` a thread waits, or drops if it was told to. Beyond `soft` it rings the collector's bell, once, and so the
/// collector can sleep without a clock: it wakes when a ring is a quarter full, when it is asked to, and a few times a
/// second. But who is woken by another thread is mostly put on that one's processor, before it, and that was the
/// greatest part of what the program waited for. So where rings fill in less than some milliseconds the collector goes
/// by the clock, rather, and moves away from the processors where the program's threads say that they are. `soft` = 0
/// makes the owner look at `Control` at its next event: that is how the collector stops it.
///
/// At rest the limit is 32 KiB past what was read; a ring that fills up gets all of its 256 KiB; one that stays empty
/// for a second has its limit pulled back, and then what lies beyond is given back to the kernel. That is safe: a
/// thread that read the old limit writes at most one event, at the place where the ring ends, and reads the new one for
/// the next. Memory is backed before a limit allows it to be written, so it is never SIGBUS in the program.
///
/// Order. Each record has a stamp, the low 32 bits of rdtsc / 16; a record `record_epoch` gives the bits above. Whether
/// they are others is asked when the place is reserved: a signal handler that changes them does so before, and then the
/// place is void and the event recorded anew, or behind. A free is recorded before the real call, an allocation after
/// it. rdtsc may run early, by as long as a cache line takes to come from another processor. Where that puts an
/// allocation before the free that made room for it, the collector mends it by the dependency itself
/// (collector/order.h). Of an event that ends a block it could not: with caches a thread (jemalloc, mimalloc, tcmalloc)
/// a block is freed, given again and handed over in 30 ns, and an early stamp puts the new owner's free before the old
/// one's, without a contradiction. So those, and only where there is a second thread, wait behind a fence: 13 ns.
/// Without it half of the runs of the exchange test on such an allocator had a wrong pair, with it none of 60. A fence
/// at each event, or rdtscp, costs as much at allocations too; a global sequence number 15 with four threads;
/// clock_gettime 40.
///
/// Alone. Most programs have one thread at work at a time, and where no other thread records, a thread's own order is
/// all there is: it needs no clock, which is more than half of what an event costs. So a thread may be alone: its
/// number stands in `record_alone`, and its stamps are that of the moment when it began to be, or the collector's last,
/// which is in its ring. Another thread takes the number away before it takes the stamp of its first event. Who was
/// alone may be at an event meanwhile, with a stamp that is too early, and that is no harm: x86 keeps loads in order,
/// so what that event depends on was there before its thread looked, and so does not depend on the other thread's.
///
/// To begin is harder: nobody may be at an event who has not seen it. Each of the others raises `busy` in its ring
/// before it looks at `record_alone`, and lowers it when its record is published. Who was alone before, and may have
/// been stopped after it looked, raises nothing, but looks once more when it has reserved its place. They need no fence
/// for that: who begins puts one into all of them (membarrier), and gives up if one is busy, or has reserved a place
/// that the collector has not read. (Else that one's event, with a stamp of long ago, could appear while a pass is at
/// work, behind it, and before it what depends on it, with a stamp below the cut: see collector/order.h.) It tries when
/// a quarter of its ring is full, if no other thread has recorded since the last quarter. Where times are recorded
/// nobody is alone.
///
/// Rejected: 24-byte records with whole stamps and sizes (half as many events in a ring, and more of its lines travel);
/// varints (the program pays for what the collector can do); a published head (needs a nesting counter against signal
/// handlers); a futex or a pipe an event; a lock.
///
/// Fork. A child has its parent's rings mapped and must not write there: a page that the kernel wipes in a child
/// tells it (record.c). It then makes its own memory and starts its own collector. A child of vfork borrows its
/// parent's thread and ring.
///
/// Recovery. Where the rings are a file (CMTTRACE_RINGS), places are given back to the threads only when the trace's
/// files have what was in them, in whole blocks. `saves` then goes up by one, and its parity tells which of two states
/// is valid: how long the files were, how far each ring was. What was written after is still in the rings, so a
/// recovery cuts the files there and reads on in the rings.
///
/// The end is noticed through a pidfd; all records are still in this memory, so a program does not wait for its trace.
/// Who reads the trace next does, by a lock on its file (cmt/recorder_lock.h), which the collector lets go while the
/// program is at work: so a program that has been for a second waits, `leaving`, until the lock is taken again. Where
/// it was told to wait for the trace (CMTTRACE_WAIT), or is the first process of a container, with which the kernel
/// ends all others, it asks (`request`) before exit, _exit, abort and exec for the trace to be whole, and waits until
/// it is.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
  rings_big = 512,      // of ring_slots_big places, 256 KiB each
  rings_small = 12288,  // the others: 16 KiB each
  rings_max = rings_big + rings_small,
  ring_slots_big = 16384,
  ring_slots_small = 1024,
  ring_slots_at_rest = 2048,  // 32 KiB
  ring_slots_crowded = 256,   // the first page, where there are many rings
  rings_roomy = 256,          // so many may have 32 KiB at their start
  rings_bytes_max = 64 << 20,
  slot_bytes = 16,
  stamp_shift = 4,  // stamps count 16 ticks of rdtsc: some 6 ns, and 32 bits of them half a minute
  stamp_slack = 512,
  outputs_max = 4,
  output_path_bytes = 4096,
  command_bytes_max = 16384,
  message_bytes = 256,
  label_bytes_max = 1024,
};

/// Two words. The first, from bit 0: kind (6 bits), the base-2 logarithm of the alignment plus 1 (6 bits, 0: none),
/// valid, parity of the lap, nested, given, and 48 bits of address. The second: stamp (32 bits), size (32 bits).
struct Slot {
  uint64_t head;
  uint64_t body;
};

enum {
  slot_alignment_shift = 6,
  slot_valid = 1 << 12,
  slot_parity = 1 << 13,
  slot_given = 1 << 14,  // of a realloc: it was given a block, named by the record_given before
  slot_address_shift = 16,
};

/// Kinds of records: below 32 those of events (format-spec/cmt.md, "Kinds"). The others stand before the event that
/// they belong to, and their second word is their value.
enum {
  record_given = 32,      // an event's place of its own, with a stamp: a realloc of the block at `address` begins
  record_owner = 33,      // with a stamp: the ring is thread `size`'s from here on
  record_epoch = 40,      // stamps from here on have these upper bits
  record_count = 41,      // elements
  record_size = 42,       // a size of more than 32 bits
  record_alignment = 43,  // an alignment that is no power of two, or huge
  record_usable_size = 44,
  record_piece = 45,  // 14 bytes of text: 6 in the address, 8 in the second word; how many stands for the alignment
  record_void = 46,   // nothing: a place that was reserved for what is now behind it
};

/// How far a ring's records are in the file, where the rings are to be recovered from.
struct Saved {
  uint64_t place;
  uint32_t thread;  ///< whose the ring was there
  uint32_t epoch;
};

/// Of two lines one is the program's, one the collector's.
struct Ring {
  uint64_t reserved;   ///< places handed out
  uint64_t slots_at;   ///< offset of its places in the mapping
  uint32_t slots;      ///< how many, a power of two
  uint32_t owner;      ///< the kernel's id of the thread that has it; 0: nobody
  uint32_t waiting;    ///< somebody waits for `limit` to rise
  uint32_t left;       ///< its owner has said thread_exit: the ring is free once that thread is gone
  uint64_t lost;       ///< events that found it full and were told not to wait
  uint32_t busy;       ///< its owner is at an event that others' events may depend on
  uint32_t processor;  ///< where its owner was at a quarter of the ring, plus 1
  uint32_t unused[4];
  uint64_t soft;
  uint64_t limit;
  uint64_t tail;   ///< places read, all of them published
  uint64_t clock;  ///< the last pass's stamp
  struct Saved saved[2];
};

/// Who sleeps briefly comes back before a ring that is a quarter full is full.
enum { awake, asleep_briefly, asleep_deeply };
enum { request_none, request_checkpoint, request_finish };
enum { verdict_go_on, verdict_enough, verdict_failed };

struct Control {
  char magic[8];  ///< "cmtring2"
  uint32_t process;
  uint32_t clock_is_ns;  ///< no usable rdtsc: stamps are nanoseconds / 16
  uint64_t start_stamp;
  uint64_t start_ns;     ///< CLOCK_MONOTONIC at start_stamp
  uint64_t start_wall;   ///< seconds since 1970
  uint64_t bytes;        ///< of the mapping
  uint32_t rings_limit;  ///< entries of `rings`
  uint32_t rings_large;  ///< the first so many have ring_slots_big places
  uint32_t forked;       ///< blocks from before the start are many
  uint32_t outputs;      ///< the collector's descriptors from collector_output on
  // Written by the program, from here on.
  uint32_t threads;     ///< numbers given
  uint32_t rings_used;  ///< rings that were ever somebody's
  uint32_t request;     ///< rises with each
  uint32_t request_kind;
  uint32_t bell;  ///< rises when the collector is to look
  uint32_t exec_pending;
  uint32_t leaving;  ///< the process has begun to end by itself
  uint32_t leases;   ///< how often a thread began to record alone
  uint32_t made_control;
  uint64_t ringless;  ///< events of threads that got no ring
  // Written by the collector.
  uint32_t attached;
  uint32_t asleep;    ///< how deeply
  uint32_t done;      ///< the request that is done
  uint32_t verdict;   ///< whether the program should go on recording
  uint32_t paused;    ///< from outside
  uint32_t readable;  ///< who reads the trace does not wait for its end (cmt/recorder_lock.h)
  uint64_t saves;
  uint32_t times;                        ///< whether the trace has them
  uint32_t sandboxed;                    ///< by the program: it rings no bell any more (sandbox.h)
  uint64_t saved_bytes[2][outputs_max];  ///< of the files
  uint64_t clock_stamp;                  ///< a late stamp, and the time that it was
  uint64_t clock_ns;
  char message[message_bytes];  ///< why it has failed
  char program[256];
  char command[command_bytes_max];
  char paths[outputs_max][output_path_bytes];
  char rings_path[output_path_bytes];    ///< where this is a file; empty in memory
  char control_path[output_path_bytes];  ///< a FIFO for commands; empty: none
  char status_path[output_path_bytes];   ///< a file to be appended to at the end; empty: none
};

/// The collector's descriptors.
enum { collector_memory = 3, collector_process = 4, collector_output = 5 };

/// As in cmt/recorder_lock.h.
static const int64_t lock_at_work = (int64_t)1 << 61;
static const int64_t lock_is_awaited = ((int64_t)1 << 61) + 1;

#ifdef __cplusplus
static_assert(sizeof(Ring) == 128, "two lines");
#else
_Static_assert(sizeof(struct Ring) == 128, "two lines");
#endif

/// Whether the place `at` of a ring is published: its head is valid, with the parity of the lap that it is in.
static inline bool slot_is_published(const struct Slot* slot, uint64_t at, uint64_t slots) {
  const uint64_t wanted = (uint64_t)slot_valid | ((at & slots) != 0 ? (uint64_t)slot_parity : 0);
  return (__atomic_load_n(&slot->head, __ATOMIC_ACQUIRE) & (slot_valid | slot_parity)) == wanted;
}

/// The rings' own table follows the control block.
static inline struct Ring* ring_at(struct Control* control, uint32_t number) {
  const uint64_t begin = (sizeof(struct Control) + 127) & ~(uint64_t)127;
  return (struct Ring*)((char*)control + begin) + number;
}

static inline uint64_t rings_control_bytes(uint32_t rings) {
  return (sizeof(struct Control) + 128 + rings * sizeof(struct Ring) + 4095) & ~(uint64_t)4095;
}
