/* The worker: the process that carries out a trace's operations with the allocator that was preloaded into it.
 *
 *     cmtreplay-worker CONTROL_FD [PREFIX LIBRARY]     replays
 *     cmtreplay-worker --probe [PREFIX LIBRARY]        prints where malloc and the other calls come from, and which
 *                                                      objects are loaded
 *     cmtreplay-worker --ask NAME...                   prints the values that the allocator has for these settings
 *
 * With a prefix the calls are those of a library that has them under other names (target.c).
 *
 * The process is measured, so it must not use memory itself. It is plain C without stdio or libstdc++ (whose start
 * alone allocates 72,704 bytes). It makes no allocation of its own, and maps and touches everything before the start.
 * So every change in its anonymous memory between the start and the end is the allocator's.
 *
 * On a thread's way loop.c carries out the calls. runner.c goes from chunk to chunk, carries out control words and
 * starts threads. schedule.c keeps threads in order. */
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cmtreplay/worker/clock/clock_calls.h"
#include "cmtreplay/worker/clock/other_clocks.h"
#include "cmtreplay/worker/clock/recorded_clock.h"
#include "cmtreplay/worker/new_threads.h"
#include "cmtreplay/worker/runner.h"

/* Setting up: maps and touches everything that the replay needs, code included. */

enum { stack_bytes = 64 * 1024, calibration_pairs = 2000 };

/* A child that the allocator forks has none of these mappings. If it returns from the call, it ends at the next
 * operation, rather than carry out the operations beside this process. */
static void* map_fd(int fd, uint64_t bytes, int flags) {
  if (bytes == 0) return NULL;
  void* const mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, 0);
  if (mapped != MAP_FAILED) madvise(mapped, bytes, MADV_DONTFORK);
  return mapped;
}

/* Populated pages are in this process's page tables. A hypervisor may have tables of its own, which it fills in at the
 * first touch. Within the replay, these first touches took 20 ns a call. */
static void read_pages(const void* mapped, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; i += page_bytes) (void)*((const volatile char*)mapped + i);
}

static void write_pages(void* mapped, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; i += page_bytes) *((volatile char*)mapped + i) = 0;
}

static struct control* map_control(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0) return NULL;
  struct control* const control = map_fd(fd, (uint64_t)status.st_size, MAP_POPULATE);
  return control == MAP_FAILED ? NULL : control;
}

/* Touches code and constants of every object, so that their faults and pages are not measured. */
static int populate_object(struct dl_phdr_info* object, size_t info_bytes, void* unused) {
  (void)info_bytes;
  (void)unused;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* const segment = &object->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD || segment->p_flags & PF_W) continue;
    const uintptr_t begin = (object->dlpi_addr + segment->p_vaddr) & ~(uintptr_t)(page_bytes - 1);
    const uintptr_t end = object->dlpi_addr + segment->p_vaddr + segment->p_filesz;
    madvise((void*)begin, end - begin, MADV_POPULATE_READ);
  }
  return 0;
}

static void populate_stack(void) {
  volatile char bytes[stack_bytes];
  for (size_t i = 0; i < sizeof bytes; i += page_bytes) bytes[i] = 0;
}

/* Touches the end of each lane's stack, which is used first. The rest is touched if it is ever needed. */
static void populate_lane_stacks(char* stacks, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    char* const end = stacks + (uint64_t)(i + 1) * lane_stack_bytes;
    for (char* page = end - lane_stack_used_bytes; page < end; page += page_bytes) *(volatile char*)page = 0;
  }
}

/* The least duration of many pairs of readings, which nothing has interrupted. */
static uint64_t empty_pair_ticks(void) {
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < calibration_pairs; ++i) {
    const uint64_t begin = latency_clock();
    const uint64_t ticks = latency_clock() - begin;
    if (ticks < least) least = ticks;
  }
  return least;
}

static void open_latencies(struct replay* replay) {
  struct control* const control = replay->control;
  if (!control->latencies_offset) return;
  replay->latencies = (struct latencies*)((char*)control + control->latencies_offset);
  for (uint32_t i = 0; i < control->lane_count; ++i) {
    replay->latencies[i].random = i + 1;
    replay->latencies[i].countdown = latency_distance;
  }
  control->empty_ticks = empty_pair_ticks();
}

