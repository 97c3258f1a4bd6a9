/// Which ring's events have touched each piece of the heap last: its *owner*. Where memory stays with its owner, the
/// order of the ring says all, and its events need no true stamp. Where memory changes hands, they do
/// (preload/protocol.h, "Stamps"; doc/design/sparse_stamps.md has the argument).
///
/// An owner is a ring's number plus 1, or 0 where nobody is known; then the next event has a true stamp. Each page of
/// the heap has one, as long as a single ring has touched it. When another one does, the page gets one for each 16
/// bytes. So memory that threads do not share costs 16 bytes for 64 KiB, other memory a sixteenth at most, and only
/// from the second thread on. An event cannot be noted without memory for that (a limit on address space, a
/// sandbox), or while another thread changes the page. Such an event raises Control::clock instead.
///
/// A live block is held as a whole by one ring, or not known at all. So the owner of its first 16 bytes is the owner of
/// all. The begin of a block that is older than the notes may be held with its page, and then the rest is not known.
/// The reason: a ring gets a page as a whole only with a block that covers the page's first byte. So no other block
/// reaches into the page from the page before. While a ring has a page as a whole, no other is known to have touched
/// any of it; so there blocks of any size are the ring's. Elsewhere these are not known:
///
///  - The begins of blocks of owners_large bytes and more. Both their events have true stamps, so that sums over
///    threads are right to within small blocks.
///
///  - Blocks that may share 16 bytes with others. These are all up to the size of the largest that was ever seen at an
///    address that is no multiple of 16.
///
///  - Memory that rings beyond the first owners_max touch.
///
/// Whoever touches memory has it from the allocator, whose own synchronization orders the touch after the one before.
/// So a byte for 16 bytes of the heap is written as it is. The owner of a page is claimed by compare-and-swap before
/// the stamp is taken, since others may use other blocks in the page. A forked child finds its parent's owners. A
/// ring of the child may have the number of one of the parent's. The shared number does no harm: no other ring of the
/// child has touched the memory.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined __SSE2__
#include <emmintrin.h>
#endif

#include "preload/program/kernel.h"

enum {
  owners_max = 250,  // rings that have an owner number of their own
  owners_large = 32768,
  owner_piece_bytes = 16,
  owner_page_bits = 12,
  owner_region_bits = 16,
  owner_group_bits = 31,    // of addresses with one table of pages: 2 GiB
  owner_address_bits = 47,  // of a process
  owner_region_pieces = (1 << owner_region_bits) / owner_piece_bytes,
  owner_group_pages = 1 << (owner_group_bits - owner_page_bits),
  owner_group_regions = 1 << (owner_group_bits - owner_region_bits),
  owner_groups = 1 << (owner_address_bits - owner_group_bits),
};

/// Values of OwnerGroup::pages that are no owners.
enum {
  owners_changing = 254,  // a thread is writing the owners of its pieces
  owners_many = 255,      // the pieces of the page have owners of their own
};

/// The owners of 2 GiB of addresses.
struct OwnerGroup {
  uint8_t pages[owner_group_pages];  ///< the owner of each page
  uint8_t beyond[8];                 ///< 0: the page after the last one belongs to the next group
  /// For each region the owners of its pieces of 16 bytes; NULL until one of its pages has several.
  uint8_t* pieces[owner_group_regions];
};

/// By the upper bits of the address; NULL: none yet. The table is mapped, because the loader could not load a library
/// with a table of that size where RLIMIT_DATA is small.
extern struct OwnerGroup** owner_group_table HIDDEN;
/// Blocks of fewer bytes may share 16 bytes.
extern uint64_t owners_shared HIDDEN;

/// The owner number of a ring; 0: it has none.
static inline uint8_t owner_of_ring(uint32_t ring) { return ring < owners_max ? (uint8_t)(ring + 1) : 0; }

/// The group of an address, or NULL.
static inline struct OwnerGroup* owner_group(uintptr_t address) {
  if (address >> owner_address_bits != 0) return NULL;
  return __atomic_load_n(&owner_group_table[address >> owner_group_bits], __ATOMIC_ACQUIRE);
}

/// The place of an address in OwnerGroup::pages, and in OwnerGroup::pieces.
static inline size_t owner_page_number(uintptr_t address) {
  return address >> owner_page_bits & (owner_group_pages - 1);
}
static inline size_t owner_region_number(uintptr_t address) {
  return address >> owner_region_bits & (owner_group_regions - 1);
}

