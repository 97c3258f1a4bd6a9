/* The worker: a process that carries out a trace's operations with the allocator that was preloaded into it.
 *
 *     cmtreplay-worker CONTROL_FD [PREFIX LIBRARY]     replays
 *     cmtreplay-worker --probe [PREFIX LIBRARY]        says where malloc and the other calls come from, and which
 *                                                      objects are loaded
 *
 * With a prefix the calls are those of a library that has them under other names (target.h).
 *
 * It measures itself, so it has to be nothing: plain C without stdio or libstdc++ (whose start alone would ask for
 * 72,704 bytes), no allocation of its own, everything mapped and faulted in before the start (set_up.c). What changes
 * in its anonymous memory between the start and the end is the allocator's.
 *
 * What a thread does: loop.c carries out the calls, runner.c goes from chunk to chunk and does what is no call,
 * threads.c starts and ends threads, schedule.c holds them in order. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"
#include "set_up.h"
#include "target.h"
#include "verify.h"

/* Stopping and measuring. */

static void stop(const struct control* control) {
  char byte = 'r';
  while (write(control->talk_fd, &byte, 1) < 0 && errno == EINTR) continue;
  ssize_t got;
  while ((got = read(control->talk_fd, &byte, 1)) < 0 && errno == EINTR) continue;
  if (got != 1) _exit(1);
}

static uint64_t cpu_nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static void note_usage(struct control* control, const struct rusage* before, const struct rusage* after) {
  control->minor_faults = (uint64_t)(after->ru_minflt - before->ru_minflt);
  control->major_faults = (uint64_t)(after->ru_majflt - before->ru_majflt);
  control->voluntary_switches = (uint64_t)(after->ru_nvcsw - before->ru_nvcsw);
  control->involuntary_switches = (uint64_t)(after->ru_nivcsw - before->ru_nivcsw);
}

static void measure(struct replay* replay) {
  struct control* const control = replay->control;
  struct runner runner;
  struct rusage before, after;
  runner_open(&runner, replay, 0);
  getrusage(RUSAGE_SELF, &before);
  const uint64_t cpu_begin = cpu_nanoseconds();
  replay->begin_ns = nanoseconds_now();
  const uint64_t tick_begin = latency_clock();
  run_lane(&runner);
  finish_threads(replay);
  control->clock_ticks = latency_clock() - tick_begin;
  control->wall_ns = control->clock_ns = nanoseconds_now() - replay->begin_ns;
  control->cpu_ns = cpu_nanoseconds() - cpu_begin;
  getrusage(RUSAGE_SELF, &after);
  note_usage(control, &before, &after);
}

/* A signal that ends the process leaves behind which thread it came in. The signal comes again, and then does what it
 * does by default. */

static struct control* control_of_handler;

static void note_fault(int number) {
  const struct runner* const runner = current_runner;
  if (runner) control_of_handler->faulted_lane = 1 + (uint32_t)(runner->lane - control_lanes(control_of_handler));
  signal(number, SIG_DFL);
}

static void catch_faults(struct control* control) {
  static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT};
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = note_fault;
  action.sa_flags = SA_RESETHAND | SA_NODEFER;
  control_of_handler = control;
  for (size_t i = 0; i < sizeof signals / sizeof *signals; ++i) {
    struct sigaction before;
    if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL) sigaction(signals[i], &action, NULL);
  }
}

void verify_place(uint64_t* lane, uint64_t* position) {
  const struct runner* const runner = current_runner;
  *lane = (uint64_t)(runner->lane - runner->replay->lanes);
  *position = runner->lane->position / sizeof(uint64_t);
}

/* Frees what the trace leaves behind. What an allocator still has then it keeps for itself. */
static void drain(const struct replay* replay) {
  for (uint32_t i = 0; i < replay->control->drain_count; ++i) {
    void** const slot = &replay->slots[replay->drained_slots[i]];
    replay->calls.free(replay->control->several ? schedule_take_own(slot) : *slot);
  }
}

static int run(int control_fd) {
  struct control* const control = map_control(control_fd);
  if (!control) return 1;
  static struct replay replay;
  set_up(&replay, control);
  catch_faults(control);
  stop(control);
  measure(&replay);
  if (control->verification_fd >= 0) verify_end();
  stop(control);
  if (control->drain_fd >= 0) {
    drain(&replay);
    stop(control);
  }
  return 0;
}

int main(int count, char** arguments) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (count != 2 && count != 4) return 2;
  if (count == 4 && !use_prefix(arguments[2], arguments[3])) return 1;
  const int status = strcmp(arguments[1], "--probe") == 0 ? probe() : run(atoi(arguments[1]));
  _exit(status);
}
