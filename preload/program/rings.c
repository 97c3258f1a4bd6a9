// Creates, maps and replaces the memory of the rings, and hands rings to threads (rings.h).
#include "preload/program/rings.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statfs.h>

#include "preload/program/kernel.h"
#include "preload/program/settings.h"
#include "preload/program/thread.h"
#include "preload/stack_share.h"

enum { populate_write = 23 };  // MADV_POPULATE_WRITE, since Linux 5.14

static int descriptor = -1;

/// Addresses that rings had, and that nothing else gets.
static struct {
  bool is_wanted;
  void* begin;
  uint64_t bytes;
} kept;

void rings_keep_place(void) { kept.is_wanted = true; }

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

// The bytes of the slots of the first rings.
static uint64_t slots_bytes(uint32_t large, uint32_t rings) {
  const uint64_t first = rings < large ? rings : large;
  return (first * ring_slots_large + (rings - first) * ring_slots_small) * slot_bytes;
}

static uint64_t bytes_for(uint32_t large, uint32_t rings) {
  return rings_control_bytes(rings) + slots_bytes(large, rings);
}

// A sixteenth of a limited address space, and all that a file may have.
static uint64_t room_for_rings(void) {
  const uint64_t space = limit_of(RLIMIT_AS), file = limit_of(RLIMIT_FSIZE);
  const uint64_t room = space == RLIM_INFINITY ? space : space / 16;
  return file < room ? file : room;
}

static uint32_t rings_that_fit(uint64_t room, uint32_t* large) {
  *large = rings_large_max;
  if (bytes_for(rings_large_max, rings_max) <= room) return rings_max;
  *large = 0;
  uint32_t rings = rings_max;
  while (rings && bytes_for(0, rings) > room) rings /= 2;
  return rings;
}

static long open_file(char path[output_path_bytes]) {
  int process = (int)sys(SYS_getpid, 0);
  if (path_is_given(path_rings)) return path_create(path, path_rings, process, 0600);
  return sys(SYS_memfd_create, "cmttrace", 3 /* MFD_CLOEXEC | MFD_ALLOW_SEALING */);
}

// A file of CMTTRACE_RINGS has holes, and takes less of its volume than its length: rings_bytes_max for some 256
// threads. Where the volume has not even that much, the whole length has to fit.
static uint64_t room_of_volume(int fd, uint64_t stacks_bytes) {
  struct statfs volume;
  if (!path_is_given(path_rings) || sys(SYS_fstatfs, fd, &volume) != 0) return UINT64_MAX;
  const uint64_t room = (uint64_t)volume.f_bavail * (uint64_t)volume.f_bsize;
  const uint64_t used_max = rings_bytes_max + rings_control_bytes(rings_max) + stacks_bytes;
  return room >= used_max ? UINT64_MAX : room < rings_volume_min ? 0 : room;
}

static long fail_file(long fd, const char* path, long failed) {
  sys(SYS_close, fd);
  if (path_is_given(path_rings)) sys_unlink(path);
  return failed;
}

// Takes room on a volume. Returns -errno; 0 too where the file system or a filter of system calls cannot do it.
static long allocate(int fd, uint64_t at, uint64_t bytes) {
  long failed;
  do failed = sys(SYS_fallocate, fd, 0, at, bytes);
  while (failed == -EINTR);
  return failed == -EOPNOTSUPP || failed == -ENOSYS || failed == -EPERM ? 0 : failed;
}

static uint64_t in_pages(uint64_t bytes) { return (bytes + 4095) & ~(uint64_t)4095; }

