#pragma once

#include <stdint.h>

#include "cmtreplay/worker/target.h"

/* Replaces the calls by ones that check them. `replaced` as in completed_calls: stand-ins promise less. Returns an
 * errno where there is not enough address space, else 0. */
int verify(struct calls* calls, uint32_t replaced, struct verification* shared);

/* After the replay, on one thread: checks the blocks that were never freed, and makes requests that cannot be met. */
void verify_end(void);
