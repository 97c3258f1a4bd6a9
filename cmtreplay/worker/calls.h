/* The calls of an allocator as a table of functions: those of the library under test, the null allocator's, stand-ins
 * for missing calls, and calls that are counted or checked. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cmtreplay/protocol.h"
#include "cmtreplay/worker/live_blocks.h"

struct calls {
  void* (*malloc)(size_t);
  void (*free)(void*);
  void* (*calloc)(size_t, size_t);
  void* (*realloc)(void*, size_t);
  void* (*reallocarray)(void*, size_t, size_t);
  void* (*aligned_alloc)(size_t, size_t);
  int (*posix_memalign)(void**, size_t, size_t);
  void* (*memalign)(size_t, size_t);
  void* (*valloc)(size_t);
  void* (*pvalloc)(size_t);
  void (*free_sized)(void*, size_t size, size_t alignment); /* alignment 1: none was stated */
};

/* The library under test (target.c). Its calls are from now on PREFIXmalloc and so on of a preloaded library. Returns 0
 * where that is not loaded. */
int use_prefix(const char* prefix, const char* library);

/* Its calls; NULL for one that it lacks under a prefix. Without a prefix they are the process's: those of the preloaded
 * library, or libc's. */
struct calls target_calls(void);

/* malloc_usable_size, or the library's name for it; NULL where it has none of its own. */
typedef size_t usable_size_call(void*);
usable_size_call* target_usable_size(void);

/* The library's sized free, or NULL. Alignment 1: none was stated. */
typedef void sized_free_call(void*, size_t size, size_t alignment);
sized_free_call* target_sized_free(void);

/* The library's calls that give memory back (give_back.c). */
struct give_back_calls {
  int (*malloc_trim)(size_t pad); /* or what comes near: gives back what is free. NULL: it has nothing of the kind */
  int (*mallopt)(int parameter, int value);
  int (*mallctl)(const char* name, void* old, size_t* old_bytes, void* value, size_t value_bytes);
};
struct give_back_calls target_give_back_calls(void);

enum give_back_result { give_back_done, give_back_failed, give_back_missing };

/* `words`: the arguments of a control_give_back. */
enum give_back_result call_give_back(const struct give_back_calls* calls, enum give_back call, const uint64_t* words);

/* A function of the library under its prefix, or NULL; and whether a function is of the library that has its malloc. */
void* target_function(const char* name);
int is_of_target(const void* function);

/* Prints where malloc and the other calls come from, and which objects are loaded. Returns an exit status. */
int probe(void);

/* The calls of the library under test. Bit i of `replaced` says that the library lacks call i, which is then emulated
 * by those that it has: a library of malloc and free alone must not be mixed with libc's calloc. Emulated, alignment is
 * not kept unless there is a posix_memalign, realloc copies nothing, and free does nothing. */
struct calls completed_calls(uint32_t replaced);

/* The null allocator returns distinct addresses of a reserved range that is never touched. Returns an errno, or 0. */
int reserve_null_range(void);
struct calls null_calls(void);

/* A call and its arguments; count 1 and alignment 0 where it has none. */
struct block_request {
  enum call call;
  uint64_t size, count, alignment;
};

/* Called before a block is given back to the allocator, and with the result of each call that makes one; `old` is then
 * what was returned before, or zeros. */
struct call_observer {
  struct live_block (*before)(void* block, enum call call);
  void (*after)(void* block, const struct live_block* old, const struct block_request* request);
};

/* Replaces the calls by ones that are observed, on as many threads. One observer at a time. */
void observe_calls(struct calls* calls, const struct call_observer* observer);

/* Each call adds the block's usable size to `total` or takes it off. Returns 0, and changes nothing, where the library
 * does not tell usable sizes. */
int count_usable(struct calls* calls, uint64_t* total);

/* Each call is checked (verify.c). `replaced` as in completed_calls: stand-ins promise less. Returns an errno where
 * there is not enough address space, else 0. */
int verify(struct calls* calls, uint32_t replaced, struct verification* shared);

/* After the replay, on one thread: checks the blocks that were never freed, and makes requests that cannot be met. */
void verify_end(struct control* control);
