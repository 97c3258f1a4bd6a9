/* The C library's functions that read the time or wait for a time, as the allocator calls them. The worker's executable
 * defines them, and the loader searches the executable before any library. Without --clock=recorded they call the C
 * library's, and note that the allocator read a clock. */
#pragma once

#include <stdint.h>

/* Whether the allocator's clock is the recorded one. This is known before the first constructor of a library runs. */
int clock_is_recorded(void);

/* Whether a clock has been read since the last forget_clock_readings(). Clocks of processor time do not count. */
int clock_was_read(void);
void forget_clock_readings(void);
