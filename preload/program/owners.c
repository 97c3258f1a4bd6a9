// Writes the owners that owners.h reads inline, with one lock that nobody waits for: a signal handler may interrupt its
// holder.
#include "preload/program/owners.h"

#include <string.h>

enum { chunk_bytes = 256 * 1024, page_bytes = 1 << owner_page_bits, page_pieces = page_bytes / owner_piece_bytes };

struct OwnerGroup** owner_group_table;
uint64_t owners_shared;
size_t (*owners_usable_size)(void*);

/// Memory for pieces, and whether a thread is at it: others do without meanwhile, since they may be its signal handler.
static struct {
  uint32_t is_busy;
  bool is_exhausted;
  uint8_t* next;
  uint8_t* end;
  uint64_t* bytes;
} pool;

bool owners_prepare(void) {
  if (!owner_group_table) owner_group_table = sys_map_quietly(owner_groups * sizeof *owner_group_table);
  return owner_group_table != NULL;
}

void owners_begin_process(uint64_t* bytes) {
  must(bytes != NULL);
  if (pool.bytes) *bytes = *pool.bytes;  // of the parent, which are ours too
  pool.bytes = bytes;
  pool.is_exhausted = false;
  if (pool.is_busy) pool.next = pool.end = NULL;  // half changed by a thread that the child has not
  __atomic_store_n(&pool.is_busy, 0, __ATOMIC_RELEASE);
}

static void forget_group(struct OwnerGroup* group) {
  enum { dont_need = 4 };
  for (size_t i = 0; i < owner_group_regions; i++) {
    if (group->pieces[i]) sys(SYS_madvise, group->pieces[i], owner_region_pieces, dont_need);
  }
  for (size_t i = 0; i < owner_group_pages; i++) {
    if (group->pages[i] != 0) __atomic_store_n(&group->pages[i], 0, __ATOMIC_RELEASE);
  }
}

