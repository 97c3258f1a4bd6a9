/* Calls made after the replay: aligned blocks side by side, and calls that have to fail. Programs rarely make those, so
 * few traces have one. An allocator that computes the size of a block from such a request often overflows:
 *
 *     pvalloc(SIZE_MAX - 64)          rounded up to whole pages, this is 0.
 *
 *     calloc(4, 2^60 + 25)            in 32 bits, this is 100.
 *
 *     memalign(4096, SIZE_MAX - 64)   size and alignment together are 4031.
 *
 * A call that fails returns NULL and sets errno to ENOMEM. EINVAL is also accepted from aligned_alloc, memalign, valloc
 * and pvalloc. posix_memalign returns its error. For a valid alignment above the page size, ENOMEM and EINVAL are both
 * accepted. On Linux it leaves the pointer as it was (posix_memalign(3)); POSIX allows NULL too.
 *
 * Not asked for: aligned_alloc and memalign with an alignment that is no power of two. glibc before 2.38 and tcmalloc
 * round it up, and only C17 forbids that. */
#include <errno.h>
#include <string.h>

#include "cmtreplay/worker/verify.h"

enum { small_bytes = 100, small_seed = 1 };

static const struct calls* library;
/* A bit for each call whose errno was reported, so that it is reported once, not for each size. */
static uint32_t wrong_errors;

static void* make(const struct block_request* request, void* old) {
  switch (request->call) {
    case call_malloc:
      return library->malloc(request->size);
    case call_calloc:
      return library->calloc(request->count, request->size);
    case call_realloc:
      return library->realloc(old, request->size);
    case call_reallocarray:
      return library->reallocarray(old, request->count, request->size);
    case call_aligned_alloc:
      return library->aligned_alloc(request->alignment, request->size);
    case call_memalign:
      return library->memalign(request->alignment, request->size);
    case call_valloc:
      return library->valloc(request->size);
    case call_pvalloc:
      return library->pvalloc(request->size);
    default:
      return NULL;
  }
}

static char* make_small_block(void) {
  verify_announce(&(struct block_request){call_malloc, small_bytes, 1, 0}, trying_other);
  char* const block = library->malloc(small_bytes);
  if (block) fill_pattern(block, small_bytes, small_seed);
  return block;
}

/* A realloc that failed must leave the block as it was. */
static void check_kept(char* block, const struct block_request* request) {
  const char* const wrong = first_changed(block, small_bytes, small_seed);
  if (wrong) verify_report(fault_lost, request, block, (uintptr_t)wrong);
  verify_announce(&(struct block_request){call_free, small_bytes, 1, 0}, trying_other);
  library->free(block);
}

static void check_errno(const struct block_request* request, int error) {
  const uint32_t bit = 1U << request->call;
  if (error == ENOMEM || (error == EINVAL && request->call >= call_aligned_alloc) || wrong_errors & bit) return;
  wrong_errors |= bit;
  verify_report(fault_error, request, NULL, (uint64_t)error);
}

/* A block that is returned is reported and not freed, because it may be invalid. */
static void refuses(struct block_request request) {
  if (verify_is_stand_in(request.call)) return;
  const int resizes = request.call == call_realloc || request.call == call_reallocarray;
  char* const old = resizes ? make_small_block() : NULL;
  if (resizes && !old) return;
  verify_announce(&request, trying_impossible);
  errno = 0;
  void* const block = make(&request, old);
  const int error = errno;
  if (block) {
    verify_report(fault_impossible, &request, block, 0);
    return;
  }
  check_errno(&request, error);
  if (resizes) check_kept(old, &request);
}