static inline uint8_t owner_page(const struct OwnerGroup* group, uintptr_t address) {
  return __atomic_load_n(&group->pages[owner_page_number(address)], __ATOMIC_ACQUIRE);
}

/// Owners of the pieces from an address on. Only if a page of its region is held by many.
static inline uint8_t* owner_pieces(const struct OwnerGroup* group, uintptr_t address) {
  must(group->pieces[owner_region_number(address)] != NULL);
  return group->pieces[owner_region_number(address)] + address % (1 << owner_region_bits) / owner_piece_bytes;
}

/// Whether the ring has the pages of a block as a whole, which has `size` bytes; before the release of a block: 1. So
/// the event need not be noted. False: not known.
static inline bool owners_have_pages(uint8_t self, const void* block, uint64_t size) {
  const uintptr_t address = (uintptr_t)block;
  const struct OwnerGroup* group = owner_group(address);
  if (!group || !self || size - 1 >= 1 << owner_page_bits) return false;
  const size_t first = owner_page_number(address);
  const size_t last = first + ((address % (1 << owner_page_bits) + size - 1) >> owner_page_bits);
  return __atomic_load_n(&group->pages[first], __ATOMIC_ACQUIRE) == self &&
         __atomic_load_n(&group->pages[last], __ATOMIC_ACQUIRE) == self;
}

/// Maps the table, once. False: there is no memory.
bool owners_prepare(void);
/// In a process that begins. `bytes` counts the memory that pieces take.
void owners_begin_process(uint64_t* bytes);

/// Nobody is known to have touched any memory. No thread may record meanwhile.
void owners_forget(void);

/// Memory that an event touches.
enum Ownership {
  ownership_kept,     // it was the ring's, and is
  ownership_changed,  // it was another's, or unknown, and is the ring's or unknown now
  ownership_unnoted,  // as ownership_changed, but it could not be noted
};

/// After the allocation of a block.
enum Ownership owners_take(uint8_t self, const void* block, uint64_t size);
/// Before a block is given back, by free or realloc. `is_of_malloc`: the allocator may be asked for its size.
enum Ownership owners_release(uint8_t self, const void* block, bool is_of_malloc);

/// Whether another ring is the known owner of a block's begin.
bool owners_are_others(uint8_t self, const void* block);

/// Whether all of `count` bytes, 1 at least, are `self`.
static inline bool owner_are_all(const uint8_t* bytes, size_t count, uint8_t self) {
  must(count != 0);
#if defined CMT_SANITIZED || \
    !defined __SSE2__  // the sanitizer would see races in words of which other threads write other bytes
  size_t same = 0;
  while (same < count && __atomic_load_n(&bytes[same], __ATOMIC_RELAXED) == self) same++;
  return same == count;
#else  // reads up to 15 bytes more, for which there is room
  const __m128i wanted = _mm_set1_epi8((char)self);
  unsigned differing = 0;
  for (; count > 16; bytes += 16, count -= 16)
    differing |= (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128((const __m128i*)bytes), wanted)) ^ 0xffff;
  const __m128i same = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i*)bytes), wanted);
  return (differing | (~(unsigned)_mm_movemask_epi8(same) & ((1u << count) - 1))) == 0;
#endif
}

/// Whether a block that was allocated is the ring's, in a page of many. False: not known.
static inline bool owners_have_pieces(uint8_t self, const void* block, uint64_t size) {
  const uintptr_t address = (uintptr_t)block, end = address + size - 1;
  const struct OwnerGroup* group = owner_group(address);
  return group && self && address % owner_piece_bytes == 0 && size - 1 < 1 << owner_page_bits &&
         (address ^ end) >> owner_page_bits == 0 && size >= __atomic_load_n(&owners_shared, __ATOMIC_RELAXED) &&
         owner_page(group, address) == owners_many &&
         owner_are_all(owner_pieces(group, address), (size + owner_piece_bytes - 1) / owner_piece_bytes, self);
}

/// Whether a block that is about to be released is the ring's.
static inline bool owners_include(uint8_t self, const void* block) {
  const uintptr_t address = (uintptr_t)block;
  const struct OwnerGroup* group = owner_group(address);
  if (!group || !self) return false;
  const uint8_t owner = owner_page(group, address);
  if (owner != owners_many) return owner == self;
  return address % owner_piece_bytes == 0 && *owner_pieces(group, address) == self;
}

/// malloc_usable_size of the library that malloc is from, or NULL: for blocks that another ring releases.
extern size_t (*owners_usable_size)(void*) HIDDEN;
