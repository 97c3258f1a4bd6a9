/* Keeps the lanes together in recorded time, while the recorded clock is used. The order between lanes (schedule.h)
 * limits how far one may run ahead only in operations. If a program allocates seldom, a window of 8,192 operations may
 * be minutes. The clock follows the furthest lane, and would be minutes ahead of the others.
 *
 * A lane states the recorded time of its next operation. It carries the operation out when no other lane has stated a
 * time more than time_window_ns before that. A lane holds nobody back if it has no operations or no thread, or if it
 * waits for another lane's block or epoch. */
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
