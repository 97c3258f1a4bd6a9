#include "preload/program/pages/touched.h"

#include "preload/program/lifecycle.h"
#include "preload/program/record.h"

enum {
  share = 64,                     // of its time that a thread may spend
  credit_at_first = 100,          // us
  credit_of_first_thread = 2000,  // us, of the first one that asks
  credit_max = 50000,
  cost_of_call = 1,       // us
  cost_of_scan = 4,       // us
  cost_factor_max = 4,    // so much more than expected may be charged
  pages_of_us = 250,      // so many pages take 1 us
  pages_of_us_moved = 12  // the same, by move_pages
};

enum { unasked_share = 8 };

static bool is_time_bounded, has_first_asked;
static uint64_t live_bytes,
    unasked_bytes;  // of large blocks that have pages to ask about: of all, and of those since all were asked about

void touched_begin(uint64_t min, bool is_bounded) {
  large_blocks_min = min;
  live_bytes = unasked_bytes = 0;
  is_time_bounded = is_bounded;
  has_first_asked = false;
  if (min) ask_begin();
}

void touched_begin_process(void) { has_first_asked = false; }

static uint64_t us_to_ask(uint64_t pages, bool written) {
  if (!written) return cost_of_call + pages / pages_of_us;
  return ask_scans(pages) ? cost_of_scan + pages / pages_of_us : cost_of_call + pages / pages_of_us_moved;
}

static uint64_t us_at_first(void) {
  return __atomic_exchange_n(&has_first_asked, true, __ATOMIC_RELAXED) ? credit_at_first : credit_of_first_thread;
}

static bool can_ask(struct Thread* self, uint64_t pages, bool written) {
  if (sandbox_entered) return false;
  if (!is_time_bounded) return true;
  const uint64_t now = clock_stamp(false), most = (uint64_t)credit_max * stamps_per_us;
  if (!self->asked_at) self->ask_credit = us_at_first() * stamps_per_us;
  if (self->asked_at && now > self->asked_at) self->ask_credit += (now - self->asked_at) / share;
  if (self->ask_credit > most) self->ask_credit = most;
  self->asked_at = now;
  return self->ask_credit >= us_to_ask(pages, written) * stamps_per_us;
}

// A thread that has lost the processor meanwhile has not spent that time on asking.
static void note_cost(struct Thread* self, uint64_t us_expected) {
  if (!is_time_bounded) return;
  const uint64_t now = clock_stamp(false), most = us_expected * cost_factor_max * stamps_per_us;
  uint64_t took = now > self->asked_at ? now - self->asked_at : 0;
  if (took > most) took = most;
  self->ask_credit = took < self->ask_credit ? self->ask_credit - took : 0;
  self->asked_at = now;
}

// All but the runs, which are large.
static void clear(struct BlockPages* pages, uint32_t flags, uint64_t bytes, uint64_t since) {
  pages->flags = flags;
  pages->bytes = bytes;
  pages->since = since;
  pages->runs.count = 0;
}

static void add_bytes(uint64_t* sum, uint64_t bytes) { __atomic_fetch_add(sum, bytes, __ATOMIC_RELAXED); }

static void note_block(const struct LargeBlock* block) {
  if (!large_block_note(block) || block->was_resident) return;
  add_bytes(&live_bytes, block->bytes);
  add_bytes(&unasked_bytes, block->bytes);
}

static uint64_t page_count(const struct LargeBlock* block) { return pages_of_block(block->address, block->bytes); }

// All that is beyond the runs counts as in memory.
static void close_runs(struct PageRuns* runs, uint64_t known, uint64_t end) {
  struct PageRun* last = &runs->runs[page_runs_max - 1];
  if (known < end) *last = (struct PageRun){last->first, end - last->first, true};
}

static bool ask_about_given(struct Thread* self, const struct LargeBlock* block, uint64_t from, struct PageRuns* runs) {
  const uint64_t end = page_count(block);
  if (!can_ask(self, end - from, false)) return false;
  const uint64_t known = ask_pages(block->address, from, end, false, runs);
  if (known) close_runs(runs, known, end);
  note_cost(self, us_to_ask(end - from, false));
  return known != 0;
}

// Whether all pages from `from` on were in memory.
static bool are_resident(const struct PageRuns* runs, uint64_t from, uint64_t end) {
  return runs->count && runs->runs[0].first == from && runs->runs[0].count >= end - from;
}

