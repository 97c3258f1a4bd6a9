#include "bench/programs/stack_agree.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <unwind.h>

enum { frames_max = 8192, shown_max = 5 };

static int (*unw_backtrace)(void** addresses, int count);
static __thread bool is_within __attribute__((tls_model("initial-exec")));

int stack_agree_begin(void) {
  void* library = dlopen("libunwind.so.8", RTLD_NOW);
  if (library) *(void**)&unw_backtrace = dlsym(library, "unw_backtrace");
  return unw_backtrace != NULL;
}

struct Walk {
  uint64_t* addresses;
  int count;
};

static _Unwind_Reason_Code add_frame(struct _Unwind_Context* context, void* walk_) {
  struct Walk* walk = walk_;
  if (walk->count == frames_max) return _URC_END_OF_STACK;
  walk->addresses[walk->count++] = _Unwind_GetIP(context);
  return _URC_NO_REASON;
}

// Where a walk that began within the shim comes to `innermost`; `count`: nowhere.
static int begin_of(const uint64_t* addresses, int count, uint64_t innermost) {
  int i = 0;
  while (i < count && i < 8 && addresses[i] != innermost) i++;
  return i < 8 ? i : count;
}

static void show(const uint64_t* ours, const uint64_t* theirs, int at, uint64_t third) {
  static int shown;
  if (__atomic_fetch_add(&shown, 1, __ATOMIC_RELAXED) >= shown_max) return;
  Dl_info place = {0};
  dladdr((void*)ours[at], &place);
  fprintf(stderr, "stack_shim: frame %d: ours %lx, libunwind's %lx, libgcc's %lx; ours is in %s of %s, %lx\n", at,
          ours[at], theirs[at], third, place.dli_sname ? place.dli_sname : "?", place.dli_fname ? place.dli_fname : "?",
          ours[at] - (uint64_t)place.dli_fbase);
}

static void add_one(uint64_t* sum) { __atomic_fetch_add(sum, 1, __ATOMIC_RELAXED); }

void stack_agree(const uint64_t* ours, int count, struct StackAgreement* sums) {
  static __thread uint64_t walked[frames_max] __attribute__((tls_model("initial-exec")));
  if (is_within || !unw_backtrace || count == 0) return;
  is_within = true;
  add_one(&sums->sampled);
  const int all = unw_backtrace((void**)walked, frames_max);
  const int begin = begin_of(walked, all, ours[0]);
  const uint64_t* theirs = walked + begin;
  int most = all - begin;
  while (most > 0 && theirs[most - 1] == 0) most--;
  int at = 0;
  while (at < most && at < count && theirs[at] == ours[at]) at++;
  if (at == most || at == count) {
    add_one(most < count ? &sums->ours_longer : most > count ? &sums->ours_shorter : &sums->same);
  } else {
    static __thread uint64_t third[frames_max] __attribute__((tls_model("initial-exec")));
    struct Walk walk = {third, 0};
    _Unwind_Backtrace(add_frame, &walk);
    const int index = begin_of(third, walk.count, ours[0]) + at;
    const uint64_t judge = index < walk.count ? third[index] : 0;
    add_one(judge == ours[at]     ? &sums->libgcc_has_ours
            : judge == theirs[at] ? &sums->libgcc_has_theirs
                                  : &sums->libgcc_has_neither);
    show(ours, theirs, at, judge);
  }
  is_within = false;
}
