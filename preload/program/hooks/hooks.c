// Walks all modules, chooses the names that are led to the tracer, and counts calls that cannot be seen (hooks.h).
#include "preload/program/hooks/hooks.h"

#include <string.h>
#include <sys/auxv.h>

#include "preload/program/hooks/find.h"
#include "preload/program/hooks/got.h"
#include "preload/program/real.h"
#include "preload/program/tracing.h"

// clang-format off
#define OPERATORS(X) \
  X(_Znwm) X(_ZnwmRKSt9nothrow_t) X(_ZnwmSt11align_val_t) X(_ZnwmSt11align_val_tRKSt9nothrow_t) \
  X(_Znam) X(_ZnamRKSt9nothrow_t) X(_ZnamSt11align_val_t) X(_ZnamSt11align_val_tRKSt9nothrow_t) \
  X(_ZdlPv) X(_ZdlPvm) X(_ZdlPvRKSt9nothrow_t) \
  X(_ZdlPvSt11align_val_t) X(_ZdlPvmSt11align_val_t) X(_ZdlPvSt11align_val_tRKSt9nothrow_t) \
  X(_ZdaPv) X(_ZdaPvm) X(_ZdaPvRKSt9nothrow_t) \
  X(_ZdaPvSt11align_val_t) X(_ZdaPvmSt11align_val_t) X(_ZdaPvSt11align_val_tRKSt9nothrow_t)
#define OF_MALLCTL(X) X(mallctl) X(mallctlbymib) X(mallctlnametomib)
#define OF_MALLOC(X) X(malloc) X(calloc) X(realloc) X(free)
#define OTHERS(X) \
  X(reallocarray) X(aligned_alloc) X(memalign) X(posix_memalign) X(valloc) X(pvalloc) X(free_sized) \
  X(free_aligned_sized) X(malloc_trim) X(mallopt) X(madvise) \
  X(quick_exit) X(abort) X(__assert_fail) X(_exit) X(_Exit) \
  X(execve) X(execv) X(execvp) X(execvpe) X(fexecve) X(execveat) X(execl) X(execlp) X(execle) \
  X(wait) X(waitpid) X(wait3) X(wait4) X(waitid) X(setns) X(unshare) X(prctl) X(syscall) X(pthread_setname_np) X(dlopen) X(dlmopen)
#define OF_SYMBOLS(X) X(dlsym)
// clang-format on

#define DECLARE(name) extern AnyFunction ours_##name HIDDEN;
OPERATORS(DECLARE)
OF_MALLCTL(DECLARE)
OF_MALLOC(DECLARE)
OTHERS(DECLARE)
OF_SYMBOLS(DECLARE)

enum { definitions_max = 8 };