bool touched_allocated(struct Thread* self, const void* address, uint64_t bytes, const struct LargeBlock* given,
                       struct BlockPages* pages) {
  struct LargeBlock block = {.address = (uintptr_t)address, .bytes = bytes};
  if (bytes < large_blocks_min || bytes >> large_address_bits != 0) return false;
  const bool is_kept = given && given->address == block.address;
  const uint64_t end = page_count(&block), before = is_kept ? page_count(given) : 1;
  // Where it stays, the page of its end is new too: the allocator may have written behind it.
  const uint64_t from = (before < end ? before : end) - 1;
  clear(pages, is_kept ? block_is_kept : 0, bytes, 0);
  const bool is_known = ask_about_given(self, &block, from, &pages->runs);
  if (is_known) pages->flags |= block_is_asked;
  block.was_resident = is_known && are_resident(&pages->runs, from, end) && (!is_kept || given->was_resident);
  note_block(&block);
  return true;
}

// Records runs while the block lives on.
static void record_runs(const struct LargeBlock* block, const struct BlockPages* pages) {
  record_long(&(struct Call){.kind = (enum Kind)record_pages, .address = (const void*)block->address, .pages = pages});
}

// Asks which pages the program has written to; of those, records all runs but the last ones. False: not all are known.
static bool ask_about_all(struct Thread* self, const struct LargeBlock* block, struct BlockPages* pages) {
  const uint64_t end = page_count(block), lost = self->ring->lost;
  if (!can_ask(self, end, true)) return false;
  bool is_known = true;
  for (uint64_t from = 0; is_known;) {
    pages->runs.count = 0;
    const uint64_t known = ask_pages(block->address, from, end, true, &pages->runs);
    note_cost(self, us_to_ask(end - from, true));
    is_known = known > from && self->generation == recording_generation();
    if (!is_known || known >= end) break;
    from = known;
    record_runs(block, pages);
  }
  if (!is_known) pages->runs.count = 0;
  return is_known && self->ring->lost == lost;
}

static bool record_one(const struct LargeBlock* block, void* thread) {
  struct Thread* self = thread;
  if (block->was_resident) return true;
  if (self->generation != recording_generation()) return false;
  struct BlockPages pages;
  clear(&pages, 0, 0, record_moment(self));
  if (ask_about_all(self, block, &pages) && pages.runs.count) record_runs(block, &pages);
  return true;
}

static bool record_last(const struct LargeBlock* block, void* thread) {
  struct Thread* self = thread;
  if (block->was_resident) return true;
  if (self->generation != recording_generation()) return false;
  struct BlockPages pages;
  clear(&pages, 0, 0, record_moment(self));
  const bool is_known = ask_about_all(self, block, &pages);
  if (!is_known) pages.flags = block_is_last;
  if (!is_known || pages.runs.count) record_runs(block, &pages);
  return true;
}

// Whether so much was allocated that others may have been filled unseen.
static bool are_many_unasked(void) {
  const uint64_t live = __atomic_load_n(&live_bytes, __ATOMIC_RELAXED);
  return live != 0 && __atomic_load_n(&unasked_bytes, __ATOMIC_RELAXED) > live / unasked_share;
}

bool touched_released(struct Thread* self, const struct LargeBlock* taken, struct BlockPages* pages) {
  if (!taken->address) return false;
  if (!taken->was_resident) add_bytes(&live_bytes, -taken->bytes);
  clear(pages, 0, 0, 0);
  const bool is_known = taken->was_resident || ask_about_all(self, taken, pages);
  pages->flags = block_ends | (is_known ? block_is_asked : 0);
  if (are_many_unasked() && can_ask(self, 0, true)) {
    __atomic_store_n(&unasked_bytes, 0, __ATOMIC_RELAXED);
    large_blocks_visit(record_one, self);
    note_cost(self, us_to_ask(0, true));
  }
  return true;
}

void touched_refused(const struct LargeBlock* given) {
  if (!large_block_note(given)) return;
  if (!given->was_resident) add_bytes(&live_bytes, given->bytes);
  if (!recording_is_on()) return;
  // No pages: the collector has taken the begin of the realloc for the block's end, and is to watch it again.
  record_runs(given, &(struct BlockPages){.bytes = given->bytes, .since = record_moment(&thread_self)});
}

// A thread that has recorded nothing yet takes a ring, unless its handler has interrupted a call of ours: that might
// allocate. A forked child without events has no trace.
void touched_record_all(void) {
  struct Thread* self = &thread_self;
  const uint32_t generation = recording_generation();
  if (!large_blocks_min || generation == 0 || (self->generation != generation && self->guard)) return;
  if (recording_is_on()) large_blocks_visit(record_last, self);
}
