#include "preload/program/holders.h"

#include <string.h>

enum { chunk_bytes = 256 * 1024, page_bytes = 1 << holder_page_bits, page_pieces = page_bytes / holder_piece_bytes };

struct HeldRegion* held_groups[holder_groups];
uint64_t holders_shared;
size_t (*holders_usable_size)(void*);

/// Memory for pieces, and whether a thread is at it: others do without meanwhile, since they may be its signal handler.
static struct {
  uint32_t is_busy;
  bool is_exhausted;
  uint8_t* next;
  uint8_t* end;
  uint64_t* bytes;
} pool;

void holders_begin_process(uint64_t* bytes) {
  if (pool.bytes) *bytes = *pool.bytes;  // of the parent, which are ours too
  pool.bytes = bytes;
  pool.is_exhausted = false;
  if (pool.is_busy) pool.next = pool.end = NULL;  // half changed by a thread that the child has not
  __atomic_store_n(&pool.is_busy, 0, __ATOMIC_RELEASE);
}

static void forget_region(struct HeldRegion* region) {
  enum { dont_need = 4 };
  if (region->pieces) sys(SYS_madvise, region->pieces, holder_region_pieces, dont_need);
  for (size_t i = 0; i < holder_region_pages; i++) {
    if (region->pages[i] != 0) __atomic_store_n(&region->pages[i], 0, __ATOMIC_RELEASE);
  }
}

void holders_forget(void) {
  for (size_t g = 0; g < holder_groups; g++) {
    for (size_t r = 0; held_groups[g] && r < holder_group_regions; r++) forget_region(&held_groups[g][r]);
  }
  pool.is_exhausted = false;
}

// Once there is no memory, it is not asked for at each event.
static void* map_memory(size_t bytes) {
  if (pool.is_exhausted) return NULL;
  void* begin = sys_map_quietly(bytes);
  pool.is_exhausted = !begin && !sandbox_entered;
  return begin;
}

static uint8_t* new_pieces(void) {
  if (pool.next == pool.end) {
    pool.next = map_memory(chunk_bytes);
    pool.end = pool.next ? pool.next + chunk_bytes - holder_region_pieces : NULL;  // held_are_all() reads beyond
  }
  if (!pool.next) return NULL;
  __atomic_fetch_add(pool.bytes, holder_region_pieces, __ATOMIC_RELAXED);
  return (pool.next += holder_region_pieces) - holder_region_pieces;
}

static struct HeldRegion* create_region(uintptr_t address, bool with_pieces) {
  if (address >> holder_address_bits != 0 || __atomic_exchange_n(&pool.is_busy, 1, __ATOMIC_ACQUIRE)) return NULL;
  struct HeldRegion** group = &held_groups[address >> holder_group_bits];
  if (!*group) __atomic_store_n(group, map_memory(holder_group_regions * sizeof **group), __ATOMIC_RELEASE);
  struct HeldRegion* region = held_region(address);
  if (region && with_pieces && !region->pieces) __atomic_store_n(&region->pieces, new_pieces(), __ATOMIC_RELEASE);
  __atomic_store_n(&pool.is_busy, 0, __ATOMIC_RELEASE);
  return region;
}

static void fill(uint8_t* bytes, size_t count, uint8_t self) {
#ifdef CMT_SANITIZED
  for (size_t i = 0; i < count; i++) __atomic_store_n(&bytes[i], self, __ATOMIC_RELAXED);
#else
  memset(bytes, self, count);
#endif
}

