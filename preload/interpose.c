// libcmttrace.so: LD_PRELOAD=libcmttrace.so app records every call of malloc(3)'s functions that app and its libraries
// make, as text (format-spec/text.md) in app.PID.trace.
//
//     CMTTRACE_OUT        where: %p is the process, %n the program, %% a per cent sign; default %n.%p.trace, in the
//                         folder where the program started. A name that exists is never written over: app.7.trace is
//                         followed by app.7.2.trace (exec keeps the pid), then .3. A name that ends in .cmt gets the
//                         compact form.
//     CMTTRACE_TIME       1: each event with its time, in ns since the start; default without
//     CMTTRACE_COLLECTOR  the program that encodes .cmt; default cmttrace-collector beside the library, or in
//                         ../libexec/cmt or ../../libexec/cmt from there
//
// Promised: each free is paired with its own malloc and no address lives twice, whatever the threads do (record.c).
// Events are complete, with static initialisers before ours and exit handlers after ours, however the process ends; the
// end line is there after exit, _exit, exec, abort and a failed assertion, and missing after a signal, whose file ends
// in NULs (output.c). Each forked child writes a file of its own. The program's results, errno, output, exit status and
// children are what they are without us; of standard error at most one line is used, for a problem, after which the
// program goes on untraced.
//
// Not seen: static and setuid programs (the loader ignores us), memory managers inside a program, operator new where
// another preloaded allocator brings its own. A program built with a sanitizer is refused with one line, and ends.
//
// This file holds the functions that the program calls in place of malloc(3)'s. Each one hands through to the next
// library's (real.c), so that other preloaded allocators are traced as well, and records what came of it. What the real
// function calls of ours in turn is its own affair and no event: `inside` counts that. Cost: one lock and one line of
// text an event, see bench/tracer_cost.
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "preload/arena.h"
#include "preload/real.h"
#include "preload/record.h"

#define EXPORT __attribute__((visibility("default")))

// Calls through to the real function, as one that is not ours.
#define INSIDE(call)      \
  __extension__({         \
    thread_self.inside++; \
    __auto_type r = call; \
    thread_self.inside--; \
    r;                    \
  })

static inline void made(enum CallKind kind, uint64_t a, uint64_t b, void* result) {
  record(&(struct Call){.kind = kind, .arguments = {a, b}, .result = result});
}

static void* unavailable(void) {
  errno = ENOMEM;
  return NULL;
}

EXPORT void* malloc(size_t size) {
  if (!real_ready()) return arena_allocate(16, size);
  if (thread_self.inside) return real.malloc(size);
  void* block = INSIDE(real.malloc(size));
  made(call_malloc, size, 0, block);
  return block;
}

EXPORT void* calloc(size_t count, size_t size) {
  size_t bytes;
  if (!real_ready()) return __builtin_mul_overflow(count, size, &bytes) ? unavailable() : arena_allocate(16, bytes);
  if (thread_self.inside) return real.calloc(count, size);
  void* block = INSIDE(real.calloc(count, size));
  made(call_calloc, count, size, block);
  return block;
}

EXPORT void* aligned_alloc(size_t alignment, size_t size) {
  if (!real_ready()) return arena_allocate(alignment, size);
  if (!real.aligned_alloc) return unavailable();
  if (thread_self.inside) return real.aligned_alloc(alignment, size);
  void* block = INSIDE(real.aligned_alloc(alignment, size));
  made(call_aligned_alloc, alignment, size, block);
  return block;
}

EXPORT void* memalign(size_t alignment, size_t size) {
  if (!real_ready()) return arena_allocate(alignment, size);
  if (!real.memalign) return unavailable();
  if (thread_self.inside) return real.memalign(alignment, size);
  void* block = INSIDE(real.memalign(alignment, size));
  made(call_memalign, alignment, size, block);
  return block;
}

