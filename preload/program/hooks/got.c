// Keeps a list of the words that were changed, makes their pages writable for a change, and restores the words (got.h).
#include "preload/program/hooks/got.h"

#include <linux/futex.h>
#include <string.h>

#include "preload/program/kernel.h"

enum { page_bytes = 4096, read_only = 1, writable = 3 /* of mprotect */ };

struct Word {
  AnyFunction** place;
  AnyFunction *before, *ours;
};

/// An array that grows.
struct Array {
  void* items;
  size_t used, room;
};

static struct Array words, modules;

/// The module whose read-only pages are open.
static const struct Object* opened;

static void* append(struct Array* array, size_t bytes) {
  if (array->used == array->room) {
    const size_t room = array->room ? array->room * 2 : 8192 / bytes;
    void* items = sys_map(room * bytes);
    if (!items) return NULL;
    if (array->items) {
      memcpy(items, array->items, array->used * bytes);
      sys(SYS_munmap, array->items, array->room * bytes);
    }
    array->items = items;
    array->room = room;
  }
  return (char*)array->items + array->used++ * bytes;
}

static struct Word* word_at(size_t number) { return (struct Word*)words.items + number; }
static struct ModuleWords* module_at(size_t number) { return (struct ModuleWords*)modules.items + number; }

// Modules are mostly asked for in the order in which they were added.
struct ModuleWords* words_of(const struct Object* object) {
  static size_t next;
  for (size_t i = 0; i < modules.used; i++, next++) {
    if (next >= modules.used) next = 0;
    struct ModuleWords* module = module_at(next);
    if (module->begin == object->begin && module->end == object->end) return module;
  }
  return NULL;
}

struct ModuleWords* words_add_module(const struct Object* object) {
  struct ModuleWords* module = append(&modules, sizeof *module);
  if (module) *module = (struct ModuleWords){object->begin, object->end, (uint32_t)words.used, 0, true};
  return module;
}

void words_forget_unseen(void) {
  size_t kept = 0, kept_words = 0;
  for (size_t i = 0; i < modules.used; i++) {
    struct ModuleWords module = *module_at(i);
    if (!module.is_seen) continue;
    memmove(word_at(kept_words), word_at(module.first), module.count * sizeof(struct Word));
    module.first = (uint32_t)kept_words;
    module.is_seen = false;
    kept_words += module.count;
    *module_at(kept++) = module;
  }
  modules.used = kept;
  words.used = kept_words;
}

void words_forget_all(void) { modules.used = words.used = 0; }

// An atomic operation by the kernel that changes nothing, and fails where the word cannot be written to.
static bool is_writable(uintptr_t address) {
  enum { or_nothing = FUTEX_OP_OR << 28 | FUTEX_OP_CMP_LT << 24 };
  static uint32_t nobody_waits;
  return sys(SYS_futex, &nobody_waits, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0, address & ~(uintptr_t)3, or_nothing) >=
         0;
}

static bool has_read_only(const struct Object* object) { return object->relro_begin < object->relro_end; }

static bool is_read_only(const struct Object* object, const void* word) {
  return (uintptr_t)word >= object->relro_begin && (uintptr_t)word < object->relro_end;
}

bool words_are_being_bound(const struct Object* object) {
  return has_read_only(object) && is_writable(object->relro_begin);
}

static long protect(const struct Object* object, int how) {
  return sys(SYS_mprotect, object->relro_begin, object->relro_end - object->relro_begin, how);
}

static bool open_for(const struct Object* object, AnyFunction** word) {
  if (is_writable((uintptr_t)word)) return true;
  if (!is_read_only(object, word) || protect(object, writable) != 0) return false;
  opened = object;
  return true;
}

void words_close(const struct Object* object) {
  if (opened == object) protect(object, read_only);
  opened = NULL;
}

bool words_change(const struct Object* object, AnyFunction** word, AnyFunction* before, AnyFunction* ours) {
  struct ModuleWords* module = module_at(modules.used - 1);
  if (!open_for(object, word)) return false;
  struct Word* entry = append(&words, sizeof *entry);
  if (!entry) return false;
  *entry = (struct Word){word, before, ours};
  module->count++;
  __atomic_store_n(word, ours, __ATOMIC_RELEASE);
  return true;
}

void words_keep(const struct ModuleWords* former, AnyFunction** word) {
  for (uint32_t i = 0; i < former->count; i++) {
    const struct Word known = *word_at(former->first + i);
    struct Word* entry = known.place == word ? append(&words, sizeof *entry) : NULL;
    if (!entry) continue;
    *entry = known;
    module_at(modules.used - 1)->count++;
    return;
  }
}

void words_restore(const struct Object* object) {
  const struct ModuleWords* module = words_of(object);
  for (uint32_t i = 0; module && i < module->count; i++) {
    const struct Word* word = word_at(module->first + i);
    if (__atomic_load_n(word->place, __ATOMIC_RELAXED) != word->ours || !open_for(object, word->place)) continue;
    __atomic_store_n(word->place, word->before, __ATOMIC_RELEASE);
  }
  words_close(object);
}

bool words_are_lost(const struct ModuleWords* module) {
  for (uint32_t i = 0; i < module->count; i++) {
    const struct Word* word = word_at(module->first + i);
    if (__atomic_load_n(word->place, __ATOMIC_RELAXED) != word->ours) return true;
  }
  return false;
}
