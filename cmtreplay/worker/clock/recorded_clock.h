/* The recorded clock: with --clock=recorded an allocator reads the recorded time of the current event, instead of the
 * system's time. So its work by the clock (decay, purging) is that in the program, however fast the replay is.
 *
 * The threads that carry out the trace advance the clock to the times of their events. Between two events it does not
 * move, and it never goes back.
 *
 * The allocator may have threads of its own, which sleep. Example: such a thread purges every 100 ms, and the program
 * pauses for a second. The replay goes at once from the event before the pause to the event after it. The thread still
 * has to run ten times in between, at the right times. So a thread that advances the clock
 *
 * 1. waits until all of the allocator's threads sleep;
 * 2. finds the first of them that is due. If it is due no later than the thread's own time, sets the clock to that
 * time, wakes it and begins again. If several are due at one time, the one that was met first comes first;
 * 3. else sets the clock to its own time.
 *
 * A thread of the allocator is met when it first reads a clock or sleeps (clock_calls.c).
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

/* For threads that carry out the trace. Returns when the clock has reached `ns`. */
void recorded_clock_advance(uint64_t ns);

/* Waits until all of the allocator's threads sleep. */
void recorded_clock_settle(void);

/* For the allocator's threads, which have to call this before they call another of these functions. Returns 0 for a
 * thread that is not followed, since background_threads_max others live. */
int recorded_clock_meet(void);

/* Whether a thread, by its number in the kernel, has been met. */
int recorded_clock_knows(int thread);

/* The state of a thread by the kernel: 'R' runs or is about to run, 'S' sleeps; 0: it has ended. */
char recorded_clock_kernel_state(int thread);

/* Sleeps until the clock has reached `due_ns`. */
void recorded_clock_sleep(uint64_t due_ns);

/* Sleeps on a condition, as pthread_cond_timedwait does: also returns when the condition is signalled. Needs the locked
 * mutex. Returns 0, or ETIMEDOUT when the clock has reached `due_ns`. */
int recorded_clock_wait(pthread_cond_t* condition, pthread_mutex_t* mutex, uint64_t due_ns);

/* Wakes one of the threads that wait on a condition, or all. Threads in recorded_clock_wait() all wake, which POSIX
 * permits: so it is known which threads run. */
int recorded_clock_signal(pthread_cond_t* condition, int all);

/* How often the clock gave up waiting for a thread, because it sleeps by something else or does not sleep at all. */
uint32_t recorded_clock_strays(void);

/* The functions of the process that the clock needs. Three are those of the C library that the worker replaces for the
 * allocator. The last one, unless NULL, returns when threads that have just been started have been met. */
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
