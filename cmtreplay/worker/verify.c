/* Verifying: every call is checked while the trace is replayed.
 *
 * The worker's table of calls gets a second storey: each call here makes the call below, and looks at what came out.
 * So it verifies whatever the replay does, with as many threads. Nothing is stored inside or beside the blocks, where a
 * faulty allocator would break it, or it the allocator's faults:
 *
 * - A shadow of the address space, a bit a byte as AddressSanitizer has a byte for eight, says which bytes are in live
 *   blocks, usable ones included. A new block that has some of them overlaps. It is 16 TiB of reserved addresses, of
 *   which an eighth of the live heap is ever touched.
 * - A table of live blocks, open addressing by address, says of each how large it is and what was written to it.
 * - Every byte of a block is filled with a pattern of its own (a hash of its number and of the place), which has to be
 *   there when it is freed, and up to the smaller size when it is resized.
 *
 * A block leaves table and shadow before it is given to the allocator and enters them after it came from there. So no
 * other thread that rightly gets its memory meets it. One lock holds the two; the calls below run outside of it.
 *
 * A block that overlaps is not filled: the other one's contents are not to blame. Kept apart from timing: it costs a
 * write and a read of every byte and some 100 ns a call. */
#define _GNU_SOURCE
#include "verify.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum { page_bytes = 4096, natural_alignment_max = 16 };

enum call {
  call_malloc,
  call_free,
  call_calloc,
  call_realloc,
  call_reallocarray,
  call_aligned_alloc,
  call_posix_memalign,
  call_memalign,
  call_valloc,
  call_pvalloc
};

struct block {
  uintptr_t begin; /* 0: an empty place in the table */
  uint64_t size, usable;
  uint64_t seed; /* of its pattern; 0: nothing was written to it */
};

/* A call, as findings tell it. */
struct request {
  enum call call;
  uint64_t size, count, alignment;
};

static struct calls below;
static uint32_t stand_ins;
static struct verification* shared;
static size_t (*usable_size)(void*);

static int at_end;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t* shadow;
static struct block* table;
static uint64_t table_places, table_used, seed_next;

static int is_stand_in(enum call call) { return stand_ins >> call & 1; }

static void report(enum fault fault, const struct request* request, const void* address, uint64_t other) {
  const uint64_t index = __atomic_fetch_add(&shared->found, 1, __ATOMIC_RELAXED);
  if (index >= findings_max) return;
  struct finding* const finding = &shared->findings[index];
  *finding = (struct finding){.fault = fault,
                              .call = request->call,
                              .address = (uintptr_t)address,
                              .size = request->size,
                              .count = request->count,
                              .alignment = request->alignment,
                              .other = other};
  if (at_end)
    finding->position = finding_at_end;
  else
    verify_place(&finding->lane, &finding->position);
}

/* The shadow. */

static const uint64_t address_space_bytes = (uint64_t)1 << 47;

static uint8_t bits_from(unsigned first) { return (uint8_t)(0xff << first); }
static uint8_t bits_before(unsigned end) { return (uint8_t) ~(0xff << end); }

/* Sets or clears a range, or tells whether some of it is set. */
enum shading { shade, unshade, look };

static int shadow_range(enum shading what, uintptr_t begin, uint64_t bytes) {
  if (bytes == 0 || begin + bytes > address_space_bytes) return 0;
  const uintptr_t end = begin + bytes;
  int some = 0;
  for (uintptr_t at = begin / 8; at <= (end - 1) / 8; ++at) {
    uint8_t bits = 0xff;
    if (at == begin / 8) bits &= bits_from(begin % 8);
    if (at == end / 8) bits &= bits_before(end % 8);
    if (what == look && (shadow[at] & bits)) return 1;
    if (what == shade) shadow[at] |= bits;
    if (what == unshade) shadow[at] &= (uint8_t)~bits;
  }
  return some;
}

/* The table. */

static uint64_t hash(uint64_t value) {
  value ^= value >> 32;
  value *= 0xd6e8feb86659fd93u;
  value ^= value >> 32;
  return value * 0xd6e8feb86659fd93u;
}

static uint64_t place_of(uintptr_t begin) {
  uint64_t place = hash(begin) & (table_places - 1);
  while (table[place].begin && table[place].begin != begin) place = (place + 1) & (table_places - 1);
  return place;
}

