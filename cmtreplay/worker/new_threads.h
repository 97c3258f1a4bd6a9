/* Threads of the allocator's that the recorded clock has not met yet (recorded_clock.h). */
#pragma once

#include "cmtreplay/worker/runner.h"

/* From now on the recorded clock waits for threads that have just been started, until it has met them: every thread of
 * the process that carries out no lane. One that neither reads a clock nor sleeps for a while is left alone. */
void await_new_threads_of(const struct replay* replay);
