/// Which tag lives at which address: open addressing in memory of our own, 16 bytes a slot, at most half full.
///
/// Called under the recorder's lock. A fork copies the table at whatever point another thread was in it; see
/// tags_rebuild.
#pragma once

#include <stdbool.h>
#include <stdint.h>

/// Makes sure that one more address fits. False where there is no memory for that.
bool tags_reserve(void);
/// The tag at `address`, or 0.
uint64_t tags_find(uint64_t address);
/// The same, and forgets it.
uint64_t tags_take(uint64_t address);
/// Needs tags_reserve() before. Replaces what was there.
void tags_put(uint64_t address, uint64_t tag);
/// Files everything anew, for a child forked while another thread changed the table: an entry that was being moved
/// may stand twice, or out of its chain.
bool tags_rebuild(void);
