// Keeps the table that large_blocks.h describes: units of 8 KiB for leaves and groups, taken from mapped chunks.
#include "preload/program/pages/large_blocks.h"

enum {
  unit_bytes = 8192,  // of a leaf, or of a group's table
  chunk_bytes = 256 * 1024,
  chunk_units = chunk_bytes / unit_bytes,
  leaf_words = 1 << (large_leaf_bits - large_page_bits),
  group_leaves = 1 << (large_group_bits - large_leaf_bits),
  groups_max = 1 << (large_address_bits - large_group_bits),
};

struct Leaf {
  uint64_t used[leaf_words / 64];  // a bit for each word that has a block, or has had one until now
  uint64_t open[leaf_words / 64];  // a bit for each word of an open block; perhaps of one that has ended
  uint64_t words[leaf_words];
  struct Leaf* next;
  uintptr_t begin;
};

struct Group {
  struct Leaf* leaves[group_leaves / 2];
};

_Static_assert(sizeof(struct Leaf) <= unit_bytes && sizeof(struct Group) <= unit_bytes, "a unit holds each");
_Static_assert(chunk_units < 4096, "how many units of a chunk are used stands below its address");

uint64_t large_blocks_min;
LARGE_VARIABLE uint64_t large_blocks_filter[(1 << large_filter_bits) / 64];

typedef struct Group* Halves[2];  // a table for each half of a group

static Halves* groups;       // groups_max of them, mapped with the first leaf; NULL: none yet
static struct Leaf* leaves;  // all
static uint64_t most_bytes;  // of a block, ever
static uintptr_t chunk;      // the one in use, and in its lowest bits how many of its units are used

// A word: the block's place in its page, its size, and the flags.
static const uint64_t word_used = (uint64_t)1 << 63, word_was_resident = (uint64_t)1 << 62,
                      word_was_zeroed = (uint64_t)1 << 61, word_is_written = (uint64_t)1 << 60;
static const uint64_t place_mask = (1 << large_page_bits) - 1, bytes_mask = ((uint64_t)1 << 48) - 1;

