// Looks symbols up in the tables of loaded modules, without dlsym, which allocates and takes locks.
#include "preload/program/hooks/find.h"

#include <string.h>

#include "preload/text.h"

static int modules_at_begin;

struct Search {
  const struct Wanted* wanted;
  int count;
  bool is_after_us;  // the modules from here on count
  int left;          // as many of them; 0: any number
  int room;          // of find_definitions()
  const char* library;
  const void* code;
  const char* path;
};

static void look_in(const struct Object* object, const struct Search* search) {
  for (int i = 0; i < search->count; i++) {
    const struct Wanted* wanted = &search->wanted[i];
    if (!*wanted->found) *wanted->found = object_symbol(object, object_name(wanted->name));
  }
}

static int look_in_order(struct dl_phdr_info* info, size_t bytes, void* argument) {
  (void)bytes;
  struct Search* search = argument;
  struct Object object;
  const bool has_symbols = object_read(&object, info);
  if (object_is_ours(&object))
    search->is_after_us = true;
  else if (search->is_after_us && has_symbols)
    look_in(&object, search);
  return search->left != 0 && --search->left == 0;
}

static int count_module(struct dl_phdr_info* info, size_t bytes, void* count) {
  (void)info;
  (void)bytes;
  ++*(int*)count;
  return 0;
}

void find_begin(void) {
  modules_at_begin = 0;
  dl_iterate_phdr(count_module, &modules_at_begin);
}

int find_modules_at_begin(void) { return modules_at_begin; }

void find_all(const struct Wanted* wanted, int count, enum FindWhere where) {
  struct Search search = {.wanted = wanted, .count = count};
  if (where == find_everywhere)
    search.is_after_us = true;
  else
    search.left = modules_at_begin;
  dl_iterate_phdr(look_in_order, &search);
}

void* find_one(const char* name, enum FindWhere where) {
  void* found = NULL;
  find_all(&(struct Wanted){name, &found}, 1, where);
  return found;
}

static int look_for_definition(struct dl_phdr_info* info, size_t bytes, void* argument) {
  (void)bytes;
  struct Search* search = argument;
  struct Object object;
  if (!object_read(&object, info) || object_is_ours(&object)) return 0;
  void* const found = object_symbol(&object, object_name(search->wanted->name));
  if (!found) return 0;
  if (search->count < search->room) search->wanted->found[search->count] = found;
  search->count++;
  return 0;
}

int find_definitions(const char* name, void** found, int room) {
  struct Search search = {.wanted = &(struct Wanted){name, found}, .room = room};
  dl_iterate_phdr(look_for_definition, &search);
  return search.count;
}

static bool is_named(const struct Object* object, const char* library) {
  return strcmp(file_name_of(object->path), library) == 0;
}

static int look_in_one(struct dl_phdr_info* info, size_t bytes, void* argument) {
  (void)bytes;
  struct Search* search = argument;
  struct Object object;
  const bool has_symbols = object_read(&object, info);
  const bool is_it =
      search->library ? is_named(&object, search->library) : object_has(&object, (uintptr_t)search->code);
  if (!is_it) return 0;
  search->path = object.path;
  if (has_symbols && !object_is_ours(&object)) look_in(&object, search);
  return 1;
}

void* find_in_library(const char* library, const char* name) {
  void* found = NULL;
  struct Search search = {.wanted = &(struct Wanted){name, &found}, .count = 1, .library = library};
  dl_iterate_phdr(look_in_one, &search);
  return found;
}

void* find_in_module_of(const void* code, const char* name) {
  void* found = NULL;
  struct Search search = {.wanted = &(struct Wanted){name, &found}, .count = 1, .code = code};
  dl_iterate_phdr(look_in_one, &search);
  return found;
}

const char* find_module(const void* address) {
  struct Search search = {.code = address};
  dl_iterate_phdr(look_in_one, &search);
  return search.path;
}
