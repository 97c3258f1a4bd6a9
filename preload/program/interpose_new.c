// operator new and delete in all their forms, by the names that C++ gives them (Itanium ABI), without C++.
//
// operator new calls malloc, which is ours as well: the guard makes that one event. Where malloc fails, operator new
// calls the new_handler, which may allocate, free, or throw, or throws bad_alloc itself. We cannot see an exception go
// through: a landing pad would need the C++ runtime. So the failure is recorded where it happens, in the inner malloc,
// as that of operator new, and the guard is lifted there: what the new_handler does is the program's own again, and
// nothing stays set if it throws. A retry comes from the same place inside operator new, and is recorded as operator
// new too.
//
// Exceptions that do not come out of our malloc (a bad alignment; another allocator's operator new) leave a guard
// behind whose frame is gone: record.h, guard_holds.
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>

#include "preload/program/arena.h"
#include "preload/program/interpose.h"
#include "preload/program/real.h"
#include "preload/program/record.h"

enum { operator_bytes_max = 512 };

static void record_new(const struct Guard* of, const void* block) {
  if (!record_allowed()) return;
  if (!of->alignment) {
    record(of->kind, block, of->size);
    return;
  }
  record_long(&(struct Call){.kind = of->kind, .address = block, .size = of->size, .alignment = of->alignment});
}

static bool is_new(enum Kind kind) { return kind >= kind_operator_new && kind <= kind_operator_new_array_nothrow; }

static void has_failed(const void* caller) {
  struct Thread* self = &thread_self;
  if (!self->guard || !is_new(self->guard->kind)) return;
  self->retry = *self->guard;
  self->retry_caller = caller;
  self->guard = NULL;
  record_new(&self->retry, NULL);
}

void* malloc_inside(size_t size, const void* caller) {
  if (__builtin_expect(thread_self.guard->kind == kind_own_use, 0)) return arena_allocate(16, size);
  void* block = real.malloc(size);
  if (!block) has_failed(caller);
  return block;
}

void* aligned_inside(size_t alignment, size_t size, const void* caller) {
  void* block = real.aligned_alloc(alignment, size);
  if (!block) has_failed(caller);
  return block;
}

// The compiler may have made two calls of the loop's one.
bool malloc_was_retried(void* block, const void* caller) {
  struct Thread* self = &thread_self;
  uintptr_t away = (uintptr_t)caller - (uintptr_t)self->retry_caller + operator_bytes_max / 2;
  if (away > operator_bytes_max) return false;
  record_new(&self->retry, block);
  return true;
}

static void* in_library(const char* library, const char* name) {
  void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  return handle ? dlsym(handle, name) : NULL;  // not closed: it must not go away any more
}

// Behind us, where the program is linked with a C++ library; else in the one that a plugin brought along, which no
// other library can see, or in the plugin itself.
static void* find(const char* name, const void* caller) {
  struct Guard guard;
  bool outermost = guard_enter(&guard, kind_malloc);
  int saved = errno;
  Dl_info info;
  void* found = dlsym(RTLD_NEXT, name);
  if (!found) found = in_library("libstdc++.so.6", name);
  if (!found) found = in_library("libc++abi.so.1", name);
  if (!found && dladdr(caller, &info) && info.dli_fname) found = in_library(info.dli_fname, name);
  errno = saved;
  if (outermost) guard_leave();
  return found;
}

static struct { uintptr_t begin, end; } allocator;

static int find_allocator(struct dl_phdr_info* object, size_t bytes, void* unused) {
  (void)bytes;
  (void)unused;
  const uintptr_t wanted = (uintptr_t)real.malloc;
  uintptr_t begin = UINTPTR_MAX, end = 0;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    if (object->dlpi_phdr[i].p_type != PT_LOAD) continue;
    const uintptr_t from = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr, to = from + object->dlpi_phdr[i].p_memsz;
    if (from < begin) begin = from;
    if (to > end) end = to;
  }
  if (wanted < begin || wanted >= end) return 0;
  allocator.end = end;
  allocator.begin = begin;
  return 1;
}

static bool is_of_allocator(const void* code) {
  return (uintptr_t)code >= allocator.begin && (uintptr_t)code < allocator.end;
}

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

// It may jump to malloc, which then returns to our operator new.
bool guard_is_of_allocator(const void* code) {
  return is_of_allocator(code) || ((const char*)code >= __ehdr_start && (const char*)code < _end);
}

static enum Kind flag_of(const void* function) {
  if (!allocator.begin) dl_iterate_phdr(find_allocator, NULL);
  return function && is_of_allocator(function) ? kind_of_allocators_own : 0;
}