static int map_all(struct replay* replay, uint64_t operations_bytes) {
  const struct control* const control = replay->control;
  const uint32_t threads = control->lane_count - 1;
  replay->operations = map_fd(control->operations_fd, operations_bytes, MAP_POPULATE);
  replay->slots = map_fd(control->slots_fd, control->slot_count * sizeof(void*), MAP_POPULATE);
  replay->stacks = map_fd(control->stacks_fd, (uint64_t)threads * lane_stack_bytes, MAP_NORESERVE);
  if (control->pointers_fd >= 0)
    replay->pointers = map_fd(control->pointers_fd, control->pointer_count * sizeof(void*), MAP_POPULATE);
  if (control->drain_fd >= 0)
    replay->drained_slots = map_fd(control->drain_fd, control->drain_count * sizeof(uint32_t), MAP_POPULATE);
  const int mapped = replay->drained_slots != MAP_FAILED && replay->operations != MAP_FAILED &&
                     replay->slots != MAP_FAILED && replay->stacks != MAP_FAILED && replay->pointers != MAP_FAILED;
  if (!mapped) return errno;
  read_pages(replay->operations, operations_bytes);
  write_pages(replay->slots, control->slot_count * sizeof(void*));
  populate_lane_stacks(replay->stacks, threads);
  return 0;
}

static int set_up_verification(struct replay* replay) {
  const struct control* const control = replay->control;
  void* const shared = map_fd(control->verification_fd, sizeof(struct verification), MAP_POPULATE);
  return shared == MAP_FAILED ? errno : verify(&replay->calls, control->replaced, shared);
}

/* Whether the allocator has lowered a limit, so that the replay's memory cannot be mapped. */
static uint32_t has_lower_limits(const struct control* control) {
  static const int limits[] = {RLIMIT_AS, RLIMIT_DATA};
  for (size_t i = 0; i < sizeof limits / sizeof *limits; ++i) {
    struct rlimit limit;
    if (getrlimit(limits[i], &limit) == 0 && limit.rlim_cur < control->limits[i]) return 1;
  }
  return 0;
}

static void set_up(struct replay* replay, struct control* control) {
  char* const base = (char*)control;
  *replay = (struct replay){.control = control, .lanes = control_lanes(control), .thread_body = run_lane};
  if (control->recycles) replay->chunk_free = (uint8_t*)base + control->free_offset;
  control->setup_errno = map_all(replay, (uint64_t)control->chunk_count * chunk_words * sizeof(uint64_t));
  if (control->setup_errno == 0 && control->target == target_null) control->setup_errno = reserve_null_range();
  replay->calls = control->target == target_null ? null_calls() : completed_calls(control->replaced);
  if (control->gives_back && control->target != target_null)
    replay->give_back_calls = target_give_back_calls(control->counterparts);
  if (control->verification_fd >= 0 && control->setup_errno == 0) control->setup_errno = set_up_verification(replay);
  if (control->setup_errno != 0) control->limits_lowered = has_lower_limits(control);
  const int counts = control->counts_usable && control->target != target_null;
  if (!counts || !count_usable(&replay->calls, &control->usable_bytes)) control->usable_bytes = unknown_usable;
  schedule_open(&replay->schedule, control->spins, (uint32_t*)(void*)(base + control->epochs_offset),
                control->epoch_mask);
  open_latencies(replay);
  dl_iterate_phdr(populate_object, NULL);
  populate_stack();
  if (control->pace > 0) prctl(PR_SET_TIMERSLACK, 1UL);
  if (control->clock_recorded) await_new_threads_of(replay);
}

/* Stopping and measuring. */

static void wait_for_parent(struct control* control) {
  char byte = 'r';
  __atomic_store_n(&control->waits_for_parent, 1U, __ATOMIC_RELEASE);
  while (write(control->socket_fd, &byte, 1) < 0 && errno == EINTR) continue;
  ssize_t got;
  while ((got = read(control->socket_fd, &byte, 1)) < 0 && errno == EINTR) continue;
  if (got != 1) _exit(1);
  __atomic_store_n(&control->waits_for_parent, 0U, __ATOMIC_RELEASE);
}

