// operator new and delete in all their forms, by the names that C++ gives them (Itanium ABI), without C++.
//
// operator new calls malloc, which is interposed as well: the guard makes one event of them. A failure inside is
// recorded by malloc (allocations.c).
//
// A program may define some forms itself, such as operator new(size_t) and operator delete(void*) alone. Then the C++
// library's other forms call the program's, and only the program knows what these do: call malloc, take a block from a
// list, or do nothing. So such forms record nothing here. The program's own calls of malloc and free are the events.
//
// Exceptions that do not come from a failed malloc (a bad alignment; another allocator's operator new) leave a guard
// whose frame is gone: guard.h, guard_holds.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "preload/program/hooks/find.h"
#include "preload/program/interpose/sampled.h"

// Returns the next function after ours, if the program is linked with a C++ library. Else returns the function of the
// library that a plugin has brought along, which no other library can see, or of the plugin itself.
static void* find(const char* name, const void* caller) {
  void* found = find_one(name, real_order);
  if (!found) found = find_in_library("libstdc++.so.6", name);
  if (!found) found = find_in_library("libc++abi.so.1", name);
  return found ? found : find_in_module_of(caller, name);
}

static uint32_t flag_of(const void* function) {
  return function && is_allocator_code(function) ? guard_in_allocator : 0;
}

// Inside of the allocator's own operator new nothing was recorded, even if the guard was lifted or replaced.
static inline void leave_new(struct Guard* guard, const void* block, const void* stack_frame) {
  if (__builtin_expect(guard->kind >= guard_in_allocator, 0)) {
    if (thread_self.guard == guard) guard_leave(guard);
    guard->kind -= guard_in_allocator;
    record_new(guard, block, stack_frame);
    return;
  }
  // A failed malloc inside has lifted the guard: the failure and the retry are recorded.
  bool mine = thread_self.guard == guard;
  if (mine) guard_leave(guard);
  thread_self.retry_caller = NULL;
  if (mine) record_new(guard, block, stack_frame);
}

/// The next function after ours, once it was looked for.
struct Next {
  void* function;
  uint32_t flag;          ///< of the guard of an operator new
  bool leads_to_program;  ///< calls a form that the program itself defines
};

static bool is_programs_own(const char* name) {
  const void* const found = find_one(name, find_everywhere);
  return found && is_program_code(found);
}

// Whether the C++ library's function of this name calls one in turn that the program itself defines.
static bool leads_to_program(const char* name) {
  const bool is_new = name[2] == 'n', is_array = name[3] == 'a', is_aligned = strstr(name, "align_val_t");
  if (is_new)
    return is_programs_own(is_aligned ? "_ZnwmSt11align_val_t" : "_Znwm") ||
           (is_array && is_programs_own(is_aligned ? "_ZnamSt11align_val_t" : "_Znam"));
  return is_programs_own(is_aligned ? "_ZdlPvSt11align_val_t" : "_ZdlPv") ||
         (is_array && is_programs_own(is_aligned ? "_ZdaPvSt11align_val_t" : "_ZdaPv"));
}

static __attribute__((noinline)) void look_for(struct Next* next, const char* name, const void* caller) {
  void* const found = find(name, caller);
  next->flag = flag_of(found);
  next->leads_to_program = !next->flag && (leads_to_program(name) || (found && is_program_code(found)));
  __atomic_store_n(&next->function, found, __ATOMIC_RELEASE);  // other threads go by it
}

