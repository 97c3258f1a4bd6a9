/* The recorded clock: with --clock=recorded an allocator reads the recorded time of the current event, instead of the
 * system's time. So what it does by the clock (decay, purging) it does as in the program, however fast the replay is.
 *
 * The clock is set by the threads that carry out the trace, each of which advances it to the times of its events, and
 * never goes back. In between it stands still.
 *
 * The allocator may have threads of its own, which sleep. Example: one that purges every 100 ms, and a program that
 * pauses for a second. The replay comes from the event before the pause to the event after it at once, and yet the
 * thread has to run ten times in between, at the right times. So a thread that advances the clock
 *
 * 1. waits until all of the allocator's threads sleep,
 * 2. sets the clock to the time at which the first of them is due, if that is not behind its own, wakes it and begins
 *    again (of threads due at the same time the one that was met first comes first),
 * 3. else sets the clock to its own time.
 *
 * The allocator's threads are met when they first read a clock or sleep (clock_calls.c).
 *
 * Times are nanoseconds since the first event. All functions may be called by any number of threads. */
#pragma once

#include <pthread.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { background_threads_max = 64 };

#define never_due UINT64_MAX

/* Returns the recorded time. */
uint64_t recorded_clock_ns(void);

/* For threads that carry out the trace. Returns once the clock is there. */
void recorded_clock_advance(uint64_t ns);

/* Waits until all of the allocator's threads sleep. */
void recorded_clock_settle(void);

/* For the allocator's threads, which have to be met before they call another of these functions. More than
 * background_threads_max that live at once are not followed: returns 0 for them. */
int recorded_clock_meet(void);

/* Whether a thread, by its number in the kernel, has been met. */
int recorded_clock_knows(int thread);

/* What the kernel says that a thread does: 'R' runs or is about to, 'S' sleeps; 0: it has ended. */
char recorded_clock_kernel_state(int thread);

/* Sleeps until the clock is at `due_ns`. */
void recorded_clock_sleep(uint64_t due_ns);

/* The same on a condition: also returns when that is signalled. As pthread_cond_wait, whose locked mutex it needs.
 * Returns 0, or ETIMEDOUT once the time has come. */
int recorded_clock_wait(pthread_cond_t* condition, pthread_mutex_t* mutex, uint64_t due_ns);

/* Wakes one of the threads that wait on a condition, or all. Those that recorded_clock_wait holds all wake, which
 * POSIX permits: so it is known who runs. */
int recorded_clock_signal(pthread_cond_t* condition, int all);

/* Times that the wait for a thread was given up, because it sleeps in a way that cannot be seen here,
 * or does not sleep at all. */
uint32_t recorded_clock_strays(void);

/* What the clock needs of its process: the C library's functions behind those that the worker replaces for the
 * allocator; and, unless NULL, a function that returns once threads that have just been started have been met. */
struct clock_host {
  int (*wait)(pthread_cond_t*, pthread_mutex_t*);
  int (*signal)(pthread_cond_t*);
  int (*broadcast)(pthread_cond_t*);
  void (*await_new_threads)(void);
};
extern struct clock_host clock_host;

#ifdef __cplusplus
}
#endif
