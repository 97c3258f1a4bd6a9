/* Keeps the lanes together in recorded time, while the recorded clock is used. The order between lanes (schedule.h)
 * bounds how far one may run ahead in operations only: of a program that allocates seldom, a window of 8,192 operations
 * may be minutes. The clock, which is as far as the lane that is furthest, would be minutes ahead of the others.
 *
 * A lane states the recorded time of its next operation, and carries it out once no other lane has stated a time more
 * than time_window_ns before that. Lanes without operations, without a thread, or that wait for another lane's block or
 * epoch hold nobody back. */
#pragma once

#include <stdint.h>

#include "cmtreplay/protocol.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { time_window_ns = 1000 * 1000 };

/* Returns once the lane's next operation, of this recorded time, is in the window. */
void time_window_enter(struct lane* lanes, uint32_t count, struct lane* lane, uint64_t ns);

#ifdef __cplusplus
}
#endif
