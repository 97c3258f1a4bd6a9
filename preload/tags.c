#include "preload/tags.h"

#include <stddef.h>

#include "preload/sys.h"

struct Slot {
  uint64_t address;  // 0: empty
  uint64_t tag;
};

// Swapped as a whole, by one store, so that a fork sees the old table or the new one.
struct Table {
  uint64_t mask;  // slots - 1
  uint64_t used;
  struct Slot slots[];
};

enum { first_slots = 4096 };

static struct Table* table;

static size_t bytes_for(uint64_t slots) { return sizeof(struct Table) + slots * sizeof(struct Slot); }

// Blocks lie at multiples of 16; the multiplication by 2^64 / golden ratio spreads the rest over the high bits.
static uint64_t home(const struct Table* t, uint64_t address) {
  return ((address >> 4) * 0x9e3779b97f4a7c15u >> 24) & t->mask;
}

static struct Slot* seek(struct Table* t, uint64_t address) {
  uint64_t i = home(t, address);
  while (t->slots[i].address != 0 && t->slots[i].address != address) i = (i + 1) & t->mask;
  return &t->slots[i];
}

static void put(struct Table* t, uint64_t address, uint64_t tag) {
  struct Slot* slot = seek(t, address);
  if (slot->address == 0) t->used++;
  // A rebuild may meet an entry twice: the later tag is the right one.
  if (slot->address == 0 || tag > slot->tag) slot->tag = tag;
  __atomic_store_n(&slot->address, address, __ATOMIC_RELEASE);
}

static bool refile(uint64_t slots) {
  struct Table* fresh = sys_map(bytes_for(slots));
  if (!fresh) return false;
  fresh->mask = slots - 1;
  struct Table* old = table;
  if (old) {
    for (uint64_t i = 0; i <= old->mask; i++) {
      if (old->slots[i].address) put(fresh, old->slots[i].address, old->slots[i].tag);
    }
  }
  __atomic_store_n(&table, fresh, __ATOMIC_RELEASE);
  if (old) sys_unmap(old, bytes_for(old->mask + 1));
  return true;
}

bool tags_reserve(void) {
  if (!table) return refile(first_slots);
  return table->used * 2 <= table->mask || refile((table->mask + 1) * 2);
}

bool tags_rebuild(void) { return !table || refile(table->mask + 1); }

uint64_t tags_find(uint64_t address) {
  if (!table) return 0;
  const struct Slot* slot = seek(table, address);
  return slot->address ? slot->tag : 0;
}

// Closes the gap at `hole` by moving back whatever would no longer be found across it, so that chains never fill up
// with graves.
static void close_gap(struct Table* t, uint64_t hole) {
  for (uint64_t i = (hole + 1) & t->mask; t->slots[i].address != 0; i = (i + 1) & t->mask) {
    if (((i - home(t, t->slots[i].address)) & t->mask) < ((i - hole) & t->mask)) continue;
    t->slots[hole].tag = t->slots[i].tag;
    __atomic_store_n(&t->slots[hole].address, t->slots[i].address, __ATOMIC_RELEASE);
    hole = i;
  }
  __atomic_store_n(&t->slots[hole].address, 0, __ATOMIC_RELEASE);
}

uint64_t tags_take(uint64_t address) {
  if (!table) return 0;
  struct Slot* slot = seek(table, address);
  if (slot->address == 0) return 0;
  uint64_t tag = slot->tag;
  slot->address = 0;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  table->used--;
  close_gap(table, (uint64_t)(slot - table->slots));
  return tag;
}

void tags_put(uint64_t address, uint64_t tag) { put(table, address, tag); }
