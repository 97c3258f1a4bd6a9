/* The usable sizes of all live blocks, added up. */
#pragma once

#include "calls.h"

/* The calls, each with the block's usable size added to `total` or taken off. False, and nothing changed, where the
 * library does not say usable sizes. */
int count_usable(struct calls* calls, uint64_t* total);
