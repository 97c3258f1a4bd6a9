/* Everything that the replay needs is mapped and faulted in before the start, code included, so that what changes in
 * the worker's anonymous memory from then on is the allocator's. */
#define _GNU_SOURCE
#include "set_up.h"

#include <errno.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "touch.h"
#include "usable.h"
#include "verify.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { stack_bytes = 64 * 1024, calibration_pairs = 2000 };

static void* map_fd(int fd, uint64_t bytes, int flags) {
  if (bytes == 0) return NULL;
  return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, 0);
}

struct control* map_control(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0) return NULL;
  struct control* const control = map_fd(fd, (uint64_t)status.st_size, MAP_POPULATE);
  return control == MAP_FAILED ? NULL : control;
}

/* Code and constants of every object, so that neither their faults nor their pages fall into the measurement. */
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

/* Of a lane's stack the end, where it begins. The rest is there if it is ever needed. */
static int populate_lane_stacks(char* stacks, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    char* const end = stacks + (uint64_t)(i + 1) * lane_stack_bytes;
    if (madvise(end - lane_stack_used_bytes, lane_stack_used_bytes, MADV_POPULATE_WRITE) == 0) continue;
    for (char* page = end - lane_stack_used_bytes; page < end; page += page_bytes) *(volatile char*)page = 0;
  }
  return 0;
}

/* The least of many: a pair that nothing came between. */
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
  return mapped ? populate_lane_stacks(replay->stacks, threads) : errno;
}

static int set_up_verification(struct replay* replay) {
  const struct control* const control = replay->control;
  void* const shared = map_fd(control->verification_fd, sizeof(struct verification), MAP_POPULATE);
  return shared == MAP_FAILED ? errno : verify(&replay->calls, control->replaced, shared);
}

void set_up(struct replay* replay, struct control* control) {
  char* const base = (char*)control;
  *replay = (struct replay){.control = control, .lanes = control_lanes(control)};
  if (control->recycles) replay->chunk_free = (uint8_t*)base + control->free_offset;
  control->setup_errno = map_all(replay, (uint64_t)control->chunk_count * chunk_words * sizeof(uint64_t));
  if (control->setup_errno == 0 && control->target == target_null) control->setup_errno = reserve_null_range();
  replay->calls = control->target == target_null ? null_calls() : completed_calls(control->replaced);
  if (control->verification_fd >= 0 && control->setup_errno == 0) control->setup_errno = set_up_verification(replay);
  const int counts = control->counts_usable && control->target != target_null;
  if (!counts || !count_usable(&replay->calls, &control->usable_bytes)) control->usable_bytes = unknown_usable;
  schedule_open(&replay->schedule, control->spins, (uint32_t*)(void*)(base + control->epochs_offset),
                control->epoch_mask);
  open_latencies(replay);
  dl_iterate_phdr(populate_object, NULL);
  populate_stack();
  if (control->pace > 0) prctl(PR_SET_TIMERSLACK, 1UL);
}
