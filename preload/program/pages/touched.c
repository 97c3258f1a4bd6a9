// Decides what is asked about a block and when, within the time that touched.h allows. The caller records the answers.
#include "preload/program/pages/touched.h"

#include <time.h>

#include "preload/program/kernel.h"
#include "preload/program/pages/ask.h"

enum {
  share = 64,                     // of its time that a thread may spend
  credit_at_first = 100,          // us
  credit_of_first_thread = 2000,  // us, of the first one that asks
  credit_max = 50000,
  cost_of_call = 1,       // us
  cost_of_scan = 4,       // us
  cost_factor_max = 4,    // so much more than expected may be charged
  piece_least = 256,      // pages; fewer are not worth a question of their own
  timed_least = 4096,     // pages, of a question whose processor time is measured
  pages_of_us = 250,      // so many pages take 1 us
  pages_of_us_moved = 12  // the same, by move_pages
};

enum {
  unasked_share = 20,
  small_below = 65536,         // bytes; below it a block is asked about where time is left over
  small_reserve = 100,         // us that it leaves
  asked_once_below = 1 << 20,  // bytes; below it a round asks once, and the question at the end is paid for in advance
};

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

// The us of a question: a fixed part, and one for each `pages_of_us` pages in memory.
struct AskCost {
  uint64_t fixed, pages_of_us;
};

static struct AskCost cost_of(uint64_t pages, bool written) {
  if (ask_scans(pages, written)) return (struct AskCost){cost_of_scan, pages_of_us};
  return (struct AskCost){cost_of_call, written ? pages_of_us_moved : pages_of_us};
}

static uint64_t us_to_ask(uint64_t pages, bool written) {
  const struct AskCost cost = cost_of(pages, written);
  return cost.fixed + pages / cost.pages_of_us;
}

static uint64_t us_at_first(void) {
  return __atomic_exchange_n(&has_first_asked, true, __ATOMIC_RELAXED) ? credit_at_first : credit_of_first_thread;
}

// The us that the thread may spend now.
static uint64_t us_left(struct AskCredit* credit) {
  if (sandbox_entered) return 0;
  if (!is_time_bounded) return UINT64_MAX;
  const uint64_t now = clock_stamp(false), most = (uint64_t)credit_max * stamps_per_us;
  if (!credit->at) credit->left = us_at_first() * stamps_per_us;
  if (credit->at && now > credit->at) credit->left += (now - credit->at) / share;
  if (credit->left > most) credit->left = most;
  credit->at = now;
  return credit->left / stamps_per_us;
}

// How many of so many pages the thread can ask about even if all of them are in memory; 0: not enough of them.
static uint64_t pages_payable(struct AskCredit* credit, uint64_t pages, bool written) {
  const uint64_t left = us_left(credit);
  if (us_to_ask(pages, written) <= left) return pages;
  const struct AskCost cost = cost_of(pages, written);
  const uint64_t payable = left > cost.fixed ? (left - cost.fixed) * cost.pages_of_us : 0;
  return payable < piece_least ? 0 : payable < pages ? payable : pages;
}