// Zeroed memory. A signal handler may take some meanwhile, as other threads do.
static void* take_unit(void) {
  for (;;) {
    uintptr_t seen = __atomic_load_n(&chunk, __ATOMIC_ACQUIRE);
    const uintptr_t used = seen % 4096;
    if (seen && used < chunk_units) {
      if (__atomic_compare_exchange_n(&chunk, &seen, seen + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return (char*)(seen - used) + used * unit_bytes;
      continue;
    }
    void* fresh = sys_map_quietly(chunk_bytes);
    if (!fresh) return NULL;
    if (__atomic_compare_exchange_n(&chunk, &seen, (uintptr_t)fresh + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      return fresh;
    sys(SYS_munmap, fresh, chunk_bytes);
  }
}

// Another thread may be faster. A library with a table of that size could not be loaded where RLIMIT_DATA is small.
static Halves* groups_mapped(bool create) {
  Halves* table = __atomic_load_n(&groups, __ATOMIC_ACQUIRE);
  if (table || !create) return table;
  Halves* fresh = sys_map_quietly(groups_max * sizeof *fresh);
  if (!fresh) return NULL;
  if (__atomic_compare_exchange_n(&groups, &table, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return fresh;
  sys(SYS_munmap, fresh, groups_max * sizeof *fresh);
  return table;
}

static struct Leaf** leaf_place(uintptr_t address, bool create) {
  if (address >> large_address_bits != 0) return NULL;
  Halves* table = groups_mapped(create);
  if (!table) return NULL;
  const uintptr_t number = address >> large_leaf_bits & (group_leaves - 1);
  struct Group** place = &table[address >> large_group_bits][number / (group_leaves / 2)];
  struct Group* group = __atomic_load_n(place, __ATOMIC_ACQUIRE);
  if (!group && create) {
    struct Group* fresh = take_unit();
    if (!fresh) return NULL;
    const bool is_ours = __atomic_compare_exchange_n(place, &group, fresh, false, __ATOMIC_ACQ_REL,
                                                     __ATOMIC_ACQUIRE);  // else it is lost
    if (is_ours) group = fresh;
  }
  return group ? &group->leaves[number % (group_leaves / 2)] : NULL;
}

static void list_leaf(struct Leaf* leaf, uintptr_t address) {
  must(!leaf->next && leaf->begin == 0);
  leaf->begin = address >> large_leaf_bits << large_leaf_bits;
  leaf->next = __atomic_load_n(&leaves, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&leaves, &leaf->next, leaf, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) continue;
}

static struct Leaf* leaf_of(uintptr_t address, bool create) {
  struct Leaf** place = leaf_place(address, create);
  if (!place) return NULL;
  struct Leaf* leaf = __atomic_load_n(place, __ATOMIC_ACQUIRE);
  if (!leaf && create) {
    struct Leaf* fresh = take_unit();
    if (!fresh) return NULL;
    if (__atomic_compare_exchange_n(place, &leaf, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      leaf = fresh;
      list_leaf(leaf, address);
    }
  }
  return leaf;
}

static uintptr_t index_in_leaf(uintptr_t address) { return address >> large_page_bits & (leaf_words - 1); }

static struct LargeBlock block_of(uint64_t word, uintptr_t page) {
  return (struct LargeBlock){
      .address = page << large_page_bits | (word & place_mask),
      .bytes = word >> large_page_bits & bytes_mask,
      .was_resident = (word & word_was_resident) != 0,
      .was_zeroed = (word & word_was_zeroed) != 0,
      .is_written = (word & word_is_written) != 0,
  };
}

static uint64_t word_of(const struct LargeBlock* block) {
  const uint64_t flags = word_used | (block->was_resident ? word_was_resident : 0) |
                         (block->was_zeroed ? word_was_zeroed : 0) | (block->is_written ? word_is_written : 0);
  return flags | block->bytes << large_page_bits | (block->address & place_mask);
}

static void set_bit(uint64_t* bits, uintptr_t i) {
  __atomic_fetch_or(&bits[i / 64], (uint64_t)1 << i % 64, __ATOMIC_RELEASE);
}

static void clear_bit(uint64_t* bits, uintptr_t i) {
  if (__atomic_load_n(&bits[i / 64], __ATOMIC_RELAXED) >> i % 64 & 1)
    __atomic_fetch_and(&bits[i / 64], ~((uint64_t)1 << i % 64), __ATOMIC_RELEASE);
}

bool large_block_note(const struct LargeBlock* block) {
  must(block->address != 0);
  struct Leaf* leaf = leaf_of(block->address, true);
  if (!leaf || block->bytes > bytes_mask) return false;
  uint64_t most = __atomic_load_n(&most_bytes, __ATOMIC_RELAXED);
  while (block->bytes > most &&
         !__atomic_compare_exchange_n(&most_bytes, &most, block->bytes, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    continue;
  const uint32_t bit = large_filter_bit((const void*)block->address);
  const uint64_t mask = (uint64_t)1 << bit % 64;
  if ((__atomic_load_n(&large_blocks_filter[bit / 64], __ATOMIC_RELAXED) & mask) == 0)
    __atomic_fetch_or(&large_blocks_filter[bit / 64], mask, __ATOMIC_RELAXED);
  const uintptr_t i = index_in_leaf(block->address);
  __atomic_store_n(&leaf->words[i], word_of(block), __ATOMIC_RELEASE);
  set_bit(leaf->used, i);
  return true;
}

void large_block_open(const void* address) {
  struct Leaf* leaf = leaf_of((uintptr_t)address, false);
  const uintptr_t i = index_in_leaf((uintptr_t)address);
  if (leaf && (__atomic_load_n(&leaf->words[i], __ATOMIC_RELAXED) & (word_used | word_was_resident)) == word_used)
    set_bit(leaf->open, i);
}

void large_block_close(const void* address) {
  struct Leaf* leaf = leaf_of((uintptr_t)address, false);
  if (leaf) clear_bit(leaf->open, index_in_leaf((uintptr_t)address));
}

// A block that was given back and given out again meanwhile has another word. If it has the same one, its pages were in
// memory as well.
void large_block_set_written(const struct LargeBlock* block) {
  struct Leaf* leaf = leaf_of(block->address, false);
  const uintptr_t i = index_in_leaf(block->address);
  uint64_t seen = word_of(block);
  const uint64_t written = seen | word_is_written;
  if (leaf && __atomic_compare_exchange_n(&leaf->words[i], &seen, written, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    clear_bit(leaf->open, i);
}

bool large_block_reopen(const struct LargeBlock* block) {
  struct Leaf* leaf = leaf_of(block->address, false);
  const uintptr_t i = index_in_leaf(block->address);
  struct LargeBlock open = *block;
  open.was_resident = open.is_written = false;
  uint64_t seen = word_of(block);
  if (!leaf ||
      !__atomic_compare_exchange_n(&leaf->words[i], &seen, word_of(&open), false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    return false;
  set_bit(leaf->open, i);
  return true;
}

// The last used word of a leaf up to index i; leaf_words: there is none.
static uintptr_t last_used(const struct Leaf* leaf, uintptr_t i) {
  for (uintptr_t word = i / 64 + 1; word-- > 0; i = word * 64 - 1) {
    const uint64_t bits = __atomic_load_n(&leaf->used[word], __ATOMIC_ACQUIRE) << (63 - i % 64) >> (63 - i % 64);
    if (bits) return word * 64 + 63 - (uintptr_t)__builtin_clzll(bits);
    if (word == 0) break;
  }
  return leaf_words;
}

struct LargeBlock large_block_around(uintptr_t address) {
  const uint64_t most = __atomic_load_n(&most_bytes, __ATOMIC_RELAXED);
  const uintptr_t least = address > most ? address - most : 0;
  for (uintptr_t at = address;; at = (at >> large_leaf_bits << large_leaf_bits) - 1) {
    struct Leaf* leaf = leaf_of(at, false);
    const uintptr_t i = leaf ? last_used(leaf, index_in_leaf(at)) : (uintptr_t)leaf_words;
    if (i != leaf_words) {
      const struct LargeBlock block =
          block_of(__atomic_load_n(&leaf->words[i], __ATOMIC_ACQUIRE), (leaf->begin >> large_page_bits) + i);
      if (block.bytes && address - block.address < block.bytes) return block;
      if (block.bytes) break;
    }
    if (at >> large_leaf_bits <= least >> large_leaf_bits) break;
  }
  return (struct LargeBlock){0};
}

static bool is_word_of(uint64_t word, uintptr_t address) {
  return (word & word_used) && (word & place_mask) == (address & place_mask);
}

bool large_block_is(const void* address) {
  struct Leaf* leaf = leaf_of((uintptr_t)address, false);
  return leaf && is_word_of(__atomic_load_n(&leaf->words[index_in_leaf((uintptr_t)address)], __ATOMIC_RELAXED),
                            (uintptr_t)address);
}

struct LargeBlock large_block_take(const void* address) {
  struct Leaf* leaf = leaf_of((uintptr_t)address, false);
  const uintptr_t i = index_in_leaf((uintptr_t)address);
  const uint64_t seen = leaf ? __atomic_load_n(&leaf->words[i], __ATOMIC_ACQUIRE) : 0;
  if (!is_word_of(seen, (uintptr_t)address)) return (struct LargeBlock){0};
  const uint64_t last = __atomic_exchange_n(&leaf->words[i], 0, __ATOMIC_ACQ_REL);  // is_written may be new
  if (!is_word_of(last, (uintptr_t)address)) return (struct LargeBlock){0};         // it was freed twice
  clear_bit(leaf->used, i);
  clear_bit(leaf->open, i);
  const struct LargeBlock taken = block_of(last, (uintptr_t)address >> large_page_bits);
  must(taken.address == (uintptr_t)address);
  return taken;
}

void large_blocks_forget(void) {
  for (struct Leaf* leaf = __atomic_load_n(&leaves, __ATOMIC_ACQUIRE); leaf; leaf = leaf->next) {
    for (uintptr_t i = 0; i < leaf_words; i += 64) {
      const uint64_t used = __atomic_exchange_n(&leaf->used[i / 64], 0, __ATOMIC_ACQ_REL);
      for (uint64_t left = used; left; left &= left - 1)
        __atomic_store_n(&leaf->words[i + (uintptr_t)__builtin_ctzll(left)], 0, __ATOMIC_RELEASE);
      __atomic_store_n(&leaf->open[i / 64], 0, __ATOMIC_RELEASE);
    }
  }
  for (size_t i = 0; i < sizeof large_blocks_filter / sizeof *large_blocks_filter; i++)
    if (large_blocks_filter[i]) __atomic_store_n(&large_blocks_filter[i], 0, __ATOMIC_RELAXED);
}

static bool visit_word(struct Leaf* leaf, uintptr_t i, bool (*visit)(const struct LargeBlock*, void*), void* argument) {
  const uint64_t word = __atomic_load_n(&leaf->words[i], __ATOMIC_ACQUIRE);
  if (!(word & word_used)) return true;
  const struct LargeBlock block = block_of(word, (leaf->begin >> large_page_bits) + i);
  return visit(&block, argument);
}

void large_blocks_visit(enum LargeBlocks which, bool (*visit)(const struct LargeBlock*, void*), void* argument) {
  for (struct Leaf* leaf = __atomic_load_n(&leaves, __ATOMIC_ACQUIRE); leaf; leaf = leaf->next) {
    for (uintptr_t i = 0; i < leaf_words; i += 64) {
      const uint64_t* bits = which == large_blocks_open ? leaf->open : leaf->used;
      for (uint64_t left = __atomic_load_n(&bits[i / 64], __ATOMIC_ACQUIRE); left; left &= left - 1) {
        if (!visit_word(leaf, i + (uintptr_t)__builtin_ctzll(left), visit, argument)) return;
      }
    }
  }
}
