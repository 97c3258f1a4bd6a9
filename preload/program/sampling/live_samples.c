// The table of live samples: two buckets for each address (Azar, Broder, Karlin and Upfal, "Balanced Allocations"), so
// that it can be filled to three quarters.
#include "preload/program/sampling/live_samples.h"

#include <string.h>
#include <time.h>

#include "preload/program/block_filter.h"

static struct LiveSample (*table)[live_samples_ways];
static uint32_t count;

bool live_samples_begin(void) {
  if (!table) table = sys_map_quietly(live_samples_buckets * sizeof *table);
  return table != NULL;
}

static struct LiveSample* bucket_of(uintptr_t block, bool is_second) {
  const uint64_t factor = is_second ? 0xc2b2ae3d27d4eb4full : 0x9e3779b97f4a7c15ull;
  return table[(block >> 4) * factor >> 52];
}
static_assert(live_samples_buckets == 1 << 12, "bucket_of() takes the upper 12 bits");

static uint32_t used_in(const struct LiveSample* bucket) {
  uint32_t used = 0;
  for (int i = 0; i < live_samples_ways; i++) used += __atomic_load_n(&bucket[i].key, __ATOMIC_RELAXED) != 0;
  return used;
}

static struct LiveSample* claim_in(struct LiveSample* bucket, uintptr_t block) {
  for (int i = 0; i < live_samples_ways; i++) {
    uintptr_t none = 0;
    if (bucket[i].key == 0 &&
        __atomic_compare_exchange_n(&bucket[i].key, &none, block, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
      __atomic_store_n(&bucket[i].state, live_sample_begins, __ATOMIC_RELAXED);
      return &bucket[i];
    }
  }
  return NULL;
}

struct LiveSample* live_samples_claim(const void* block) {
  struct LiveSample *first = bucket_of((uintptr_t)block, false), *second = bucket_of((uintptr_t)block, true);
  const bool is_second = used_in(second) < used_in(first);
  struct LiveSample* entry = claim_in(is_second ? second : first, (uintptr_t)block);
  if (!entry) entry = claim_in(is_second ? first : second, (uintptr_t)block);
  if (!entry) return NULL;
  __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
  block_filter_add(block);
  return entry;
}

static uint64_t state_of(struct TakenSample sample) {
  return sample.bytes | (uint64_t)(sample.doublings + 1) << live_sample_shift | (uint64_t)sample.is_of_operator << 63;
}

static struct TakenSample sample_of(uint64_t state) {
  return (struct TakenSample){
      .bytes = state & (((uint64_t)1 << live_sample_shift) - 1),
      .doublings = (uint32_t)(state >> live_sample_shift & 127) - 1,
      .is_of_operator = state >> 63,
  };
}

void live_samples_fill(struct LiveSample* entry, struct TakenSample sample) {
  must(sample.bytes >> live_sample_shift == 0 && sample.doublings < 64);
  __atomic_store_n(&entry->state, state_of(sample), __ATOMIC_RELEASE);
}

// The entry is the caller's: it begins, or is held.
static void empty(struct LiveSample* entry) {
  const void* block = (const void*)entry->key;
  __atomic_store_n(&entry->state, live_sample_begins, __ATOMIC_RELAXED);
  __atomic_store_n(&entry->key, 0, __ATOMIC_RELEASE);
  block_filter_remove(block);
  __atomic_fetch_sub(&count, 1, __ATOMIC_RELAXED);
}

// An entry that begins is no sample yet: nobody can free its block. Handlers and forks may leave some.
static bool is_sample(uint64_t state) { return state == live_sample_is_held || state >> live_sample_shift != 0; }

static struct LiveSample* find_in(struct LiveSample* bucket, uintptr_t block) {
  for (int i = 0; i < live_samples_ways; i++) {
    if (__atomic_load_n(&bucket[i].key, __ATOMIC_ACQUIRE) == block &&
        is_sample(__atomic_load_n(&bucket[i].state, __ATOMIC_ACQUIRE)))
      return &bucket[i];
  }
  return NULL;
}

// Waits for the thread that holds an entry. It may have a lower priority.
static void wait_for_holder(int turn) {
  const struct timespec short_time = {.tv_nsec = 50000};
  if (sandbox_entered) return;
  if (turn < 100)
    sys(SYS_sched_yield, 0);
  else
    sys(SYS_nanosleep, &short_time, 0);
}

static struct LiveSample* find(const void* block) {
  struct LiveSample* entry = find_in(bucket_of((uintptr_t)block, false), (uintptr_t)block);
  return entry ? entry : find_in(bucket_of((uintptr_t)block, true), (uintptr_t)block);
}

// Returns whether the entry is the caller's now. False: another one has it, or it is no sample any more.
static bool hold(struct LiveSample* entry, struct TakenSample* sample) {
  uint64_t state = __atomic_load_n(&entry->state, __ATOMIC_ACQUIRE);
  if (state >> live_sample_shift == 0) return false;
  if (!__atomic_compare_exchange_n(&entry->state, &state, live_sample_is_held, false, __ATOMIC_ACQUIRE,
                                   __ATOMIC_RELAXED))
    return false;
  *sample = sample_of(state);
  return true;
}

bool live_samples_find(const void* block, struct TakenSample* found) {
  for (int turn = 0;; turn++) {
    const struct LiveSample* entry = find(block);
    if (!entry) return false;
    const uint64_t state = __atomic_load_n(&entry->state, __ATOMIC_ACQUIRE);
    if (state >> live_sample_shift != 0) return *found = sample_of(state), true;
    wait_for_holder(turn);
  }
}

// Returns the block's entry, which is the caller's then; NULL: it is no sample.
static struct LiveSample* hold_of(const void* block, struct TakenSample* taken) {
  for (int turn = 0;; turn++) {
    struct LiveSample* entry = find(block);
    if (!entry || hold(entry, taken)) return entry;
    wait_for_holder(turn);
  }
}

bool live_samples_take(const void* block, struct TakenSample* taken) {
  struct LiveSample* entry = hold_of(block, taken);
  if (entry) empty(entry);
  return entry != NULL;
}

bool live_samples_end_later(const void* block) {
  struct TakenSample unused;
  struct LiveSample* entry = hold_of(block, &unused);
  if (entry) __atomic_store_n(&entry->state, live_sample_is_over, __ATOMIC_RELEASE);
  return entry != NULL;
}

static void end_if_over(struct LiveSample* entry, void (*record_end)(const void* block)) {
  uint64_t over = live_sample_is_over;
  if (!__atomic_compare_exchange_n(&entry->state, &over, live_sample_is_held, false, __ATOMIC_ACQUIRE,
                                   __ATOMIC_RELAXED))
    return;
  record_end((const void*)entry->key);
  empty(entry);
}

void live_samples_visit_over(void (*record_end)(const void* block)) {
  for (int bucket = 0; bucket < live_samples_buckets; bucket++) {
    for (int way = 0; way < live_samples_ways; way++) end_if_over(&table[bucket][way], record_end);
  }
}

void live_sample_visit(struct LiveSample* entry, bool (*ends)(const void*, struct TakenSample*, void*),
                       void* argument) {
  struct TakenSample sample;
  if (!hold(entry, &sample)) return;
  if (ends((const void*)entry->key, &sample, argument))
    empty(entry);
  else
    live_samples_fill(entry, sample);
}

void live_samples_visit(bool (*ends)(const void*, struct TakenSample*, void*), void* argument) {
  for (int bucket = 0; bucket < live_samples_buckets; bucket++) {
    for (int way = 0; way < live_samples_ways; way++) live_sample_visit(&table[bucket][way], ends, argument);
  }
}

uint32_t live_samples_count(void) { return __atomic_load_n(&count, __ATOMIC_RELAXED); }

// The kernel gives new pages when they are needed, which a forked child need not copy.
void live_samples_clear(void) {
  enum { dont_need = 4 };
  const size_t bytes = live_samples_buckets * sizeof *table;
  if (!table) return;
  if (sandbox_entered || sys(SYS_madvise, table, bytes, dont_need) != 0) memset(table, 0, bytes);
  count = 0;
  block_filter_clear();
}