void owners_forget(void) {
  for (size_t i = 0; owner_group_table && i < owner_groups; i++) {
    if (owner_group_table[i]) forget_group(owner_group_table[i]);
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

// A signal handler may fork meanwhile, and the child's first event forgets the pool (owners_begin_process).
static uint8_t* new_pieces(void) {
  uint8_t* begin = pool.next;
  if (begin >= pool.end) {
    begin = map_memory(chunk_bytes);
    pool.end = begin ? begin + chunk_bytes - owner_region_pieces : NULL;  // owner_are_all() reads beyond
  }
  if (!begin) return NULL;
  pool.next = begin + owner_region_pieces;
  __atomic_fetch_add(pool.bytes, owner_region_pieces, __ATOMIC_RELAXED);
  return begin;
}

static struct OwnerGroup* create_group(uintptr_t address) {
  if (address >> owner_address_bits != 0 || __atomic_exchange_n(&pool.is_busy, 1, __ATOMIC_ACQUIRE)) return NULL;
  struct OwnerGroup** group = &owner_group_table[address >> owner_group_bits];
  if (!*group) __atomic_store_n(group, map_memory(sizeof **group), __ATOMIC_RELEASE);
  __atomic_store_n(&pool.is_busy, 0, __ATOMIC_RELEASE);
  return owner_group(address);
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

// Gives the page of `address` owners of its pieces, which all are as its owner was.
static bool split_page(struct OwnerGroup* group, uintptr_t address, uint8_t owner) {
  must(owner <= owners_max);
  uint8_t* page = &group->pages[owner_page_number(address)];
  uint8_t** pieces = &group->pieces[owner_region_number(address)];
  if (!__atomic_load_n(pieces, __ATOMIC_ACQUIRE)) create_pieces(pieces);
  if (!__atomic_load_n(pieces, __ATOMIC_ACQUIRE) ||
      !__atomic_compare_exchange_n(page, &owner, owners_changing, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    return false;
  fill(owner_pieces(group, address / page_bytes * page_bytes), page_pieces, owner);
  __atomic_store_n(page, owners_many, __ATOMIC_RELEASE);
  return true;
}

// Takes memory within one page.
static enum Ownership take_in_page(uint8_t self, uintptr_t address, size_t bytes) {
  must(bytes != 0 && address % page_bytes + bytes <= page_bytes);
  struct OwnerGroup* group = owner_group(address);
  if (!group) group = create_group(address);
  if (!group) return ownership_unnoted;
  uint8_t* page = &group->pages[owner_page_number(address)];
  uint8_t owner = __atomic_load_n(page, __ATOMIC_ACQUIRE);
  if (owner == self && self) return ownership_kept;
  if (owner == 0 && self && address % page_bytes == 0 &&
      __atomic_compare_exchange_n(page, &owner, self, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return ownership_changed;
  if (owner == owners_changing) return ownership_unnoted;
  if (owner != owners_many && !split_page(group, address, owner)) return ownership_unnoted;
  uint8_t* pieces = owner_pieces(group, address);
  const size_t count = (address % owner_piece_bytes + bytes + owner_piece_bytes - 1) / owner_piece_bytes;
  if (self && owner_are_all(pieces, count, self)) return ownership_kept;
  fill(pieces, count, self);
  return ownership_changed;
}

// Whole pages of a large block are nobody's. Pages that nobody has touched stay so without a write.
static void forget_pages(uintptr_t address, uintptr_t end) {
  for (; address < end; address += page_bytes) {
    struct OwnerGroup* group = owner_group(address);
    if (group && owner_page(group, address) != 0)
      __atomic_store_n(&group->pages[owner_page_number(address)], 0, __ATOMIC_RELEASE);
    if (!group) address |= ((uintptr_t)1 << owner_group_bits) - page_bytes;  // goes on at the next group
  }
}

static enum Ownership worse(enum Ownership a, enum Ownership b) { return a > b ? a : b; }

static enum Ownership take_range(uint8_t self, uintptr_t address, uint64_t size) {
  enum Ownership all = ownership_kept;
  const uintptr_t end = address + (size ? size : 1);
  must(self <= owners_max && address < end);
  while (address != end) {
    const uintptr_t page_end = (address / page_bytes + 1) * page_bytes;
    const uintptr_t until = end < page_end ? end : page_end;
    all = worse(all, take_in_page(self, address, until - address));
    address = until;
    if (end - address < owners_large) continue;
    forget_pages(address, end / page_bytes * page_bytes);
    address = end / page_bytes * page_bytes;
  }
  return all;
}

static bool may_be_shared(uintptr_t address, uint64_t size) {
  if (address % owner_piece_bytes != 0) {
    uint64_t known = __atomic_load_n(&owners_shared, __ATOMIC_RELAXED);
    if (size >= known) __atomic_store_n(&owners_shared, size + 1, __ATOMIC_RELAXED);
    return true;
  }
  return size < __atomic_load_n(&owners_shared, __ATOMIC_RELAXED);
}

// Whether a block ends beyond the addresses that have groups. An allocator that overflows may return such a block.
static bool is_beyond(uintptr_t address, uint64_t size) {
  return size >> owner_address_bits != 0 || (address + size) >> owner_address_bits != 0;
}

enum Ownership owners_take(uint8_t self, const void* block, uint64_t size) {
  const uintptr_t address = (uintptr_t)block;
  if (is_beyond(address, size)) return ownership_unnoted;
  if (may_be_shared(address, size)) self = 0;
  enum Ownership all = take_range(self, address, size);
  if (size >= owners_large) all = worse(all, take_in_page(0, address, 1));
  return all;
}

bool owners_are_others(uint8_t self, const void* block) {
  const uintptr_t address = (uintptr_t)block;
  const struct OwnerGroup* group = owner_group(address);
  uint8_t owner = group ? owner_page(group, address) : 0;
  if (owner == owners_many) owner = __atomic_load_n(owner_pieces(group, address), __ATOMIC_RELAXED);
  return owner != 0 && owner != self && owner <= owners_max;
}

enum Ownership owners_release(uint8_t self, const void* block, bool is_of_malloc) {
  const uintptr_t address = (uintptr_t)block;
  if (owners_include(self, block)) return ownership_kept;
  const uint64_t size = is_of_malloc && owners_usable_size ? owners_usable_size((void*)address) : 0;
  if (size == 0 || is_beyond(address, size)) return ownership_unnoted;
  return worse(ownership_changed, take_range(may_be_shared(address, size) ? 0 : self, address, size));
}