// Lets `next` be the next function, or NULL.
#define NEXT_FUNCTION(symbol)                                                           \
  if (__builtin_expect(!__atomic_load_n(&symbol##_next.function, __ATOMIC_ACQUIRE), 0)) \
    look_for(&symbol##_next, #symbol, __builtin_return_address(0));                     \
  const __typeof__(&symbol) next = __extension__(__typeof__(&symbol)) symbol##_next.function

#define NEW(symbol, kind_of_call, aligned, parameters, arguments)                                             \
  static struct Next symbol##_next;                                                                           \
  INTERPOSED(void*, symbol, parameters, arguments) {                                                          \
    if (!tracer_is_ready()) return malloc(size);                                                              \
    NEXT_FUNCTION(symbol);                                                                                    \
    if (__builtin_expect(symbol##_next.leads_to_program, 0)) return next ? next arguments : malloc(size);     \
    struct Guard guard;                                                                                       \
    if (!guard_enter(&guard, kind_of_call | symbol##_next.flag)) return next ? next arguments : malloc(size); \
    guard.size = size;                                                                                        \
    guard.alignment = aligned;                                                                                \
    if (stack_frame) guard.stack_frame = stack_frame;                                                         \
    thread_self.retry_caller = NULL;                                                                          \
    void* block = next ? next arguments : malloc(size);                                                       \
    leave_new(&guard, block, stack_frame);                                                                    \
    return block;                                                                                             \
  }                                                                                                           \
  /* Where it calls malloc for the same size, malloc samples, and this one is not in the way any more. */     \
  void* symbol##_sampled parameters {                                                                         \
    NEXT_FUNCTION(symbol);                                                                                    \
    if (!next) return malloc(size);                                                                           \
    if (symbol##_next.leads_to_program) return next arguments;                                                \
    const uint64_t before = thread_self.left;                                                                 \
    void* block = next arguments;                                                                             \
    AnyFunction* own = (AnyFunction*)symbol##_sampled;                                                        \
    if (before - thread_self.left == size && size != 0 && symbol##_next.flag == 0)                            \
      __atomic_compare_exchange_n(&symbol##_chosen, &own, (AnyFunction*)next, false, __ATOMIC_RELAXED,        \
                                  __ATOMIC_RELAXED);                                                          \
    SAMPLED_BLOCK(before, size, .kind = kind_of_call, .address = block, .size = size, .alignment = aligned);  \
    return block;                                                                                             \
  }

#define NEW_FORMS(name, kind)                                                                        \
  NEW(name##m, kind, 0, (size_t size), (size))                                                       \
  NEW(name##mRKSt9nothrow_t, kind##_nothrow, 0, (size_t size, const void* nothrow), (size, nothrow)) \
  NEW(name##mSt11align_val_t, kind, alignment, (size_t size, size_t alignment), (size, alignment))   \
  NEW(name##mSt11align_val_tRKSt9nothrow_t, kind##_nothrow, alignment,                               \
      (size_t size, size_t alignment, const void* nothrow), (size, alignment, nothrow))

NEW_FORMS(_Znw, kind_operator_new)
NEW_FORMS(_Zna, kind_operator_new_array)

#define DELETE(symbol, kind_of_call, bytes, aligned, parameters, ...)                               \
  static struct Next symbol##_next;                                                                 \
  static void symbol##_next_or_free parameters;                                                     \
  INTERPOSED_VOID(symbol, parameters, (__VA_ARGS__)) {                                              \
    if (!tracer_is_ready() || arena_owns(block)) return;                                            \
    NEXT_FUNCTION(symbol);                                                                          \
    if (__builtin_expect(symbol##_next.leads_to_program, 0)) {                                      \
      symbol##_next_or_free(__VA_ARGS__);                                                           \
      return;                                                                                       \
    }                                                                                               \
    FREE(next, kind_of_call, bytes, aligned, __VA_ARGS__);                                          \
  }                                                                                                 \
  static void symbol##_next_or_free parameters {                                                    \
    NEXT_FUNCTION(symbol);                                                                          \
    if (next)                                                                                       \
      next(__VA_ARGS__);                                                                            \
    else                                                                                            \
      free(block);                                                                                  \
  }                                                                                                 \
  static bool symbol##_calls_free(const void* caller) {                                             \
    if (!symbol##_next.function) look_for(&symbol##_next, #symbol, caller);                         \
    return symbol##_next.flag == 0;                                                                 \
  }                                                                                                 \
  SAMPLED_FREE(symbol, parameters, (__VA_ARGS__), symbol##_calls_free(__builtin_return_address(0)), \
               symbol##_next_or_free(__VA_ARGS__), .kind = kind_of_call, .size = bytes, .alignment = aligned)

#define DELETE_FORMS(name, kind)                                                                                       \
  DELETE(name##Pv, kind, 0, 0, (void* block), block)                                                                   \
  DELETE(name##Pvm, kind##_sized, size, 0, (void* block, size_t size), block, size)                                    \
  DELETE(name##PvRKSt9nothrow_t, kind, 0, 0, (void* block, const void* nothrow), block, nothrow)                       \
  DELETE(name##PvSt11align_val_t, kind, 0, alignment, (void* block, size_t alignment), block, alignment)               \
  DELETE(name##PvmSt11align_val_t, kind##_sized, size, alignment, (void* block, size_t size, size_t alignment), block, \
         size, alignment)                                                                                              \
  DELETE(name##PvSt11align_val_tRKSt9nothrow_t, kind, 0, alignment,                                                    \
         (void* block, size_t alignment, const void* nothrow), block, alignment, nothrow)

DELETE_FORMS(_Zdl, kind_operator_delete)
DELETE_FORMS(_Zda, kind_operator_delete_array)