static struct block* map_table(uint64_t places) {
  void* const map =
      mmap(NULL, places * sizeof(struct block), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return map == MAP_FAILED ? NULL : map;
}

/* Twice as many places. Where there is no memory for that it stays as full as it is. */
static void grow(void) {
  struct block* const old = table;
  const uint64_t old_places = table_places;
  struct block* const wider = map_table(old_places * 2);
  if (!wider) return;
  table = wider;
  table_places = old_places * 2;
  for (uint64_t i = 0; i < old_places; ++i) {
    if (old[i].begin) table[place_of(old[i].begin)] = old[i];
  }
  munmap(old, old_places * sizeof *old);
}

/* Takes a block out, and moves up those that stand behind it because of it. */
static struct block take(uintptr_t begin) {
  uint64_t hole = place_of(begin);
  const struct block taken = table[hole];
  if (!taken.begin) return taken;
  for (uint64_t place = (hole + 1) & (table_places - 1); table[place].begin; place = (place + 1) & (table_places - 1)) {
    const uint64_t wanted = hash(table[place].begin) & (table_places - 1);
    if (((place - wanted) & (table_places - 1)) < ((place - hole) & (table_places - 1))) continue;
    table[hole] = table[place];
    hole = place;
  }
  table[hole].begin = 0;
  --table_used;
  return taken;
}

/* A live block that has some of these bytes: looked for one by one, for a finding alone. */
static struct block other_block(uintptr_t begin, uint64_t bytes) {
  struct block other = {0};
  for (uint64_t i = 0; i < table_places && !other.begin; ++i) {
    const struct block* const block = &table[i];
    if (block->begin && block->begin < begin + bytes && begin < block->begin + block->usable) other = *block;
  }
  return other;
}

/* Patterns. */

static uint64_t pattern(uint64_t seed, uint64_t word) { return hash(seed + word) | 0x0101010101010101u; }

static void fill(char* bytes, uint64_t size, uint64_t seed) {
  for (uint64_t at = 0; at < size; at += 8) {
    const uint64_t word = pattern(seed, at);
    memcpy(bytes + at, &word, size - at < 8 ? size - at : 8);
  }
}

/* The first byte that is not as it was filled, or NULL. */
static const char* changed(const char* bytes, uint64_t size, uint64_t seed) {
  for (uint64_t at = 0; seed && at < size; at += 8) {
    const uint64_t word = pattern(seed, at);
    const uint64_t length = size - at < 8 ? size - at : 8;
    for (uint64_t i = 0; memcmp(bytes + at, &word, length) != 0 && i < length; ++i) {
      if (bytes[at + i] != ((const char*)&word)[i]) return bytes + at + i;
    }
  }
  return NULL;
}

static const char* not_zero(const char* bytes, uint64_t size) {
  for (uint64_t at = 0; at < size; ++at) {
    if (bytes[at]) return bytes + at;
  }
  return NULL;
}

/* Blocks come and go. */

static uint64_t bytes_of(const struct request* request) { return request->size * request->count; }

/* C wants any object that fits to be aligned; none needs more than 16. Nothing fits into no bytes. */
static uint64_t needed_alignment(const struct request* request) {
  if (is_stand_in(request->call) || bytes_of(request) == 0) return 1;
  if (request->alignment) return request->alignment;
  uint64_t alignment = natural_alignment_max;
  while (alignment > bytes_of(request)) alignment /= 2;
  return alignment;
}

static void check_overlap(const struct request* request, struct block* block) {
  const uint64_t bytes = block->size ? block->size : 1;
  if (!shadow_range(look, block->begin, bytes) && !table[place_of(block->begin)].begin) {
    if (!shadow_range(look, block->begin, block->usable)) return;
    report(fault_usable_other, request, (void*)block->begin, other_block(block->begin, block->usable).begin);
    block->usable = block->size;
    return;
  }
  const struct block other = other_block(block->begin, bytes);
  const int by_size = other.begin < block->begin + bytes && block->begin < other.begin + other.size;
  report(by_size ? fault_overlap : fault_usable_other, request, (void*)block->begin, other.begin);
  if (by_size) block->seed = 0;
}

static void enter(struct block* block, const struct request* request) {
  pthread_mutex_lock(&lock);
  if (request) check_overlap(request, block);
  if (++table_used > table_places / 2) grow();
  if (!block->seed && table[place_of(block->begin)].begin) {
    --table_used; /* the same address twice: the first stays */
  } else {
    table[place_of(block->begin)] = *block;
    shadow_range(shade, block->begin, block->usable);
  }
  pthread_mutex_unlock(&lock);
}

static struct block leave(void* address) {
  pthread_mutex_lock(&lock);
  const struct block block = address ? take((uintptr_t)address) : (struct block){0};
  if (block.begin) shadow_range(unshade, block.begin, block.usable);
  pthread_mutex_unlock(&lock);
  return block;
}

/* A block that was returned: it is looked at, filled and remembered. */
static void* came(void* address, const struct request* request) {
  if (!address) return NULL;
  struct block block = {.begin = (uintptr_t)address, .size = bytes_of(request), .usable = bytes_of(request)};
  const uint64_t alignment = needed_alignment(request);
  if (block.begin % alignment) {
    struct request told = *request;
    told.alignment = alignment;
    report(fault_misaligned, &told, address, 0);
  }
  if (usable_size) {
    const uint64_t usable = usable_size(address);
    if (usable < block.size)
      report(fault_usable, request, address, usable);
    else
      block.usable = usable;
  }
  block.seed = __atomic_fetch_add(&seed_next, (uint64_t)1 << 32, __ATOMIC_RELAXED);
  __atomic_fetch_add(&shared->blocks, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&shared->bytes, block.size, __ATOMIC_RELAXED);
  enter(&block, request);
  if (block.seed) fill(address, block.size, block.seed);
  return address;
}

static struct block went(void* address, enum call call) {
  const struct block block = leave(address);
  if (!block.begin) return block;
  const char* const wrong = changed(address, block.size, block.seed);
  if (wrong) report(fault_contents, &(struct request){call, block.size, 1, 0}, address, (uintptr_t)wrong);
  return block;
}

/* The calls. */

static void* checked_malloc(size_t size) {
  return came(below.malloc(size), &(struct request){call_malloc, size, 1, 0});
}

static void checked_free(void* address) {
  went(address, call_free);
  below.free(address);
}

static void checked_free_sized(void* address, size_t size, size_t alignment) {
  went(address, call_free);
  below.free_sized(address, size, alignment);
}

static void* checked_calloc(size_t count, size_t size) {
  const struct request request = {call_calloc, size, count, 0};
  void* const address = below.calloc(count, size);
  const char* const wrong = address ? not_zero(address, bytes_of(&request)) : NULL;
  if (wrong) report(fault_not_zero, &request, address, (uintptr_t)wrong);
  return came(address, &request);
}

/* What a realloc left of the old block. */
static void* resized(void* address, struct block old, const struct request* request) {
  const uint64_t size = bytes_of(request);
  if (!address && size && old.begin) {
    const char* const wrong = changed((char*)old.begin, old.size, old.seed);
    if (wrong) report(fault_lost, request, (void*)old.begin, (uintptr_t)wrong);
    enter(&old, NULL);
  } else if (address && old.begin && !is_stand_in(call_realloc)) {
    const char* const wrong = changed(address, old.size < size ? old.size : size, old.seed);
    if (wrong) report(fault_moved, request, address, (uintptr_t)wrong);
  }
  return came(address, request);
}

static void* checked_realloc(void* address, size_t size) {
  const struct request request = {call_realloc, size, 1, 0};
  const struct block old = went(address, call_realloc);
  return resized(below.realloc(address, size), old, &request);
}

static void* checked_reallocarray(void* address, size_t count, size_t size) {
  const struct request request = {call_reallocarray, size, count, 0};
  const struct block old = went(address, call_reallocarray);
  return resized(below.reallocarray(address, count, size), old, &request);
}

static void* checked_aligned_alloc(size_t alignment, size_t size) {
  return came(below.aligned_alloc(alignment, size), &(struct request){call_aligned_alloc, size, 1, alignment});
}

static int checked_posix_memalign(void** address, size_t alignment, size_t size) {
  const int error = below.posix_memalign(address, alignment, size);
  if (error == 0) came(*address, &(struct request){call_posix_memalign, size, 1, alignment});
  return error;
}

static void* checked_memalign(size_t alignment, size_t size) {
  return came(below.memalign(alignment, size), &(struct request){call_memalign, size, 1, alignment});
}

static void* checked_valloc(size_t size) {
  return came(below.valloc(size), &(struct request){call_valloc, size, 1, page_bytes});
}

static void* checked_pvalloc(size_t size) {
  return came(below.pvalloc(size), &(struct request){call_pvalloc, size, 1, page_bytes});
}

static const struct calls checked = {checked_malloc,         checked_free,         checked_calloc,
                                     checked_realloc,        checked_reallocarray, checked_aligned_alloc,
                                     checked_posix_memalign, checked_memalign,     checked_valloc,
                                     checked_pvalloc,        checked_free_sized};

int verify(struct calls* calls, uint32_t replaced, struct verification* verification) {
  const uint64_t shadow_bytes = address_space_bytes / 8;
  void* const map =
      mmap(NULL, shadow_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  table_places = 1 << 16;
  table = map_table(table_places);
  if (map == MAP_FAILED || !table) return errno;
  madvise(map, shadow_bytes, MADV_NOHUGEPAGE);
  shadow = map;
  below = *calls;
  stand_ins = replaced;
  shared = verification;
  seed_next = (uint64_t)1 << 32;
  usable_size = target_usable_size();
  shared->has_usable_size = usable_size != NULL;
  *calls = checked;
  return 0;
}

/* The end: blocks that the trace never frees, and what cannot be had. */

static void verify_live_blocks(void) {
  for (uint64_t i = 0; i < table_places; ++i) {
    const struct block* const block = &table[i];
    const char* const wrong = block->begin ? changed((char*)block->begin, block->size, block->seed) : NULL;
    if (wrong)
      report(fault_contents, &(struct request){call_free, block->size, 1, 0}, (void*)block->begin, (uintptr_t)wrong);
  }
}

static int is_null(const void* address, struct request request) {
  if (address) report(fault_impossible, &request, address, 0);
  return !address;
}

static void announce(enum call call) { __atomic_store_n(&shared->trying_impossible, call + 1U, __ATOMIC_RELEASE); }

/* What a realloc should refuse leaves its block as it was; one that does not takes it away, and ends this. */
static int refuses_huge(void* block, size_t size) {
  announce(call_malloc);
  is_null(below.malloc(size), (struct request){call_malloc, size, 1, 0});
  if (!is_stand_in(call_posix_memalign)) {
    void* aligned = NULL;
    announce(call_posix_memalign);
    if (below.posix_memalign(&aligned, 64, size) == 0)
      is_null(aligned, (struct request){call_posix_memalign, size, 1, 64});
  }
  if (is_stand_in(call_realloc)) return 1;
  announce(call_realloc);
  return is_null(below.realloc(block, size), (struct request){call_realloc, size, 1, 0});
}

static int refuses_product(void* block, size_t count, size_t size) {
  announce(call_calloc);
  is_null(below.calloc(count, size), (struct request){call_calloc, size, count, 0});
  if (is_stand_in(call_reallocarray) || is_stand_in(call_realloc)) return 1;
  announce(call_reallocarray);
  return is_null(below.reallocarray(block, count, size), (struct request){call_reallocarray, size, count, 0});
}

/* Sizes that no address space has, and products that leave 64 bits and come out small where nobody looks. */
static void verify_impossible(void* block) {
  static const size_t sizes[] = {(size_t)PTRDIFF_MAX + 1, SIZE_MAX - 64, SIZE_MAX};
  static const size_t factors[][2] = {{((size_t)1 << 63) + 1, 2}, {(size_t)1 << 32, (size_t)1 << 32}, {SIZE_MAX, 16}};
  for (int i = 0; i < 3; ++i) {
    if (!refuses_huge(block, sizes[i])) return;
    if (!refuses_product(block, factors[i][0], factors[i][1])) return;
  }
  const char* const wrong = changed(block, 100, 1);
  if (wrong) report(fault_lost, &(struct request){call_realloc, 100, 1, 0}, block, (uintptr_t)wrong);
  announce(call_free);
  below.free(block);
}

void verify_end(void) {
  at_end = 1;
  verify_live_blocks();
  announce(call_malloc);
  void* const block = below.malloc(100);
  if (block) {
    fill(block, 100, 1);
    verify_impossible(block);
  }
  __atomic_store_n(&shared->trying_impossible, 0, __ATOMIC_RELEASE);
}