// Gives the page of `address` holders of its pieces, which all are as its holder was.
static bool split_page(struct HeldRegion* region, uintptr_t address, uint8_t holder) {
  uint8_t* page = &region->pages[held_page_number(address)];
  uint8_t* pieces = __atomic_load_n(&region->pieces, __ATOMIC_ACQUIRE);
  if (!pieces) {
    create_region(address, true);
    pieces = __atomic_load_n(&region->pieces, __ATOMIC_ACQUIRE);
  }
  if (!pieces ||
      !__atomic_compare_exchange_n(page, &holder, holders_changing, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    return false;
  fill(pieces + held_piece(address) / page_pieces * page_pieces, page_pieces, holder);
  __atomic_store_n(page, holders_many, __ATOMIC_RELEASE);
  return true;
}

// Of memory within one page.
static enum Holding take_in_page(uint8_t self, uintptr_t address, size_t bytes) {
  struct HeldRegion* region = held_region(address);
  if (!region) region = create_region(address, false);
  if (!region) return holding_unnoted;
  uint8_t* page = &region->pages[held_page_number(address)];
  uint8_t holder = __atomic_load_n(page, __ATOMIC_ACQUIRE);
  if (holder == self && self) return holding_kept;
  if (holder == 0 && self && address % page_bytes == 0 &&
      __atomic_compare_exchange_n(page, &holder, self, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return holding_changed;
  if (holder == holders_changing) return holding_unnoted;
  if (holder != holders_many && !split_page(region, address, holder)) return holding_unnoted;
  uint8_t* pieces = region->pieces + held_piece(address);
  const size_t count = (address % holder_piece_bytes + bytes + holder_piece_bytes - 1) / holder_piece_bytes;
  if (self && held_are_all(pieces, count, self)) return holding_kept;
  fill(pieces, count, self);
  return holding_changed;
}

// Whole pages of a large block are nobody's. Those that nobody has touched stay so without a write.
static void forget_pages(uintptr_t address, uintptr_t end) {
  for (; address < end; address += page_bytes) {
    struct HeldRegion* region = held_region(address);
    if (region && held_page(region, address) != 0)
      __atomic_store_n(&region->pages[held_page_number(address)], 0, __ATOMIC_RELEASE);
    if (!region) address |= ((uintptr_t)1 << holder_group_bits) - page_bytes;  // goes on at the next group
  }
}

static enum Holding worse(enum Holding a, enum Holding b) { return a > b ? a : b; }

static enum Holding take_range(uint8_t self, uintptr_t address, uint64_t size) {
  enum Holding all = holding_kept;
  const uintptr_t end = address + (size ? size : 1);
  while (address != end) {
    const uintptr_t page_end = (address / page_bytes + 1) * page_bytes;
    const uintptr_t until = end < page_end ? end : page_end;
    all = worse(all, take_in_page(self, address, until - address));
    address = until;
    if (end - address < holders_large) continue;
    forget_pages(address, end / page_bytes * page_bytes);
    address = end / page_bytes * page_bytes;
  }
  return all;
}

static bool may_be_shared(uintptr_t address, uint64_t size) {
  if (address % holder_piece_bytes != 0) {
    uint64_t known = __atomic_load_n(&holders_shared, __ATOMIC_RELAXED);
    if (size >= known) __atomic_store_n(&holders_shared, size + 1, __ATOMIC_RELAXED);
    return true;
  }
  return size < __atomic_load_n(&holders_shared, __ATOMIC_RELAXED);
}

enum Holding holders_take(uint8_t self, const void* block, uint64_t size) {
  const uintptr_t address = (uintptr_t)block;
  if (may_be_shared(address, size)) self = 0;
  enum Holding all = take_range(self, address, size);
  if (size >= holders_large) all = worse(all, take_in_page(0, address, 1));
  return all;
}

enum Holding holders_release(uint8_t self, const void* block, bool is_of_malloc) {
  const uintptr_t address = (uintptr_t)block;
  if (holders_keep(self, block)) return holding_kept;
  const uint64_t size = is_of_malloc && holders_usable_size ? holders_usable_size((void*)address) : 0;
  if (size == 0 || (address + size) >> holder_address_bits != 0) return holding_unnoted;
  return worse(holding_changed, take_range(may_be_shared(address, size) ? 0 : self, address, size));
}
