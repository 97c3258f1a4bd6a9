/* The C library's functions that tell the time or wait for a time, as the allocator sees them: the worker's executable
 * defines them, and the loader searches the executable before any library. Without --clock=recorded they are the C
 * library's, and it is noted that the allocator read a clock. */
#pragma once

#include <stdint.h>

/* Whether the allocator's clock is the recorded one. Known from before the first constructor of a library on. */
int clock_is_recorded(void);

/* Whether a clock other than of processor time has been read since the last forget_clock_readings(). */
int clock_was_read(void);
void forget_clock_readings(void);