static uint64_t kernel_ns(const struct rusage* usage) {
  return (uint64_t)usage->ru_stime.tv_sec * 1000000000 + (uint64_t)usage->ru_stime.tv_usec * 1000;
}

static void measure(struct replay* replay) {
  struct control* const control = replay->control;
  struct runner runner;
  struct rusage before, after;
  runner_open(&runner, replay, 0);
  if (control->clock_recorded) recorded_clock_settle();
  forget_clock_readings();
  getrusage(RUSAGE_SELF, &before);
  const uint64_t cpu_begin = clock_nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
  replay->begin_ns = monotonic_ns();
  const uint64_t tick_begin = replay->latencies ? latency_clock() : 0;
  run_lane(&runner);
  finish_threads(replay);
  if (control->clock_recorded) recorded_clock_settle();
  if (replay->latencies) control->clock_ticks = latency_clock() - tick_begin;
  control->wall_ns = monotonic_ns() - replay->begin_ns;
  control->cpu_ns = clock_nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin;
  getrusage(RUSAGE_SELF, &after);
  control->clock_read = (uint32_t)clock_was_read();
  control->clock_strays = recorded_clock_strays();
  control->stamps_watched = (uint32_t)other_clocks_are_watched();
  control->stamps_read = (uint32_t)other_clock_was_read();
  control->kernel_ns = kernel_ns(&after) - kernel_ns(&before);
  control->minor_faults = (uint64_t)(after.ru_minflt - before.ru_minflt);
  control->major_faults = (uint64_t)(after.ru_majflt - before.ru_majflt);
}

/* A handler notes the lane in which a fatal signal came. It then resets the signal to its default action, which ends
 * the process when the signal comes again. */

static struct control* control_of_handler;
static pid_t worker_pid;

static void note_fault(int number, siginfo_t* info, void* context) {
  (void)info;
  if (number == SIGSEGV && is_other_clock(context)) return;
  if (getpid() != worker_pid) _exit(1); /* a child that the allocator has forked */
  if (current_lane) control_of_handler->faulted_lane = current_lane;
  signal(number, SIG_DFL);
}

static void catch_faults(struct control* control) {
  static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT};
  const struct sigaction action = {.sa_sigaction = note_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
  control_of_handler = control;
  worker_pid = getpid();
  for (size_t i = 0; i < sizeof signals / sizeof *signals; ++i) {
    struct sigaction before;
    if (signals[i] == SIGTRAP && control->is_debugged) continue;
    if (sigaction(signals[i], NULL, &before) != 0 || before.sa_handler != SIG_DFL) continue;
    sigaction(signals[i], &action, NULL);
    if (signals[i] == SIGSEGV && control->clock_recorded && !control->latencies_offset) watch_other_clocks();
  }
}

/* Frees the blocks that the trace leaves live. The allocator keeps the memory that then stays resident for itself. */
static void drain(const struct replay* replay) {
  for (uint32_t i = 0; i < replay->control->drain_count; ++i) {
    void** const slot = &replay->slots[replay->drained_slots[i]];
    replay->calls.free(replay->control->several ? schedule_take_own_block(slot) : *slot);
    __atomic_store_n(&replay->control->calls_outside, replay->control->calls_outside + 1, __ATOMIC_RELAXED);
  }
}

static int run(int control_fd) {
  struct control* const control = map_control(control_fd);
  if (!control) return 1;
  static struct replay replay;
  set_up(&replay, control);
  catch_faults(control);
  wait_for_parent(control);
  measure(&replay);
  if (control->verification_fd >= 0) verify_end(control, &replay.calls);
  wait_for_parent(control);
  if (control->drain_fd >= 0) {
    drain(&replay);
    wait_for_parent(control);
  }
  return 0;
}

int main(int count, char** arguments) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (count > 1 && strcmp(arguments[1], "--ask") == 0) _exit(ask_settings(arguments + 2));
  if (count != 2 && count != 4) return 2;
  if (count == 4 && !use_prefix(arguments[2], arguments[3])) return 1;
  const int status = strcmp(arguments[1], "--probe") == 0 ? probe() : run(atoi(arguments[1]));
  _exit(status);
}