static void refuses_posix_memalign(size_t alignment, size_t size) {
  if (verify_is_stand_in(call_posix_memalign)) return;
  const struct block_request request = {call_posix_memalign, size, 1, alignment};
  void* const before = &wrong_errors; /* no block begins there */
  void* block = before;
  verify_announce(&request, trying_impossible);
  const int error = library->posix_memalign(&block, alignment, size);
  if (error == 0) {
    verify_report(fault_impossible, &request, block, 0);
    return;
  }
  if (block != before) verify_report(fault_pointer, &request, block, 0);
  const int valid = !(alignment & (alignment - 1)) && alignment >= sizeof(void*);
  const int expected = error == EINVAL ? !valid || alignment > page_bytes : error == ENOMEM && valid;
  if (!expected) verify_report(fault_error, &request, NULL, (uint64_t)error);
}

static void refuses_alignment(size_t alignment, size_t size) {
  refuses((struct block_request){call_aligned_alloc, size, 1, alignment});
  refuses((struct block_request){call_memalign, size, 1, alignment});
  refuses_posix_memalign(alignment, size);
}

static void refuses_size(size_t size) {
  refuses((struct block_request){call_malloc, size, 1, 0});
  refuses((struct block_request){call_realloc, size, 1, 0});
  refuses((struct block_request){call_valloc, size, 1, page_bytes});
  refuses((struct block_request){call_pvalloc, size, 1, page_bytes});
  refuses_alignment(64, size);
  refuses_alignment(page_bytes, size);
}

static void refuses_product(size_t count, size_t size) {
  refuses((struct block_request){call_calloc, size, count, 0});
  /* An emulated realloc copies nothing, and reallocarray may use it. */
  if (!verify_is_stand_in(call_realloc)) refuses((struct block_request){call_reallocarray, size, count, 0});
}

static void verify_refusals(const struct calls* calls) {
  /* No address space has so many bytes. Some overflow when rounded up or added to. The last one is 100 in its lower 32
   * bits. */
  static const size_t sizes[] = {(size_t)PTRDIFF_MAX + 1, SIZE_MAX - 64, SIZE_MAX, ((size_t)1 << 62) + small_bytes};
  /* The first three overflow 64 bits, the last one 32. */
  static const size_t factors[][2] = {{((size_t)1 << 63) + 1, 2},
                                      {(size_t)1 << 32, (size_t)1 << 32},
                                      {SIZE_MAX, 16},
                                      {4, ((size_t)1 << 60) + small_bytes / 4}};
  static const size_t invalid_alignments[] = {0, 3, sizeof(void*) / 2, 3 * sizeof(void*), SIZE_MAX};
  library = calls;
  for (int i = 0; i < 4; ++i) {
    refuses_size(sizes[i]);
    refuses_product(factors[i][0], factors[i][1]);
  }
  for (int i = 0; i < 5; ++i) refuses_posix_memalign(invalid_alignments[i], small_bytes);
  refuses_alignment((size_t)1 << 62, small_bytes); /* last: an allocator may search for a place without end */
  refuses_alignment((size_t)1 << 63, small_bytes);
}

/* Makes aligned blocks between others, and keeps all until the end, so that most are in fresh memory. Few traces have
 * such neighbours, and without them nobody notices that the usable bytes of an aligned block reach too far. */
static void verify_neighbours(const struct calls* calls) {
  enum { alignment_min = 32, alignments = 8, pairs = 8 };
  void* blocks[alignments * pairs * 2];
  int count = 0;
  for (size_t alignment = alignment_min; count < alignments * pairs * 2; ++count) {
    const struct block_request request = {count % 2 ? call_malloc : call_aligned_alloc, alignment, 1, alignment};
    verify_announce(&request, trying_other);
    blocks[count] = count % 2 ? calls->malloc(alignment) : calls->aligned_alloc(alignment, alignment);
    if (count % (pairs * 2) == pairs * 2 - 1) alignment *= 2;
  }
  while (count > 0) {
    verify_announce(&(struct block_request){call_free, 0, 1, 0}, trying_other);
    calls->free(blocks[--count]);
  }
}

void verify_end(struct control* control, const struct calls* calls) {
  const struct calls* const unchecked = verify_live_blocks(control);
  verify_neighbours(calls);
  verify_refusals(unchecked);
  verify_announce(&(struct block_request){0}, trying_nothing);
}