// A mapping that does not fit the place takes another one, and the old place is given up.
static long map_file(int fd, uint64_t bytes) {
  const bool has_place = kept.is_wanted && bytes <= kept.bytes;
  const int flags = MAP_SHARED | MAP_NORESERVE | (has_place ? MAP_FIXED : 0);
  const long begin = sys(SYS_mmap, has_place ? kept.begin : NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (has_place || !kept.is_wanted || (begin < 0 && begin > -4096)) return begin;
  if (kept.begin) sys(SYS_munmap, kept.begin, kept.bytes);
  kept.begin = (void*)begin;
  kept.bytes = bytes;
  return begin;
}

long rings_map(struct Control** control, uint64_t stacks_bytes) {
  rings_close_descriptor();
  LARGE_VARIABLE static char path[output_path_bytes];
  const long fd = open_file(path);
  if (fd < 0) return fd;
  const uint64_t volume = room_of_volume((int)fd, stacks_bytes), limits = room_for_rings();
  const uint64_t room = limits < volume ? limits : volume;
  if (volume == 0) return fail_file(fd, path, -ENOSPC);
  if (stacks_bytes > room / 2) stacks_bytes = 0;
  uint32_t large, rings = rings_that_fit(room - in_pages(stacks_bytes), &large);
  const uint64_t rings_bytes = bytes_for(large, rings), bytes = rings_bytes + in_pages(stacks_bytes);
  if (rings == 0) return fail_file(fd, path, -EFBIG);
  must(rings <= rings_max && (large == 0 || large == rings_large_max));
  const long failed = sys(SYS_ftruncate, fd, bytes);
  if (failed) return fail_file(fd, path, failed);
  sys(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK);  // else the collector could end by SIGBUS
  const long begin = map_file((int)fd, bytes);
  if (begin < 0 && begin > -4096) return fail_file(fd, path, begin);
  sys(SYS_madvise, begin, bytes, MADV_DONTDUMP);
  const long refused = path_is_given(path_rings) ? allocate((int)fd, 0, rings_control_bytes(rings)) : 0;
  if (refused) {
    if (kept.begin != (void*)begin) sys(SYS_munmap, begin, bytes);
    return fail_file(fd, path, refused);
  }
  descriptor = (int)fd;
  *control = (struct Control*)begin;
  (*control)->bytes = bytes;
  (*control)->rings_limit = rings;
  (*control)->rings_large = large;
  (*control)->stacks_at = stacks_bytes ? rings_bytes : 0;
  if (path_is_given(path_rings)) memcpy((*control)->rings_path, path, sizeof path);  // new memory is zero
  memcpy((*control)->magic, ring_magic, sizeof(*control)->magic);
  return 0;
}

void rings_discard(const struct Control* control) {
  if (control && control->rings_path[0]) sys_unlink(control->rings_path);
}

void rings_forget(struct Control* control) {
  rings_close_descriptor();
  if (!control || control->magic[0] == 0) return;
  const uint64_t bytes = control->bytes;
  const uint32_t paused = control->paused;
  sys(SYS_mmap, control, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  control->bytes = bytes;
  control->paused = paused;
  kept.begin = NULL;  // the child's own rings have another place
  kept.bytes = 0;
}

struct UnrecordedCounts* rings_share_counts(struct Control* control) {
  if (!control || control->magic[0] == 0) return NULL;
  enum { in_page = offsetof(struct Control, unrecorded) % 4096 };
  static_assert(in_page + sizeof control->unrecorded <= 4096, "a page has both");
  // From 0 bytes on, mremap makes a second mapping of shared memory.
  const long page = sys(SYS_mremap, (uintptr_t)&control->unrecorded - in_page, 0, 4096, MREMAP_MAYMOVE);
  return page < 0 && page > -4096 ? NULL : (struct UnrecordedCounts*)((uintptr_t)page + in_page);
}

void rings_release_counts(const struct UnrecordedCounts* counts) {
  if (counts) sys(SYS_munmap, (uintptr_t)counts & ~(uintptr_t)4095, 4096);
}

// One call of mremap exchanges the mappings. The copy has the same rings as the original, so that no address in it
// leads outside.
long rings_detach(const struct Control* control) {
  const uint64_t bytes = control->bytes, rings = control->rings_used;
  const uint64_t used = rings_control_bytes((uint32_t)(rings < control->rings_limit ? rings : control->rings_limit));
  must(used <= bytes);
  const long copy = sys(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (copy < 0 && copy > -4096) return copy;
  sys(SYS_madvise, copy, bytes, MADV_DONTDUMP);
  memcpy((void*)copy, control, used);
  const long moved = sys(SYS_mremap, copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, control);
  if (moved == (long)control) return 0;
  sys(SYS_munmap, copy, bytes);
  return moved;
}

// Kernels that do not know the advice (before 5.14) back a page when it is written to.
static bool back_with_memory(char* begin, uint64_t bytes) {
  if (sandbox_entered) return true;
  long failed = sys(SYS_madvise, begin, bytes, populate_write);
  if (failed != -EINVAL) return failed == 0;
  for (uint64_t at = 0; at < bytes; at += 4096) __atomic_fetch_or((uint64_t*)(begin + at), 0, __ATOMIC_RELAXED);
  return true;
}

bool rings_back(char* begin, uint64_t bytes) {
  char* const page = (char*)((uintptr_t)begin & ~(uintptr_t)4095);
  return back_with_memory(page, bytes + (uint64_t)(begin - page));
}

// Whether the kernel refuses memory beyond a limit: the first write to a page of a file would then end the program.
static bool is_memory_limited(void) {
  static char mode;
  if (mode) return mode == '2';
  mode = '2';
  const long file = sys_open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
  if (file < 0) return true;
  sys(SYS_read, file, &mode, 1);
  sys(SYS_close, file);
  return mode == '2';
}

// Whether a write to the memory cannot fail. A disk may be full, and memory may be limited. Else each first write takes
// a page, as in the program's own memory.
static bool reserve(uint64_t at, uint64_t bytes) {
  if (descriptor < 0) return false;
  return (!path_is_given(path_rings) && !is_memory_limited()) || sys(SYS_fallocate, descriptor, 0, at, bytes) == 0;
}

void* rings_map_stacks(const struct Control* control, void* address) {
  if (!control->stacks_at) return NULL;
  must(descriptor >= 0 && control->stacks_at < control->bytes);
  const uint64_t bytes = control->bytes - control->stacks_at;
  char* place = (char*)control + control->stacks_at;
  const uint64_t used = offsetof(struct StackShare, interpreter);
  if (!reserve(control->stacks_at, used) && !back_with_memory(place, used)) return NULL;
  if (!address) return place;
  const long mapped =
      sys(SYS_mmap, address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, control->stacks_at);
  if (mapped != (long)address) return NULL;
  sys(SYS_madvise, address, bytes, MADV_DONTDUMP);
  return address;
}

// Before Linux 5.14 a page of a file is backed by a write to it, which on a full volume ends the program.
static bool has_room(const struct Control* control, uint64_t bytes) {
  struct statfs volume;
  if (sandbox_entered || sys(SYS_statfs, control->rings_path, &volume) != 0) return true;
  return (uint64_t)volume.f_bavail * (uint64_t)volume.f_bsize >= bytes;
}

static bool open_ring(struct Control* control, uint32_t number, uint32_t owner) {
  struct Ring* ring = ring_at(control, number);
  const bool is_large = number < control->rings_large;
  ring->slots_at = rings_control_bytes(control->rings_limit) + slots_bytes(control->rings_large, number);
  ring->slots = is_large ? ring_slots_large : ring_slots_small;
  must(number < control->rings_limit && owner != 0);
  must((ring->slots & (ring->slots - 1)) == 0 && ring->slots_at + ring->slots * slot_bytes <= control->bytes);
  uint64_t first = !is_large || number >= rings_roomy ? ring_slots_crowded : ring_slots_at_rest;
  // The first thread fills its ring before the collector has started.
  // A volume may become full at any time: a ring in a file gets all of its room at once. A failed fallocate(2) takes
  // pages back that an earlier one has given, unless they were written to.
  if (path_is_given(path_rings)) {
    first = ring->slots;
    if (!has_room(control, first * slot_bytes)) return false;
  }
  if (number == 0 && !path_is_given(path_rings) && reserve(ring->slots_at, ring->slots * slot_bytes))
    first = ring->slots;
  else if (!back_with_memory((char*)control + ring->slots_at, first * slot_bytes))
    return false;
  must(first <= ring->slots);
  ring->limit = first;
  ring->soft = first / 2;
  __atomic_store_n(&ring->owner, owner, __ATOMIC_RELEASE);
  return true;
}

static bool is_gone(const struct Control* control, uint32_t thread) {
  return !sandbox_entered && sys(SYS_tgkill, control->process, thread, 0) == -ESRCH;
}

// The kernel's id of the thread; in a sandbox, an address in the thread's memory, with a bit that no id has.
static uint32_t own_id(void) {
  if (sandbox_entered) return (uint32_t)1 << 31 | (uint32_t)((uintptr_t)&thread_self >> 6);
  return (uint32_t)sys(SYS_gettid, 0);
}

static bool take_over(const struct Control* control, struct Ring* ring, uint32_t self) {
  uint32_t owner = __atomic_load_n(&ring->owner, __ATOMIC_ACQUIRE);
  if (owner == 0 || (owner != self && !is_gone(control, owner))) return false;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);  // what the thread that is gone has written to the ring
  return __atomic_compare_exchange_n(&ring->owner, &owner, self, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

// `any`: also of a thread that has not recorded its exit.
static struct Ring* take_over_one(struct Control* control, uint32_t self, bool any) {
  uint32_t used = __atomic_load_n(&control->rings_used, __ATOMIC_ACQUIRE);
  if (used > control->rings_limit) used = control->rings_limit;
  for (uint32_t i = 0; i < used; i++) {
    struct Ring* ring = ring_at(control, i);
    if ((any || __atomic_load_n(&ring->left, __ATOMIC_ACQUIRE)) && take_over(control, ring, self)) return ring;
  }
  return NULL;
}

struct Ring* rings_claim(struct Control* control) {
  const uint32_t self = own_id();
  struct Ring* ring = take_over_one(control, self, false);
  if (ring) return ring;
  uint32_t fresh = __atomic_fetch_add(&control->rings_used, 1, __ATOMIC_ACQ_REL);
  if (fresh < control->rings_limit) return open_ring(control, fresh, self) ? ring_at(control, fresh) : NULL;
  __atomic_fetch_sub(&control->rings_used, 1, __ATOMIC_ACQ_REL);
  return take_over_one(control, self, true);
}