// The processor time of this thread; 0: not known.
static uint64_t processor_ns(void) {
  struct timespec time;
  if (sys(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &time) != 0) return 0;
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

// A thread that has lost the processor meanwhile has not spent that time on asking: `ns` is its processor time, or 0.
static void note_cost(struct AskCredit* credit, uint64_t us_expected, uint64_t ns) {
  if (!is_time_bounded) return;
  const uint64_t now = clock_stamp(false);
  const uint64_t most = ns ? ns * stamps_per_us / 1000 : us_expected * cost_factor_max * stamps_per_us;
  uint64_t took = now > credit->at ? now - credit->at : 0;
  if (took > most) took = most;
  credit->left = took < credit->left ? credit->left - took : 0;
  credit->at = now;
}

// Without a write to the runs, which are large.
void touched_clear(struct BlockPages* pages, uint64_t bytes, uint64_t since) {
  pages->flags = 0;
  pages->bytes = bytes;
  pages->since = since;
  pages->runs.count = 0;
}

static void add_bytes(uint64_t* sum, uint64_t bytes) { __atomic_fetch_add(sum, bytes, __ATOMIC_RELAXED); }

static void note_block(const struct LargeBlock* block) {
  must(!block->is_written);
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

// Asks about pages that are paid for. To learn the processor time takes 0.5 us, and so it is for many pages only.
static uint64_t ask_paid(struct AskCredit* credit, uintptr_t address, uint64_t from, uint64_t end, bool written,
                         struct PageRuns* runs) {
  if (from == end) return 0;
  const bool is_timed = is_time_bounded && end - from >= timed_least;
  const uint64_t before = is_timed ? processor_ns() : 0;
  const uint64_t known = ask_pages(address, from, end, written, runs);
  note_cost(credit, us_to_ask(end - from, written), is_timed ? processor_ns() - before : 0);
  return known;
}

static bool ask_about_given(struct AskCredit* credit, const struct LargeBlock* block, uint64_t from,
                            struct PageRuns* runs) {
  const uint64_t end = page_count(block);
  while (from < end) {
    const uint64_t pages = pages_payable(credit, end - from, false);
    const uint64_t known = ask_paid(credit, block->address, from, from + pages, false, runs);
    if (!known) return false;
    if (known < from + pages || runs->count == page_runs_max) {
      close_runs(runs, known, end);
      return true;
    }
    from = known;
  }
  return true;
}

// Whether all pages from `from` on were in memory.
static bool are_resident(const struct PageRuns* runs, uint64_t from, uint64_t end) {
  return runs->count && runs->runs[0].first == from && runs->runs[0].count >= end - from;
}

// The question at the end of a block below that size is paid for at its begin, or neither is asked. So the blocks whose
// use is known are a fair sample of all.
static bool is_prepaid(uint64_t bytes) { return is_time_bounded && touched_is_asked_once(bytes); }

static uint64_t us_to_ask_at_end(const struct LargeBlock* block) {
  return us_to_ask(page_count(block), block->was_zeroed);
}

// Whether the thread can pay for both questions about a block.
static bool can_prepay(struct AskCredit* credit, const struct LargeBlock* block) {
  const uint64_t reserve = block->bytes < small_below ? small_reserve : 0;
  return us_left(credit) >= us_to_ask(page_count(block), false) + us_to_ask_at_end(block) + reserve;
}

bool touched_begins(struct AskCredit* credit, const struct LargeBlock* begun, const struct LargeBlock* given,
                    struct BlockPages* pages) {
  struct LargeBlock block = *begun;
  if (block.bytes < large_blocks_min || block.bytes >> large_address_bits != 0) return false;
  const bool is_kept = given && given->address == block.address;
  const uint64_t end = page_count(&block), before = is_kept ? page_count(given) : 1;
  // Where it stays, the page of its end is new too: the allocator may have written after it.
  const uint64_t from = (before < end ? before : end) - 1;
  must(from < end);
  if (is_prepaid(block.bytes) && !can_prepay(credit, &block)) return false;
  touched_clear(pages, block.bytes, 0);
  const bool is_known = ask_about_given(credit, &block, from, &pages->runs);
  pages->flags = (is_kept ? block_is_kept : 0) | (is_known ? block_is_asked : 0);
  block.was_resident = is_known && are_resident(&pages->runs, from, end) && (!is_kept || given->was_resident);
  if (is_prepaid(block.bytes) && (!is_known || block.was_resident)) return false;
  block.was_zeroed = block.was_zeroed || (is_kept && given->was_zeroed);
  note_block(&block);
  if (is_prepaid(block.bytes)) {
    const uint64_t paid = us_to_ask_at_end(&block) * stamps_per_us;
    credit->left = paid < credit->left ? credit->left - paid : 0;
  }
  return true;
}

enum Touched touched_ask(struct AskCredit* credit, const struct LargeBlock* block, struct AskedPages* asked,
                         struct PageRuns* runs) {
  const uint64_t end = page_count(block);
  must(asked->known_end < end);
  runs->count = 0;
  do {
    const uint64_t from = asked->known_end;
    if (from == asked->paid_end) asked->paid_end = from + pages_payable(credit, end - from, block->was_zeroed);
    const uint64_t known = ask_paid(credit, block->address, from, asked->paid_end, block->was_zeroed, runs);
    must(runs->count <= page_runs_max && known <= asked->paid_end);
    if (known <= from) return touched_unknown;
    asked->known_end = known;
  } while (asked->known_end < end && asked->known_end == asked->paid_end && runs->count < page_runs_max);
  return asked->known_end < end ? touched_more : touched_all;
}

// Whether so much was allocated that others may have been filled unseen.
static bool are_many_unasked(void) {
  const uint64_t live = __atomic_load_n(&live_bytes, __ATOMIC_RELAXED);
  return live != 0 && __atomic_load_n(&unasked_bytes, __ATOMIC_RELAXED) > live / unasked_share;
}

bool touched_begin_round(struct AskCredit* credit) {
  if (!are_many_unasked() || us_left(credit) < us_to_ask(0, true)) return false;
  __atomic_store_n(&unasked_bytes, 0, __ATOMIC_RELAXED);
  return true;
}

enum InRound touched_ask_in_round(struct AskCredit* credit, const struct LargeBlock* block, struct AskWindow* window,
                                  void (*before_question)(void*), void* argument, struct PageRuns* runs) {
  const uint64_t us = us_to_ask(window_pages, false);
  if (us_left(credit) < us) return round_is_over;
  if (!window->states || block->was_zeroed) return round_needs_question;
  if (!ask_window_has(window, block->address, block->bytes)) {
    before_question(argument);
    const bool is_known = ask_window_move(window, block->address, block->bytes);
    note_cost(credit, us, 0);
    if (!is_known) return round_needs_question;
  }
  runs->count = 0;
  return ask_window_runs(window, block->address, block->bytes, runs) ? round_has_known : round_needs_question;
}

bool touched_is_whole(const struct LargeBlock* block, const struct PageRuns* runs) {
  return are_resident(runs, 0, page_count(block));
}

bool touched_is_asked_once(uint64_t bytes) { return bytes < asked_once_below; }

void touched_ends(struct AskCredit* credit, const struct LargeBlock* taken) {
  if (taken->was_resident) return;
  add_bytes(&live_bytes, -taken->bytes);
  if (is_prepaid(taken->bytes) && us_left(credit) < us_to_ask_at_end(taken) + small_reserve)
    credit->left += us_to_ask_at_end(taken) * stamps_per_us;
}

bool touched_lives_on(const struct LargeBlock* given) {
  if (!large_block_note(given)) return false;
  if (!given->was_resident) add_bytes(&live_bytes, given->bytes);
  return true;
}

void touched_discarded(const struct LargeBlock* block) {
  if (!large_block_reopen(block)) return;
  if (block->was_resident) add_bytes(&live_bytes, block->bytes);
  add_bytes(&unasked_bytes, block->bytes);
}
