/* The calls of an allocator as a table of functions. There are four kinds: the calls of the library under test, those
 * of the null allocator, emulations of missing calls, and calls that are counted or checked. */
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

/* The library under test (target.c).
 *
 * From now on its calls are PREFIXmalloc and so on of a preloaded library. Returns 0 if that is not loaded. */
int use_prefix(const char* prefix, const char* library);

/* The calls of the library under test. With a prefix, a call that it lacks is NULL. Without a prefix they are the
 * process's: those of the preloaded library, or libc's. */
struct calls target_calls(void);

/* The library's malloc_usable_size, whatever its name; NULL if the library has none of its own. */
typedef size_t usable_size_call(void*);
usable_size_call* target_usable_size(void);

/* The library's sized free, or NULL. Alignment 1: none was stated. */
typedef void sized_free_call(void*, size_t size, size_t alignment);
sized_free_call* target_sized_free(void);

/* The library's calls that give memory back (give_back.c). */
struct give_back_calls {
  int (*malloc_trim)(size_t pad); /* or the like: gives free memory back. NULL: the library has no such call */
  int (*mallopt)(int parameter, int value);
  int (*mallctl)(const char* name, void* old, size_t* old_bytes, void* value, size_t value_bytes);
  int counterparts; /* a mallctl that purges becomes a malloc_trim, if there is no mallctl */
};
/* `counterparts`: 0: the calls that a program reaches if the library is preloaded into it. */
struct give_back_calls target_give_back_calls(int counterparts);

enum give_back_result { give_back_done, give_back_failed, give_back_missing };

/* `words`: the arguments of a control_give_back. */
enum give_back_result call_give_back(const struct give_back_calls* calls, enum give_back call, const uint64_t* words);

/* A function of the library under its prefix, or NULL; and whether a function is of the library that has its malloc. */
void* target_function(const char* name);
int is_of_target(const void* function);

/* Prints where malloc and the other calls come from, and which objects are loaded. Returns an exit status. */
int probe(void);

/* Prints "NAME VALUE" for each of the names, up to a null, that is a setting of the allocator: of jemalloc's mallctl,
 * or a numeric property of tcmalloc. Returns an exit status. */
int ask_settings(char** names);

/* The calls of the library under test, with emulated ones. Bit i of `replaced` says that the library lacks call i. Its
 * own calls then emulate that call: a library with only malloc and free must not be mixed with libc's calloc. Emulated
 * calls promise less:
 *
 * - Alignment is not kept unless there is a posix_memalign.
 * - realloc copies nothing.
 * - free does nothing. */
struct calls completed_calls(uint32_t replaced);

/* The null allocator, which returns distinct addresses of a reserved range that is never touched. reserve_null_range()
 * returns an errno, or 0. */
int reserve_null_range(void);
struct calls null_calls(void);

/* A call and its arguments. Count is 1 and alignment 0 if the call has none. */
struct block_request {
  enum call call;
  uint64_t size, count, alignment;
};

/* An observer of calls. The function before() is called before a block is given back to the allocator. The function
 * after() is called with the result of each call that makes a block. Its `old` is the block that before() returned, or
 * zeros. */
struct call_observer {
  struct live_block (*before)(void* block, enum call call);
  void (*after)(void* block, const struct live_block* old, const struct block_request* request);
};

/* Replaces the calls by observed ones, which several threads may call. There can be one observer at a time. */
void observe_calls(struct calls* calls, const struct call_observer* observer);

/* From now on each call adds the block's usable size to `total` or subtracts it. If the library does not have usable
 * sizes, returns 0 and changes nothing. */
int count_usable(struct calls* calls, uint64_t* total);

/* From now on each call is checked (verify.c). `replaced` is that of completed_calls(). Returns an errno if there is
 * not enough address space, else 0. */
int verify(struct calls* calls, uint32_t replaced, struct verification* shared);

/* Called after the replay, on one thread. Checks the blocks that were never freed, makes aligned blocks side by side
 * with the checked `calls`, and makes calls that have to fail (verify_end.c). */
void verify_end(struct control* control, const struct calls* calls);
