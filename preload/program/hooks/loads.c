// Notices that the loader has loaded a module, as loads.h describes, and changes its words when dlopen has returned.
#include "preload/program/hooks/loads.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "preload/program/hooks/hooks.h"
#include "preload/program/interpose/interpose.h"

// The bytes of `path` first: the collector reads them when it sees the count.
static void count_bypasses(uint32_t count, const char* path) {
  static bool has_first;
  struct Control* control = tracing.control;
  if (!control || count == 0) return;
  if (!__atomic_exchange_n(&has_first, true, __ATOMIC_RELAXED))
    memcpy(control->bypass, path, strnlen(path, sizeof control->bypass - 1));
  __atomic_fetch_add(&control->bypasses, count, __ATOMIC_RELEASE);
}

void loads_report(const struct HookReport* report) {
  count_bypasses(report->bypasses, *report->bypass ? report->bypass : program_invocation_name);
}

// rt_sigprocmask copies the new set before it looks at `how`, which is wrong here: EFAULT or EINVAL.
static bool is_readable(uintptr_t address) { return sys(SYS_rt_sigprocmask, -1, address, 0, 8) == -EINVAL; }

// `frame`: an address in the frame of the function that is called now. One that is not below may be on another stack.
static bool has_returned(uintptr_t frame) {
  const struct Thread* self = &thread_self;
  if (frame > self->load_place || !is_readable(self->load_place)) return true;
  return *(const void* const*)self->load_place != self->load_caller;
}

// False: the loader, called by another thread, is at a module. To be looked at again at the next call.
static bool look(bool is_deep) {
  const int saved = errno;
  const struct HookReport report = hooks_replace_new(is_deep);
  loads_report(&report);
  errno = saved;
  return !report.is_unfinished;
}

// Whether the load is still awaited.
static bool is_awaited_after(uintptr_t frame) {
  struct Thread* self = &thread_self;
  if (sandbox_entered) return false;
  if (!has_returned(frame)) return true;
  self->guard = NULL;  // for a signal handler that interrupts this
  if (look(self->load_is_deep)) return false;
  self->load_place = 0;
  return true;
}

__attribute__((noinline)) void guard_look_at_load(struct Guard* mine) {
  if (is_awaited_after((uintptr_t)mine)) mine->interrupted = &guard_of_load;
}

bool loads_are_awaited(const void* frame) {
  struct Thread* self = &thread_self;
  if (self->guard != &guard_of_load) return false;
  self->guard = is_awaited_after((uintptr_t)frame) ? &guard_of_load : NULL;
  return self->guard != NULL;
}

static void await_load(uintptr_t place, bool is_deep) {
  struct Thread* self = &thread_self;
  if (sandbox_entered || tracing.is_stopped || !hooks_follow_load(is_deep) || is_vfork_child()) return;
  const bool is_awaited = self->guard == &guard_of_load;
  if (is_awaited && !has_returned(place)) {  // this one is called by a constructor: the outer one returns later
    self->load_is_deep |= is_deep;
    return;
  }
  if (is_awaited) look(self->load_is_deep);
  if (self->guard && !is_awaited) return;  // within an allocator's function; the next load shows this one
  self->load_place = place;
  self->load_caller = *(const void* const*)place;
  self->load_is_deep = is_deep;
  thread_await_load(self);
}

// Counts a module whose calls do not reach us: another namespace has a libc of its own.
static void note_unseen(const char* module) {
  if (module && (!strchr(module, '/') || sys_access(module, F_OK) == 0)) count_bypasses(1, module);
}

__attribute__((used)) static void note_dlopen(const char* module, int flags, long unused, uintptr_t place) {
  (void)unused;
  real_find_required();
  if (!module || (flags & RTLD_NOLOAD)) return;
  if (place)
    await_load(place, (flags & RTLD_DEEPBIND) != 0);
  else if (flags & RTLD_DEEPBIND)
    note_unseen(module);
}

// musl has no dlmopen, but a program may find ours.
typedef void* Dlmopen(Lmid_t, const char*, int);
static void* refuse_dlmopen(Lmid_t space, const char* module, int flags) {
  (void)space;
  (void)module;
  (void)flags;
  return NULL;
}

__attribute__((used)) static void note_dlmopen(Lmid_t space, const char* module, int flags, uintptr_t place) {
  real_find_required();
  if (!real_dlmopen) *(Dlmopen**)&real_dlmopen = refuse_dlmopen;
  if (space == LM_ID_BASE)
    note_dlopen(module, flags, 0, place);
  else
    note_unseen(module);
}

// The code that loads a module asks for its functions next, and perhaps another thread calls them.
__attribute__((used)) static void note_dlsym(void* handle, const char* name, long unused, uintptr_t place) {
  (void)handle;
  (void)name;
  (void)unused;
  struct Thread* self = &thread_self;
  if (self->guard == &guard_of_load) self->guard = is_awaited_after(place) ? &guard_of_load : NULL;
}

#define UNUSED __attribute__((unused))
MACHINE_NOTED_EXPORT(void*, dlopen, (UNUSED const char* module, UNUSED int flags));
MACHINE_NOTED_EXPORT(void*, dlmopen, (UNUSED Lmid_t space, UNUSED const char* module, UNUSED int flags));
// Not exported: it is in the way of no module that is not attached to.
MACHINE_NOTED_HIDDEN(void*, dlsym, (UNUSED void* handle, UNUSED const char* name))
