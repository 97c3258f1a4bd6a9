// Keeps the names of the pools, and which are recorded, as pool_table.h describes.
#include "preload/program/pools/pool_table.h"

#include <string.h>

struct PoolsWanted pools_wanted;

// A pool gets its number with its key. All threads that ask for it write the same name, so nobody waits for another
// one, which a fork may have lost.
LARGE_VARIABLE static struct {
  uint64_t key;
  char name[pool_name_bytes];
} pools[pools_max];

void pool_table_begin(bool own, bool heaptrack) {
  pools_wanted.own = own;
  if (heaptrack) pools_wanted.pools |= 1 << pool_heaptrack;
}

void pool_table_name(struct Control* control) {
  if (!pools_wanted.own) return;  // the table's page is not looked at
  for (unsigned pool = pools_known; pool < pools_max && pools[pool].key; pool++)
    memcpy(control->pools[pool], pools[pool].name, pool_name_bytes);
}

static uint64_t key_of(const char* name) {  // FNV-1a
  uint64_t key = 0xcbf29ce484222325;
  for (; *name; name++) key = (key ^ (unsigned char)*name) * 0x100000001b3;
  return key | 1;
}

unsigned pool_number(const char name[pool_name_bytes]) {
  const uint64_t key = key_of(name);
  for (unsigned pool = pools_known; pool < pools_max; pool++) {
    uint64_t before = 0;
    if (!__atomic_compare_exchange_n(&pools[pool].key, &before, key, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
        before != key)
      continue;
    memcpy(pools[pool].name, name, pool_name_bytes);
    return pool;
  }
  return 0;
}
