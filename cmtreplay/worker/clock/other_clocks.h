/* Finds out whether an allocator reads the processor's time stamp counter, which no function of ours can stand in for:
 * by an instruction of its own, or by a C library that is linked into it and asks the kernel's page of clocks (vDSO).
 *
 * The counter is forbidden to the process's threads (PR_SET_TSC). A thread that reads it gets a SIGSEGV, is noted, and
 * may read it from then on. System calls that an allocator makes by itself are not found, and neither are threads that
 * were started before. */
#pragma once

/* For the calling thread and those that it starts, once SIGSEGV is handled. Does nothing where the kernel cannot do
 * that, or the processor does not obey: some virtual machines let the counter be read all the same. Tries it. */
void watch_other_clocks(void);

/* Whether a reading of the counter would be noted. */
int other_clocks_are_watched(void);

/* For the handler of SIGSEGV: whether a reading of the counter was the reason. The thread may go on. */
int is_other_clock(const void* context);

/* Whether the counter was read. */
int other_clock_was_read(void);