static struct Hook {
  const char* name;
  AnyFunction* ours;
  uint32_t set;
  bool is_of_malloc;  // a module whose calls of it go elsewhere is not seen
  AnyFunction* real;  // NULL: there is none
  int definitions;    // of malloc's kin: functions of that name
  void* definition[definitions_max];
} hooks[] = {
#define HOOK(symbol) {.name = #symbol, .ours = ours_##symbol, .set = hooks_of_recording},
#define HOOK_OF_MALLOC(symbol) \
  {.name = #symbol, .ours = ours_##symbol, .set = hooks_of_recording, .is_of_malloc = true},
#define HOOK_OF_SYMBOLS(symbol) {.name = #symbol, .ours = ours_##symbol, .set = hooks_of_symbols},
#define HOOK_OF_MALLCTL(symbol) {.name = #symbol, .ours = ours_##symbol, .set = hooks_of_mallctl},
    OF_MALLOC(HOOK_OF_MALLOC) OF_MALLCTL(HOOK_OF_MALLCTL) OPERATORS(HOOK) OTHERS(HOOK) OF_SYMBOLS(HOOK_OF_SYMBOLS)};
enum { hooks_count = sizeof hooks / sizeof *hooks };

static uint32_t wanted_sets;
/// The begins of the names, a bit for each hash: most other names are excluded without a comparison.
static uint64_t begins[1024 / 64];
/// The process that changes words; 0: none. A forked child takes it over.
static uint32_t owner;
/// The loader's counts of modules that have come and gone.
static uint64_t loads_seen, unloads_seen;

/// A pass over the modules.
struct Pass {
  struct HookReport report;
  uint32_t sets;
  bool is_deep;               // words may be bound past us, and there are several functions malloc
  bool is_again;              // modules that are known are looked at, too: there are more functions to look for
  int left;                   // modules that are passed over: they were bound to us when the program began
  struct ModuleWords former;  // of the module at hand, if it was known
  uint64_t loads, unloads;
};

static bool take(void) {
  const uint32_t self = process_id();
  uint32_t seen = __atomic_load_n(&owner, __ATOMIC_RELAXED);
  return seen != self && __atomic_compare_exchange_n(&owner, &seen, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void leave(void) { __atomic_store_n(&owner, 0, __ATOMIC_RELEASE); }

static uint32_t hash_of_begin(const char* name) {
  uint32_t hash = 0;
  for (int i = 0; i < 4 && name[i]; i++) hash = hash * 37 + (uint8_t)name[i];
  return hash % 1024;
}

// Finds the function of a C++ library that a plugin has brought along: it is not in the search order.
static void find_operators(void) {
  static const char library[] = "libstdc++.so.6";
  if (!find_in_library(library, "_Znwm")) return;
  for (int i = 0; i < hooks_count; i++) {
    if (!hooks[i].real && hooks[i].name[1] == 'Z') *(void**)&hooks[i].real = find_in_library(library, hooks[i].name);
  }
}

static void find_real_functions(void) {
  struct Wanted wanted[hooks_count];
  real_find_missing();
  for (int i = 0; i < hooks_count; i++) {
    wanted[i] = (struct Wanted){hooks[i].name, (void**)&hooks[i].real};
    const uint32_t hash = hash_of_begin(hooks[i].name);
    begins[hash / 64] |= (uint64_t)1 << hash % 64;
  }
  find_all(wanted, hooks_count, real_order);
  find_operators();
  for (struct Hook* hook = hooks; hook->is_of_malloc; hook++)
    hook->definitions = find_definitions(hook->name, hook->definition, definitions_max);
}

static const struct Hook* find_hook(const char* name, uint32_t sets) {
  const uint32_t hash = hash_of_begin(name);
  if ((begins[hash / 64] >> hash % 64 & 1) == 0) return NULL;
  for (int i = 0; i < hooks_count; i++) {
    if (strcmp(hooks[i].name, name) == 0) return hooks[i].real && (hooks[i].set & sets) ? &hooks[i] : NULL;
  }
  return NULL;
}

/// A word of a module that leads to a function of ours, or to the real one, or elsewhere.
struct Found {
  const struct Hook* hook;
  AnyFunction** word;
  AnyFunction* value;
  bool is_unbound;
  bool is_data;  // the program itself may have stored another address there
};

// False: the relocation is none of those.
static bool find_word(const struct Object* object, const ElfW(Rela) * relocation, uint32_t sets, struct Found* found) {
  const unsigned type = (unsigned)ELF64_R_TYPE(relocation->r_info);
  if (type != relocation_of_call && type != relocation_of_data && type != relocation_absolute) return false;
  const ElfW(Sym)* symbol = &object->symbols[ELF64_R_SYM(relocation->r_info)];
  if (symbol->st_name == 0 || (type == relocation_absolute && relocation->r_addend != 0)) return false;
  found->hook = find_hook(object->names + symbol->st_name, sets);
  if (!found->hook) return false;
  found->word = (AnyFunction**)(object->base + relocation->r_offset);
  found->value = __atomic_load_n(found->word, __ATOMIC_RELAXED);
  const uintptr_t value = (uintptr_t)found->value;
  const bool is_own = symbol->st_shndx != SHN_UNDEF && value == object->base + symbol->st_value;
  found->is_data = type == relocation_absolute;
  found->is_unbound = type == relocation_of_call && object_has(object, value) && !is_own;
  return true;
}

static bool is_definition(const struct Hook* hook, const void* function) {
  for (int i = 0; i < hook->definitions && i < definitions_max; i++)
    if (hook->definition[i] == function) return true;
  return false;
}

static bool leads_elsewhere(const struct Object* object, const struct Found* found) {
  const uintptr_t value = (uintptr_t)found->value;
  if (!found->hook->is_of_malloc || found->is_unbound || !value) return false;
  if (found->value == found->hook->real || found->value == found->hook->ours) return false;
  if (found->is_data && !is_definition(found->hook, (const void*)value)) return false;
  return !object_has(object, value) && !is_program_code((const void*)value);
}

// Calls visit() for each relocation of a module.
#define FOR_EACH_WORD(object, sets, found, action)                                                    \
  for (int table = 0; table < 2; table++) {                                                           \
    const uint64_t count = (object)->tables[table] ? (object)->bytes[table] / sizeof(ElfW(Rela)) : 0; \
    for (uint64_t i = 0; i < count; i++) {                                                            \
      if (find_word(object, &(object)->tables[table][i], sets, found)) action;                        \
    }                                                                                                 \
  }

static bool binds_elsewhere(const struct Object* object, uint32_t sets) {
  struct Found found;
  FOR_EACH_WORD(object, sets, &found, if (leads_elsewhere(object, &found)) return true)
  return false;
}

// Words that are not bound yet are left alone where it is not known to what the loader would bind them.
static void change_word(struct Pass* pass, const struct Object* object, const struct Found* found, bool is_doubtful) {
  const struct Hook* hook = found->hook;
  if (found->value == hook->ours) {
    words_keep(&pass->former, found->word);
    pass->report.words++;
    return;
  }
  const bool is_wanted = found->value == hook->real || (found->is_unbound && !is_doubtful);
  if (!is_wanted) return;
  if (words_change(object, found->word, found->value, hook->ours))
    pass->report.words++;
  else
    pass->report.refused++;
}

static void note_bypass(struct HookReport* report, const char* path) {
  if (report->bypasses++ == 0) memcpy(report->bypass, path, strnlen(path, sizeof report->bypass - 1));
}

static void change_words(struct Pass* pass, const struct Object* object) {
  struct Found found;
  const bool is_elsewhere = binds_elsewhere(object, pass->sets);
  const bool is_doubtful = is_elsewhere || pass->is_deep;
  if (is_elsewhere) note_bypass(&pass->report, object->path);
  if (!words_add_module(object)) return;
  FOR_EACH_WORD(object, pass->sets, &found, change_word(pass, object, &found, is_doubtful))
  words_close(object);
}

static bool is_skipped(const struct Object* object) {
  return object_is_ours(object) || object->begin == getauxval(AT_SYSINFO_EHDR);
}

static bool is_loader(const struct Object* object) { return object->begin == getauxval(AT_BASE); }

// Only what is of malloc's kin: the first hooks.
static void change_words_of_loader(struct Pass* pass, const struct Object* object) {
  AnyFunction** const end = (AnyFunction**)object->relro_end;
  if (!words_add_module(object) || (pass->sets & hooks_of_recording) == 0) return;
  for (AnyFunction** word = (AnyFunction**)object->relro_begin; word < end; word++) {
    struct Found found = {.word = word, .value = __atomic_load_n(word, __ATOMIC_RELAXED)};
    for (found.hook = hooks; found.hook->is_of_malloc; found.hook++) {
      if (found.value == found.hook->real || found.value == found.hook->ours) change_word(pass, object, &found, true);
    }
  }
  words_close(object);
}

static int visit(struct dl_phdr_info* info, size_t bytes, void* argument) {
  (void)bytes;
  struct Pass* pass = argument;
  struct Object object;
  pass->left--;
  pass->loads = info->dlpi_adds;
  pass->unloads = info->dlpi_subs;
  if (!object_read(&object, info) || is_skipped(&object)) return 0;
  struct ModuleWords* known = words_of(&object);
  if (pass->left >= 0 && !known) return 0;
  if (known && !pass->is_again && !words_are_lost(known)) {
    known->is_seen = true;
    pass->report.words += known->count;
  } else if (words_are_being_bound(&object)) {
    pass->report.is_unfinished = true;
  } else {
    pass->former = known ? *known : (struct ModuleWords){0};
    if (known) known->begin = known->end = 0;
    (is_loader(&object) ? change_words_of_loader : change_words)(pass, &object);
  }
  return 0;
}

static int replace_all(struct dl_phdr_info* unused, size_t bytes, void* argument) {
  (void)unused;
  (void)bytes;
  struct Pass* pass = argument;
  if (!take()) {
    pass->report.is_unfinished = true;
    return 1;
  }
  find_real_functions();
  pass->is_deep = pass->is_deep && hooks[0].definitions > 1;
  dl_iterate_phdr(visit, pass);
  words_forget_unseen();
  if (!pass->report.is_unfinished) {
    __atomic_store_n(&loads_seen, pass->loads, __ATOMIC_RELAXED);
    __atomic_store_n(&unloads_seen, pass->unloads, __ATOMIC_RELAXED);
  }
  leave();
  return 1;
}

// The whole pass is within the loader's lock, which is recursive: a thread whose load has returned waits for another's
// pass. Otherwise it would call its new module before the words there have changed. musl holds no lock here, but binds
// no module elsewhere either. A program's own dl_iterate_phdr may have a lock that is not recursive.
static struct HookReport replace(struct Pass pass) {
  if (is_program_code((const void*)(uintptr_t)dl_iterate_phdr))
    replace_all(NULL, 0, &pass);
  else
    dl_iterate_phdr(replace_all, &pass);
  return pass.report;
}

struct HookReport hooks_replace(uint32_t sets) {
  if (sets == hooks_of_mallctl && !real.mallctl) return (struct HookReport){0};
  const uint32_t before = __atomic_fetch_or(&wanted_sets, sets, __ATOMIC_RELAXED);
  return replace((struct Pass){.sets = sets | before, .is_again = (sets & ~before) != 0});
}

static int read_counts(struct dl_phdr_info* info, size_t bytes, void* is_same) {
  (void)bytes;
  *(bool*)is_same = info->dlpi_adds == __atomic_load_n(&loads_seen, __ATOMIC_RELAXED) &&
                    info->dlpi_subs == __atomic_load_n(&unloads_seen, __ATOMIC_RELAXED);
  return 1;
}

struct HookReport hooks_replace_new(bool is_deep) {
  bool is_same = false;
  dl_iterate_phdr(read_counts, &is_same);
  if (is_same) return (struct HookReport){0};
  return replace((struct Pass){
      .sets = wanted_sets | (is_deep ? hooks_of_recording : 0), .is_deep = is_deep, .left = find_modules_at_begin()});
}

static int restore(struct dl_phdr_info* info, size_t bytes, void* unused) {
  (void)bytes;
  (void)unused;
  struct Object object;
  if (object_read(&object, info) && !is_skipped(&object)) words_restore(&object);
  return 0;
}

bool hooks_restore(void) {
  if (!take()) return false;
  __atomic_store_n(&wanted_sets, 0, __ATOMIC_RELAXED);
  dl_iterate_phdr(restore, NULL);
  words_forget_all();
  leave();
  return true;
}

bool hooks_follow_load(bool is_deep) {
  const uint32_t sets = __atomic_load_n(&wanted_sets, __ATOMIC_RELAXED);
  if (is_deep && (sets & hooks_of_symbols) == 0) hooks_replace(hooks_of_symbols);
  return is_deep || sets != 0;
}
