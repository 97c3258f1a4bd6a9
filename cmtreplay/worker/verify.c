/* Verifying: checks every call while the trace is replayed. The main checks are (enum fault has all):
 *
 * - A new block overlaps no live one.
 * - It is aligned.
 * - It keeps the written bytes until it is freed or resized (live_blocks.h).
 *
 * A block is removed from the live blocks before it is given to the allocator, and inserted after the allocator has
 * returned it. So a thread that rightly gets the same memory next does not find it there. The original calls are made
 * without the lock.
 *
 * A block that overlaps is not filled: that would change the other block's contents and raise a second fault. Verifying
 * writes and reads every byte and costs some 100 ns a call, so it is never timed. */
#define _GNU_SOURCE
#include "cmtreplay/worker/verify.h"

#include <sys/mman.h>
#include <unistd.h>

#include "cmtreplay/worker/runner.h"

enum { natural_alignment_max = 16 };

static struct calls unchecked;
static uint32_t stand_ins;
static struct verification* shared;
static usable_size_call* usable_size;
static uint64_t seed_next;
static struct control* control_at_end; /* NULL: the trace has not ended */

static void count_progress(void) { __atomic_fetch_add(&control_at_end->calls_outside, 1, __ATOMIC_RELAXED); }

int verify_is_stand_in(enum call call) { return stand_ins >> call & 1; }

static struct finding finding_of(enum fault fault, const struct block_request* request, const void* address,
                                 uint64_t other) {
  return (struct finding){.fault = fault,
                          .call = request->call,
                          .position = finding_at_end,
                          .address = (uintptr_t)address,
                          .size = request->size,
                          .count = request->count,
                          .alignment = request->alignment,
                          .other = other};
}

struct finding* verify_report(enum fault fault, const struct block_request* request, const void* address,
                              uint64_t other) {
  const uint64_t index = __atomic_fetch_add(&shared->found, 1, __ATOMIC_RELAXED);
  static __thread struct finding beyond; /* the findings that are only counted */
  if (index >= findings_max) return &beyond;
  struct finding* const finding = &shared->findings[index];
  *finding = finding_of(fault, request, address, other);
  if (control_at_end) return finding;
  finding->lane = current_lane - 1;
  finding->position = current_runner->lane->position / sizeof(uint64_t);
  return finding;
}

static struct finding_block named(const struct live_block* block) {
  return (struct finding_block){block->size, block->position, block->lane, block->begin != 0};
}

static const char* not_zero(const char* bytes, uint64_t size) {
  for (uint64_t at = 0; at < size; ++at) {
    if (bytes[at]) return bytes + at;
  }
  return NULL;
}

/* Checks of a block. */

static uint64_t bytes_of(const struct block_request* request) { return request->size * request->count; }

/* By C a block is aligned for every object that fits into it. No object needs more than 16. None fits into 0 bytes.
 * Libraries differ in what they do with an alignment that is no power of two: glibc takes the next one. */
static uint64_t needed_alignment(const struct block_request* request) {
  if (verify_is_stand_in(request->call) || bytes_of(request) == 0) return 1;
  if (request->alignment && !(request->alignment & (request->alignment - 1))) return request->alignment;
  uint64_t alignment = natural_alignment_max;
  while (alignment > bytes_of(request)) alignment /= 2;
  return alignment;
}

/* Two blocks at one address overlap, also where they have no bytes: C gives each malloc(0) an address of its own. */
static void check_overlap(const struct block_request* request, struct live_block* block) {
  const uint64_t bytes = block->size ? block->size : 1;
  const struct live_block* const same = live_blocks_find(block->begin);
  if (!live_blocks_have(block->begin, bytes) && !same) {
    if (!live_blocks_have(block->begin, block->usable)) return;
    const struct live_block other = live_blocks_overlapping(block->begin, block->usable);
    verify_report(fault_usable_other, request, (void*)block->begin, other.begin)->neighbour = named(&other);
    block->usable = block->size;
    return;
  }
  const struct live_block other = same ? *same : live_blocks_overlapping(block->begin, bytes);
  const int by_size = other.begin < block->begin + bytes && block->begin < other.begin + other.size;
  verify_report(by_size || same ? fault_overlap : fault_usable_other, request, (void*)block->begin, other.begin)
      ->neighbour = named(&other);
  if (by_size) block->seed = 0;
}

/* Inserts a block. `request` NULL: the block was live before, and is not checked again. */
static void insert_block(struct live_block* block, const struct block_request* request) {
  live_blocks_lock();
  if (request) check_overlap(request, block);
  if (!live_blocks_insert(block)) ++shared->unchecked;
  live_blocks_unlock();
}

