/* The shadow, the table and the patterns of live_blocks.h. */
#define _GNU_SOURCE
#include "cmtreplay/worker/live_blocks.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

static const uint64_t address_space_bytes = (uint64_t)1 << 47;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t* shadow;
static struct live_block* table;
static uint64_t table_entries, table_used;

void live_blocks_lock(void) { pthread_mutex_lock(&lock); }
void live_blocks_unlock(void) { pthread_mutex_unlock(&lock); }

/* The shadow. */

enum shadow_action { shadow_set, shadow_clear, shadow_test };

/* Returns 1 if shadow_test finds one of these bits set, else 0. */
static int shadow_bits(enum shadow_action action, uint8_t* at, uint8_t bits) {
  if (action == shadow_test) return (*at & bits) != 0;
  if (action == shadow_set)
    *at |= bits;
  else
    *at &= (uint8_t)~bits;
  return 0;
}

/* The same for bytes of the shadow of which all bits are meant. */
static int shadow_bytes(enum shadow_action action, uint8_t* at, uint64_t count) {
  if (action != shadow_test) {
    memset(at, action == shadow_set ? 0xff : 0, count);
    return 0;
  }
  uint64_t word = 0;
  for (; count >= sizeof word; at += sizeof word, count -= sizeof word) {
    __builtin_memcpy(&word, at, sizeof word);
    if (word) return 1;
  }
  for (; count; ++at, --count) {
    if (*at) return 1;
  }
  return 0;
}

/* The same for the bits of a range of addresses. */
static int shadow_range(enum shadow_action action, uintptr_t begin, uint64_t bytes) {
  if (bytes == 0 || begin + bytes > address_space_bytes) return 0;
  const uintptr_t end = begin + bytes;
  const uint8_t from_begin = (uint8_t)(0xff << begin % 8), to_end = (uint8_t) ~(0xff << end % 8);
  uint8_t* const first = shadow + begin / 8;
  uint8_t* const last = shadow + end / 8; /* only its low bits are of the range, or none */
  if (first == last) return shadow_bits(action, first, from_begin & to_end);
  return shadow_bits(action, first, from_begin) || shadow_bytes(action, first + 1, (uint64_t)(last - first - 1)) ||
         (to_end && shadow_bits(action, last, to_end));
}

int live_blocks_have(uintptr_t begin, uint64_t bytes) { return shadow_range(shadow_test, begin, bytes); }

/* The table. */

static uint64_t hash(uint64_t value) {
  value ^= value >> 32;
  value *= 0xd6e8feb86659fd93u;
  value ^= value >> 32;
  return value * 0xd6e8feb86659fd93u;
}

/* The index of a block's entry, or of the empty entry that it would get. */
static uint64_t entry_index(uintptr_t begin) {
  assert((table_entries & (table_entries - 1)) == 0);
  uint64_t index = hash(begin) & (table_entries - 1);
  while (table[index].begin && table[index].begin != begin) index = (index + 1) & (table_entries - 1);
  return index;
}

static struct live_block* map_table(uint64_t entries) {
  void* const map =
      mmap(NULL, entries * sizeof(struct live_block), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return map == MAP_FAILED ? NULL : map;
}

/* Doubles the table. Without memory for that it stays as it is. */
static void grow(void) {
  struct live_block* const old = table;
  const uint64_t old_entries = table_entries;
  struct live_block* const wider = map_table(old_entries * 2);
  if (!wider) return;
  table = wider;
  table_entries = old_entries * 2;
  for (uint64_t i = 0; i < old_entries; ++i) {
    if (old[i].begin) table[entry_index(old[i].begin)] = old[i];
  }
  munmap(old, old_entries * sizeof *old);
}

int live_blocks_open(void) {
  const uint64_t shadow_bytes = address_space_bytes / 8;
  void* const map =
      mmap(NULL, shadow_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  table_entries = 1 << 16;
  table = map_table(table_entries);
  if (map == MAP_FAILED || !table) return errno;
  madvise(map, shadow_bytes, MADV_NOHUGEPAGE);
  shadow = map;
  return 0;
}

const struct live_block* live_blocks_find(uintptr_t begin) {
  const struct live_block* const entry = &table[entry_index(begin)];
  return entry->begin ? entry : NULL;
}

struct live_block live_blocks_overlapping(uintptr_t begin, uint64_t bytes) {
  for (uint64_t i = 0; i < table_entries; ++i) {
    const struct live_block* const block = &table[i];
    if (block->begin && block->begin < begin + bytes && begin < block->begin + block->usable) return *block;
  }
  return (struct live_block){0};
}

int live_blocks_insert(const struct live_block* block) {
  assert(block->begin && block->size <= block->usable);
  const int is_known = live_blocks_find(block->begin) != NULL;
  if (!block->seed && is_known) return 1;
  if (table_used >= table_entries / 2) grow();
  if (table_used + 1 == table_entries && !is_known) return 0; /* a search ends at an empty entry */
  if (!is_known) ++table_used;
  table[entry_index(block->begin)] = *block;
  shadow_range(shadow_set, block->begin, block->usable);
  return 1;
}

/* Closes the gap: later entries that a search would no longer find move up. */
struct live_block live_blocks_remove(uintptr_t begin) {
  uint64_t gap = entry_index(begin);
  const struct live_block removed = table[gap];
  if (!removed.begin) return removed;
  const uint64_t mask = table_entries - 1;
  for (uint64_t index = (gap + 1) & mask; table[index].begin; index = (index + 1) & mask) {
    const uint64_t wanted = hash(table[index].begin) & mask;
    if (((index - wanted) & mask) < ((index - gap) & mask)) continue;
    table[gap] = table[index];
    gap = index;
  }
  assert(table_used > 0);
  table[gap].begin = 0;
  --table_used;
  shadow_range(shadow_clear, removed.begin, removed.usable);
  return removed;
}

void live_blocks_for_each(void (*visit)(const struct live_block*)) {
  for (uint64_t i = 0; i < table_entries; ++i) {
    if (table[i].begin) visit(&table[i]);
  }
}

/* Patterns. */

/* The words of a block's pattern rise by a constant step from one that depends on the seed. No byte is 0, which leaves
 * 56 bits: a word of another place or seed is hardly ever the same. */
static inline uint64_t pattern_word(uint64_t first, uint64_t offset) {
  static const uint64_t step = 0x9e3779b97f4a7c15;
  return (first + offset * step) | 0x0101010101010101u;
}

void fill_pattern(char* bytes, uint64_t size, uint64_t seed) {
  assert(seed); /* seed 0 stands for a block without a pattern */
  const uint64_t first = hash(seed);
  uint64_t at = 0;
  for (; size - at >= 8; at += 8) {
    const uint64_t word = pattern_word(first, at);
    __builtin_memcpy(bytes + at, &word, 8);
  }
  const uint64_t word = pattern_word(first, at);
  memcpy(bytes + at, &word, size - at);
}

const char* first_changed(const char* bytes, uint64_t size, uint64_t seed) {
  if (!seed) return NULL;
  const uint64_t first = hash(seed);
  uint64_t at = 0, found = 0;
  for (; size - at >= 8; at += 8) {
    __builtin_memcpy(&found, bytes + at, 8);
    if (found != pattern_word(first, at)) break;
  }
  const uint64_t word = pattern_word(first, at);
  for (uint64_t i = 0; i < 8 && at + i < size; ++i) {
    if (bytes[at + i] != ((const char*)&word)[i]) return bytes + at + i;
  }
  return NULL;
}