EXPORT int posix_memalign(void** result, size_t alignment, size_t size) {
  if (!real_ready()) return (*result = arena_allocate(alignment, size)) ? 0 : ENOMEM;
  if (!real.posix_memalign) return ENOMEM;
  if (thread_self.inside) return real.posix_memalign(result, alignment, size);
  int status = INSIDE(real.posix_memalign(result, alignment, size));
  made(call_posix_memalign, alignment, size, status ? NULL : *result);
  return status;
}

EXPORT void* valloc(size_t size) {
  if (!real_ready()) return arena_allocate(4096, size);
  if (!real.valloc) return unavailable();
  if (thread_self.inside) return real.valloc(size);
  void* block = INSIDE(real.valloc(size));
  made(call_valloc, size, 0, block);
  return block;
}

EXPORT void* pvalloc(size_t size) {
  if (!real_ready()) return arena_allocate(4096, (size + 4095) & ~(size_t)4095);
  if (!real.pvalloc) return unavailable();
  if (thread_self.inside) return real.pvalloc(size);
  void* block = INSIDE(real.pvalloc(size));
  made(call_pvalloc, size, 0, block);
  return block;
}

// A block of the arena cannot grow where it is. To the trace, which never saw it, its successor is a new block.
static void* move_from_arena(void* block, size_t size) {
  size_t old = arena_size(block);
  void* moved = malloc(size);
  if (moved) memcpy(moved, block, old < size ? old : size);
  return moved;
}

static void* resize(struct Call* call, void* (*resize_given)(const struct Call*)) {
  if (!call->given) {
    call->result = INSIDE(resize_given(call));
    record(call);
    return call->result;
  }
  bool held = record_hold();
  call->result = INSIDE(resize_given(call));
  record_release(held, call);
  return call->result;
}

static void* real_realloc(const struct Call* call) { return real.realloc(call->given, call->arguments[0]); }

static void* real_reallocarray(const struct Call* call) {
  return real.reallocarray(call->given, call->arguments[0], call->arguments[1]);
}

EXPORT void* realloc(void* block, size_t size) {
  if (!real_ready() || arena_owns(block)) return block ? move_from_arena(block, size) : malloc(size);
  if (thread_self.inside) return real.realloc(block, size);
  return resize(&(struct Call){.kind = call_realloc, .arguments = {size}, .given = block}, real_realloc);
}

EXPORT void* reallocarray(void* block, size_t count, size_t size) {
  size_t bytes;
  if (!real_ready() || arena_owns(block) || !real.reallocarray) {
    return __builtin_mul_overflow(count, size, &bytes) ? unavailable() : realloc(block, bytes);
  }
  if (thread_self.inside) return real.reallocarray(block, count, size);
  struct Call call = {.kind = call_reallocarray, .arguments = {count, size}, .given = block};
  return resize(&call, real_reallocarray);
}

// Whether a block that comes back is for the real allocator; recorded if it is the program that gives it back.
static bool given_back(struct Call call) {
  if (!real_ready() || arena_owns(call.given)) return false;
  if (!thread_self.inside) record(&call);
  return true;
}

EXPORT void free(void* block) {
  if (!given_back((struct Call){.kind = call_free, .given = block})) return;
  thread_self.inside++;
  real.free(block);
  thread_self.inside--;
}

EXPORT void free_sized(void* block, size_t size) {
  if (!given_back((struct Call){.kind = call_free_sized, .arguments = {size}, .given = block})) return;
  thread_self.inside++;
  if (real.free_sized)
    real.free_sized(block, size);
  else
    real.free(block);
  thread_self.inside--;
}

EXPORT void free_aligned_sized(void* block, size_t alignment, size_t size) {
  struct Call call = {.kind = call_free_aligned_sized, .arguments = {alignment, size}, .given = block};
  if (!given_back(call)) return;
  thread_self.inside++;
  if (real.free_aligned_sized)
    real.free_aligned_sized(block, alignment, size);
  else
    real.free(block);
  thread_self.inside--;
}

EXPORT size_t malloc_usable_size(void* block) {
  if (!real_ready() || arena_owns(block)) return block ? arena_size(block) : 0;
  return real.malloc_usable_size ? real.malloc_usable_size(block) : 0;
}
