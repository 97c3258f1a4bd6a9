/// The pools whose blocks the program reports itself: by the functions of cmttrace.h, which give each pool a name
/// (program_pools.c), or by those of heaptrack (heaptrack.c).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/program/kernel.h"
#include "preload/protocol.h"

struct PoolsWanted {
  bool own;        ///< those that the program names
  uint64_t pools;  ///< a bit for each pool
};
extern struct PoolsWanted pools_wanted HIDDEN;

/// `own`: record the pools that the program names; `heaptrack`: record heaptrack's pool.
void pool_table_begin(bool own, bool heaptrack);
/// Hands a process's collector the names of the pools that there are already.
void pool_table_name(struct Control* control);
/// Returns the number of the pool with this name, which gets one at its first call. 0: all numbers are taken.
unsigned pool_number(const char name[pool_name_bytes]);