/* Whether a block can have so many usable bytes: those that it was asked for, and no page that is not mapped. */
static int can_be_usable(const struct live_block* block, uint64_t usable) {
  if (usable < block->size) return 0;
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  if (usable - block->size < page) return 1;
  unsigned char is_resident;
  const uintptr_t last = block->begin + usable - 1;
  return last >= block->begin && mincore((void*)(last & ~(page - 1)), page, &is_resident) == 0;
}

/* Checks, fills and inserts a block that the allocator has returned. */
static void check_new_block(void* address, const struct block_request* request) {
  struct live_block block = {
      .begin = (uintptr_t)address, .size = bytes_of(request), .usable = bytes_of(request), .position = finding_at_end};
  if (!control_at_end) {
    block.lane = current_lane - 1;
    block.position = current_runner->lane->position / sizeof(uint64_t);
  }
  const uint64_t alignment = needed_alignment(request);
  if (block.begin % alignment) {
    struct block_request reported_request = *request;
    reported_request.alignment = alignment;
    verify_report(fault_misaligned, &reported_request, address, 0);
  }
  const uint64_t usable = usable_size ? usable_size(address) : block.usable;
  const int is_usable = can_be_usable(&block, usable);
  if (is_usable) block.usable = usable;
  block.seed = __atomic_fetch_add(&seed_next, (uint64_t)1 << 32, __ATOMIC_RELAXED);
  if (!control_at_end) {
    __atomic_fetch_add(&shared->blocks, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&shared->bytes, block.size, __ATOMIC_RELAXED);
  }
  insert_block(&block, request);
  if (!is_usable) verify_report(fault_usable, request, address, usable);
  if (block.seed) fill_pattern(address, block.size, block.seed);
}

/* Removes a block before it is given back to the allocator, and checks its contents. */
static struct live_block check_old_block(void* address, enum call call) {
  if (!address) return (struct live_block){0};
  live_blocks_lock();
  const struct live_block block = live_blocks_remove((uintptr_t)address);
  live_blocks_unlock();
  runner_begin_touching(current_runner, block.size);
  const char* const wrong = block.begin ? first_changed(address, block.size, block.seed) : NULL;
  runner_end_touching(current_runner, block.size);
  if (wrong)
    verify_report(fault_contents, &(struct block_request){call, block.size, 1, 0}, address, (uintptr_t)wrong)->old =
        named(&block);
  return block;
}

/* Checks how much of the old block a realloc has kept. */
static void check_resized(const char* address, struct live_block old, const struct block_request* request) {
  const uint64_t size = bytes_of(request);
  if (!address && size) {
    const char* const wrong = first_changed((char*)old.begin, old.size, old.seed);
    if (wrong) verify_report(fault_lost, request, (void*)old.begin, (uintptr_t)wrong)->old = named(&old);
    insert_block(&old, NULL);
  } else if (address && !verify_is_stand_in(call_realloc)) {
    const char* const wrong = first_changed(address, old.size < size ? old.size : size, old.seed);
    if (wrong) verify_report(fault_moved, request, address, (uintptr_t)wrong)->old = named(&old);
  }
}

static void check_result(void* address, const struct live_block* old, const struct block_request* request) {
  const uint64_t bytes = old->size > bytes_of(request) ? old->size : bytes_of(request);
  runner_begin_touching(current_runner, bytes);
  if (old->begin) check_resized(address, *old, request);
  if (address && request->call == call_calloc) {
    const char* const wrong = not_zero(address, bytes_of(request));
    if (wrong) verify_report(fault_not_zero, request, address, (uintptr_t)wrong);
  }
  if (address)
    check_new_block(address, request);
  else if (bytes_of(request) && !control_at_end)
    verify_report(fault_refused, request, NULL, 0);
  runner_end_touching(current_runner, bytes);
}

int verify(struct calls* calls, uint32_t replaced, struct verification* verification) {
  static const struct call_observer checking = {check_old_block, check_result};
  const int error = live_blocks_open();
  if (error) return error;
  unchecked = *calls;
  stand_ins = replaced;
  shared = verification;
  seed_next = (uint64_t)1 << 32;
  usable_size = target_usable_size();
  shared->has_usable_size = usable_size != NULL;
  observe_calls(calls, &checking);
  return 0;
}

/* The end: blocks that the trace never frees, and the calls of verify_end.c. */

static void check_live_block(const struct live_block* block) {
  count_progress();
  const char* const wrong = first_changed((char*)block->begin, block->size, block->seed);
  if (wrong)
    verify_report(fault_contents, &(struct block_request){call_free, block->size, 1, 0}, (void*)block->begin,
                  (uintptr_t)wrong)
        ->old = named(block);
}

void verify_announce(const struct block_request* request, enum trying trying) {
  count_progress();
  shared->tried = finding_of(fault_impossible, request, NULL, 0);
  __atomic_store_n(&shared->trying, trying, __ATOMIC_RELEASE);
}

const struct calls* verify_live_blocks(struct control* control) {
  control_at_end = control;
  live_blocks_for_each(check_live_block);
  return &unchecked;
}
