/* Finds threads of the allocator that the recorded clock has not met yet (recorded_clock.h). */
#pragma once

#include "cmtreplay/worker/runner.h"

/* From now on the recorded clock waits until it has met every thread of the process that carries out no lane. It no
 * longer waits for a thread that for a while neither reads a clock nor sleeps. */
void await_new_threads_of(const struct replay* replay);
