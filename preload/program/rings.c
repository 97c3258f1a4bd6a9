// One file without a name (memfd), or with one if it is to survive the machine's fault (CMTTRACE_RINGS), sparse:
// control block, 512 rings of 256 KiB, 12,288 of 16 KiB. Mapping it as a whole at the start costs addresses only, and
// no descriptor has to be kept open that a program could close. Where addresses or file sizes are limited (RLIMIT_AS,
// RLIMIT_FSIZE: a file that is made longer than allowed is a signal), it is a few rings of 16 KiB.
//
// A memfd does not count against /dev/shm. Places that a thread may write are backed before, so that a lack of memory
// is an error here or in the collector, and no SIGBUS there.
#include "preload/program/rings.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "preload/program/name.h"
#include "preload/program/sandbox.h"
#include "preload/program/sys.h"

enum { populate_write = 23 };  // MADV_POPULATE_WRITE, since Linux 5.14

static int descriptor = -1;

int rings_descriptor(void) { return descriptor; }

void rings_close_descriptor(void) {
  if (descriptor >= 0) sys(SYS_close, descriptor);
  descriptor = -1;
}

static uint64_t limit_of(int resource) {
  struct rlimit limit;
  if (sys(SYS_prlimit64, 0, resource, 0, &limit) != 0) return RLIM_INFINITY;
  return limit.rlim_cur;
}

static uint64_t bytes_for(uint32_t large, uint32_t all) {
  return rings_control_bytes(all) + (uint64_t)large * ring_slots_big * slot_bytes +
         (uint64_t)(all - large) * ring_slots_small * slot_bytes;
}

// A sixteenth of a limited address space, and all of what a file may have.
static uint32_t rings_that_fit(uint32_t* large) {
  uint64_t space = limit_of(RLIMIT_AS), file = limit_of(RLIMIT_FSIZE);
  uint64_t room = space == RLIM_INFINITY ? space : space / 16;
  if (file < room) room = file;
  *large = rings_big;
  if (bytes_for(rings_big, rings_max) <= room) return rings_max;
  *large = 0;
  uint32_t rings = rings_max;
  while (rings && bytes_for(0, rings) > room) rings /= 2;
  return rings;
}

static long open_file(char path[path_bytes_max]) {
  int process = (int)sys(SYS_getpid, 0);
  path[0] = 0;
  if (name_is_given(name_rings)) return name_create(path, name_rings, process, 0600);
  return sys(SYS_memfd_create, "cmttrace", 1 /* MFD_CLOEXEC */);
}

static long make_file(char path[path_bytes_max], uint64_t bytes) {
  long fd = open_file(path);
  if (fd < 0) return fd;
  long failed = sys(SYS_ftruncate, fd, bytes);
  if (failed) sys(SYS_close, fd);
  return failed ? failed : fd;
}

long rings_map(struct Control** control) {
  uint32_t large, rings = rings_that_fit(&large);
  uint64_t bytes = bytes_for(large, rings);
  if (rings == 0) return -EFBIG;
  rings_close_descriptor();
  static char path[path_bytes_max];
  long fd = make_file(path, bytes);
  if (fd < 0) return fd;
  long begin = sys(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (begin < 0 && begin > -4096) {
    sys(SYS_close, fd);
    return begin;
  }
  sys(SYS_madvise, begin, bytes, MADV_DONTDUMP);
  descriptor = (int)fd;
  *control = (struct Control*)begin;
  (*control)->bytes = bytes;
  (*control)->rings_limit = rings;
  (*control)->rings_large = large;
  __builtin_memcpy((*control)->rings_path, path, sizeof path);
  __builtin_memcpy((*control)->magic, ring_magic, 8);
  return 0;
}

void rings_discard(const struct Control* control) {
  if (control && control->rings_path[0]) sys(SYS_unlink, control->rings_path);
}

void rings_forget(const struct Control* control) {
  rings_close_descriptor();
  if (!control) return;
  sys(SYS_mmap, control, control->bytes, PROT_READ | PROT_WRITE,
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

// Older kernels than the one that knows the advice write to each page themselves.
static bool back(char* begin, uint64_t bytes) {
  if (sandbox_entered) return true;
  long failed = sys(SYS_madvise, begin, bytes, populate_write);
  if (failed != -EINVAL) return failed == 0;
  for (uint64_t at = 0; at < bytes; at += 4096) __atomic_fetch_or((uint64_t*)(begin + at), 0, __ATOMIC_RELAXED);
  return true;
}

// The first thread fills its ring before the collector has started. What is reserved takes no memory of the process
// until it is written.
static bool reserve_whole(const struct Ring* ring) {
  return descriptor >= 0 && sys(SYS_fallocate, descriptor, 0, ring->slots_at, ring->slots * slot_bytes) == 0;
}

bool rings_open(struct Control* control, uint32_t number, uint32_t owner) {
  struct Ring* ring = ring_at(control, number);
  bool large = number < control->rings_large;
  uint32_t slots_large = control->rings_large;
  uint64_t before = large
                        ? (uint64_t)number * ring_slots_big
                        : (uint64_t)slots_large * ring_slots_big + (uint64_t)(number - slots_large) * ring_slots_small;
  ring->slots_at = rings_control_bytes(control->rings_limit) + before * slot_bytes;
  ring->slots = large ? ring_slots_big : ring_slots_small;
  uint64_t first = !large || number >= rings_roomy ? ring_slots_crowded : ring_slots_at_rest;
  if (number == 0 && reserve_whole(ring))
    first = ring->slots;
  else if (!back((char*)control + ring->slots_at, first * slot_bytes))
    return false;
  ring->limit = first;
  ring->soft = first / 2;
  __atomic_store_n(&ring->owner, owner, __ATOMIC_RELEASE);
  return true;
}
