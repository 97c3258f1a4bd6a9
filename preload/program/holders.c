#include "preload/program/holders.h"

#include <string.h>

enum { chunk_bytes = 256 * 1024, page_bytes = 1 << holder_page_bits, page_pieces = page_bytes / holder_piece_bytes };

struct HeldGroup* held_groups[holder_groups];
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

static void forget_group(struct HeldGroup* group) {
  enum { dont_need = 4 };
  for (size_t i = 0; i < holder_group_regions; i++) {
    if (group->pieces[i]) sys(SYS_madvise, group->pieces[i], holder_region_pieces, dont_need);
  }
  for (size_t i = 0; i < holder_group_pages; i++) {
    if (group->pages[i] != 0) __atomic_store_n(&group->pages[i], 0, __ATOMIC_RELEASE);
  }
}

void holders_forget(void) {
  for (size_t i = 0; i < holder_groups; i++) {
    if (held_groups[i]) forget_group(held_groups[i]);
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

static struct HeldGroup* create_group(uintptr_t address) {
  if (address >> holder_address_bits != 0 || __atomic_exchange_n(&pool.is_busy, 1, __ATOMIC_ACQUIRE)) return NULL;
  struct HeldGroup** group = &held_groups[address >> holder_group_bits];
  if (!*group) __atomic_store_n(group, map_memory(sizeof **group), __ATOMIC_RELEASE);
  __atomic_store_n(&pool.is_busy, 0, __ATOMIC_RELEASE);
  return held_group(address);
}

static void create_pieces(uint8_t** pieces) {
  if (__atomic_exchange_n(&pool.is_busy, 1, __ATOMIC_ACQUIRE)) return;
  if (!*pieces) __atomic_store_n(pieces, new_pieces(), __ATOMIC_RELEASE);
  __atomic_store_n(&pool.is_busy, 0, __ATOMIC_RELEASE);
}

static void fill(uint8_t* bytes, size_t count, uint8_t self) {
#ifdef CMT_SANITIZED
  for (size_t i = 0; i < count; i++) __atomic_store_n(&bytes[i], self, __ATOMIC_RELAXED);
#else
  memset(bytes, self, count);
#endif
}

// Gives the page of `address` holders of its pieces, which all are as its holder was.
static bool split_page(struct HeldGroup* group, uintptr_t address, uint8_t holder) {
  uint8_t* page = &group->pages[held_page_number(address)];
  uint8_t** pieces = &group->pieces[held_region_number(address)];
  if (!__atomic_load_n(pieces, __ATOMIC_ACQUIRE)) create_pieces(pieces);
  if (!__atomic_load_n(pieces, __ATOMIC_ACQUIRE) ||
      !__atomic_compare_exchange_n(page, &holder, holders_changing, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    return false;
  fill(held_pieces(group, address / page_bytes * page_bytes), page_pieces, holder);
  __atomic_store_n(page, holders_many, __ATOMIC_RELEASE);
  return true;
}

// Of memory within one page.
static enum Holding take_in_page(uint8_t self, uintptr_t address, size_t bytes) {
  struct HeldGroup* group = held_group(address);
  if (!group) group = create_group(address);
  if (!group) return holding_unnoted;
  uint8_t* page = &group->pages[held_page_number(address)];
  uint8_t holder = __atomic_load_n(page, __ATOMIC_ACQUIRE);
  if (holder == self && self) return holding_kept;
  if (holder == 0 && self && address % page_bytes == 0 &&
      __atomic_compare_exchange_n(page, &holder, self, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return holding_changed;
  if (holder == holders_changing) return holding_unnoted;
  if (holder != holders_many && !split_page(group, address, holder)) return holding_unnoted;
  uint8_t* pieces = held_pieces(group, address);
  const size_t count = (address % holder_piece_bytes + bytes + holder_piece_bytes - 1) / holder_piece_bytes;
  if (self && held_are_all(pieces, count, self)) return holding_kept;
  fill(pieces, count, self);
  return holding_changed;
}

// Whole pages of a large block are nobody's. Those that nobody has touched stay so without a write.
static void forget_pages(uintptr_t address, uintptr_t end) {
  for (; address < end; address += page_bytes) {
    struct HeldGroup* group = held_group(address);
    if (group && held_page(group, address) != 0)
      __atomic_store_n(&group->pages[held_page_number(address)], 0, __ATOMIC_RELEASE);
    if (!group) address |= ((uintptr_t)1 << holder_group_bits) - page_bytes;  // goes on at the next group
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

bool holders_are_others(uint8_t self, const void* block) {
  const uintptr_t address = (uintptr_t)block;
  const struct HeldGroup* group = held_group(address);
  uint8_t holder = group ? held_page(group, address) : 0;
  if (holder == holders_many) holder = __atomic_load_n(held_pieces(group, address), __ATOMIC_RELAXED);
  return holder != 0 && holder != self && holder <= holders_max;
}

enum Holding holders_release(uint8_t self, const void* block, bool is_of_malloc) {
  const uintptr_t address = (uintptr_t)block;
  if (holders_have(self, block)) return holding_kept;
  const uint64_t size = is_of_malloc && holders_usable_size ? holders_usable_size((void*)address) : 0;
  if (size == 0 || (address + size) >> holder_address_bits != 0) return holding_unnoted;
  return worse(holding_changed, take_range(may_be_shared(address, size) ? 0 : self, address, size));
}
