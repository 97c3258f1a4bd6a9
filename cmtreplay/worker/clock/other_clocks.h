/* Finds out whether an allocator reads the processor's time stamp counter, which no function of the worker can replace.
 * An allocator reads it by an instruction of its own, or by a C library that is linked into it and reads the kernel's
 * page of clocks (vDSO).
 *
 * The worker forbids the counter to the process's threads (PR_SET_TSC). A thread that reads it gets a SIGSEGV, whose
 * handler notes that. The thread may read the counter from then on. Two things are not found: system calls that an
 * allocator makes by itself, and threads that were started before. */
#pragma once

/* Watches the calling thread and those that it starts. SIGSEGV must have a handler. Does nothing if the kernel cannot
 * forbid the counter, or if the processor does not obey: some virtual machines let the counter be read. It tries that.
 */
void watch_other_clocks(void);

/* Whether a reading of the counter would be noted. */
int other_clocks_are_watched(void);

/* For the handler of SIGSEGV. Returns whether a reading of the counter was the reason. The thread may then go on. */
int is_other_clock(const void* context);

/* Whether the counter was read. */
int other_clock_was_read(void);