// Of the allocator's own nothing was recorded inside, whatever became of the guard.
static inline void end_new(struct Guard* guard, const void* block) {
  if (__builtin_expect(guard->kind >= kind_of_allocators_own, 0)) {
    if (thread_self.guard == guard) guard_leave();
    guard->kind -= kind_of_allocators_own;
    record_new(guard, block);
    return;
  }
  // Lifted by a failed malloc inside: that one, and the retry, are recorded.
  bool mine = thread_self.guard == guard;
  if (mine) guard_leave();
  thread_self.retry_caller = NULL;
  if (mine) record_new(guard, block);
}

#define NEXT_FUNCTION(symbol, also)                              \
  static __typeof__(&symbol) next;                               \
  if (__builtin_expect(!next, 0)) {                              \
    *(void**)&next = find(#symbol, __builtin_return_address(0)); \
    also;                                                        \
  }

#define NEXT_NEW(symbol) \
  static enum Kind flag; \
  NEXT_FUNCTION(symbol, flag = flag_of(*(void**)&next))

#define NEW(symbol, kind_of_call, aligned, parameters, arguments)                               \
  EXPORT void* symbol parameters;                                                               \
  EXPORT void* symbol parameters {                                                              \
    if (!real_ready()) return malloc(size);                                                     \
    NEXT_NEW(symbol)                                                                            \
    struct Guard guard = {.size = size, .alignment = aligned};                                  \
    if (!guard_enter(&guard, kind_of_call | flag)) return next ? next arguments : malloc(size); \
    thread_self.retry_caller = NULL;                                                            \
    void* block = next ? next arguments : malloc(size);                                         \
    end_new(&guard, block);                                                                     \
    return block;                                                                               \
  }

#define NEW_FORMS(name, kind)                                                                        \
  NEW(name##m, kind, 0, (size_t size), (size))                                                       \
  NEW(name##mRKSt9nothrow_t, kind##_nothrow, 0, (size_t size, const void* nothrow), (size, nothrow)) \
  NEW(name##mSt11align_val_t, kind, alignment, (size_t size, size_t alignment), (size, alignment))   \
  NEW(name##mSt11align_val_tRKSt9nothrow_t, kind##_nothrow, alignment,                               \
      (size_t size, size_t alignment, const void* nothrow), (size, alignment, nothrow))

NEW_FORMS(_Znw, kind_operator_new)
NEW_FORMS(_Zna, kind_operator_new_array)

#define DELETE(symbol, kind_of_call, bytes, aligned, parameters, arguments)                                       \
  EXPORT void symbol parameters;                                                                                  \
  EXPORT void symbol parameters {                                                                                 \
    if (!real_ready() || arena_owns(block)) return;                                                               \
    NEXT_FUNCTION(symbol, )                                                                                       \
    struct Guard guard;                                                                                           \
    bool outermost = guard_enter(&guard, kind_of_call);                                                           \
    if (outermost && record_allowed()) {                                                                          \
      if (aligned)                                                                                                \
        record_long(&(struct Call){.kind = kind_of_call, .address = block, .size = bytes, .alignment = aligned}); \
      else                                                                                                        \
        record(kind_of_call, block, bytes);                                                                       \
    }                                                                                                             \
    if (next)                                                                                                     \
      next arguments;                                                                                             \
    else                                                                                                          \
      real.free(block);                                                                                           \
    if (outermost) guard_leave();                                                                                 \
  }

#define DELETE_FORMS(name, kind)                                                                                \
  DELETE(name##Pv, kind, 0, 0, (void* block), (block))                                                          \
  DELETE(name##Pvm, kind##_sized, size, 0, (void* block, size_t size), (block, size))                           \
  DELETE(name##PvRKSt9nothrow_t, kind, 0, 0, (void* block, const void* nothrow), (block, nothrow))              \
  DELETE(name##PvSt11align_val_t, kind, 0, alignment, (void* block, size_t alignment), (block, alignment))      \
  DELETE(name##PvmSt11align_val_t, kind##_sized, size, alignment, (void* block, size_t size, size_t alignment), \
         (block, size, alignment))                                                                              \
  DELETE(name##PvSt11align_val_tRKSt9nothrow_t, kind, 0, alignment,                                             \
         (void* block, size_t alignment, const void* nothrow), (block, alignment, nothrow))

DELETE_FORMS(_Zdl, kind_operator_delete)
DELETE_FORMS(_Zda, kind_operator_delete_array)
