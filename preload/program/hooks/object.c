// Reads the dynamic section of a loaded module: its symbols, strings, hash table and relocations (object.h).
#include "preload/program/hooks/object.h"

#include <string.h>

enum { page_bytes = 4096, version_hidden = 0x8000 };

extern const char __ehdr_start[] __attribute__((visibility("hidden")));

static const ElfW(Dyn) * read_headers(struct Object* object, const struct dl_phdr_info* info) {
  const ElfW(Dyn)* dynamic = NULL;
  *object = (struct Object){.path = info->dlpi_name, .base = info->dlpi_addr, .begin = UINTPTR_MAX};
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr)* header = &info->dlpi_phdr[i];
    const uintptr_t from = object->base + header->p_vaddr, to = from + header->p_memsz;
    if (header->p_type == PT_LOAD && from < object->begin) object->begin = from;
    if (header->p_type == PT_LOAD && to > object->end) object->end = to;
    if (header->p_type == PT_DYNAMIC) dynamic = (const ElfW(Dyn)*)from;
    if (header->p_type != PT_GNU_RELRO) continue;
    object->relro_begin = from / page_bytes * page_bytes;  // in whole pages, as the loader protects them
    object->relro_end = to / page_bytes * page_bytes;
  }
  return dynamic;
}

// The loader writes addresses into the section, unless that is read-only.
static const void* place_of(const struct Object* object, uintptr_t value) {
  const uintptr_t moved = object->base + value;
  if (object_has(object, value)) return (const void*)value;
  return object_has(object, moved) ? (const void*)moved : NULL;
}

bool object_read(struct Object* object, const struct dl_phdr_info* info) {
  const ElfW(Dyn)* entry = read_headers(object, info);
  for (; entry && entry->d_tag != DT_NULL; entry++) {
    const void* place = place_of(object, entry->d_un.d_ptr);
    switch (entry->d_tag) {
      case DT_SYMTAB:
        object->symbols = place;
        break;
      case DT_STRTAB:
        object->names = place;
        break;
      case DT_VERSYM:
        object->versions = place;
        break;
      case DT_GNU_HASH:
        object->gnu_hash = place;
        break;
      case DT_HASH:
        object->old_hash = place;
        break;
      case DT_JMPREL:
        object->tables[0] = place;
        break;
      case DT_PLTRELSZ:
        object->bytes[0] = entry->d_un.d_val;
        break;
      case DT_RELA:
        object->tables[1] = place;
        break;
      case DT_RELASZ:
        object->bytes[1] = entry->d_un.d_val;
        break;
      default:
        break;
    }
  }
  return object->symbols && object->names;
}

bool object_is_ours(const struct Object* object) { return object_has(object, (uintptr_t)__ehdr_start); }

struct ObjectName object_name(const char* text) {
  uint32_t hash = 5381;
  for (const char* c = text; *c; c++) hash = hash * 33 + (uint8_t)*c;
  return (struct ObjectName){text, hash};
}

static uint32_t old_hash_of(const char* text) {
  uint32_t hash = 0;
  for (; *text; text++) {
    hash = (hash << 4) + (uint8_t)*text;
    const uint32_t high = hash & 0xf0000000u;
    hash = (hash ^ high >> 24) & ~high;
  }
  return hash;
}

static bool is_defined(const struct Object* object, uint32_t number, const char* name) {
  const ElfW(Sym)* symbol = &object->symbols[number];
  if (symbol->st_shndx == SHN_UNDEF || ELF64_ST_BIND(symbol->st_info) == STB_LOCAL) return false;
  return ELF64_ST_TYPE(symbol->st_info) != STT_TLS && strcmp(object->names + symbol->st_name, name) == 0;
}

static bool is_default(const struct Object* object, uint32_t number) {
  return !object->versions || (object->versions[number] & version_hidden) == 0;
}

/// A symbol to look for. A library that takes the place of the C library's functions may define them in hidden
/// versions. An example is libc_malloc_debug.so. A hidden version is wanted where there is no default one.
struct Sought {
  const char* name;
  uint32_t hidden;  // the first of those versions; 0: none
};

static bool is_wanted(const struct Object* object, uint32_t number, struct Sought* sought) {
  if (!is_defined(object, number, sought->name)) return false;
  if (is_default(object, number)) return true;
  if (sought->hidden == 0) sought->hidden = number;
  return false;
}

// 0: none. Symbol 0 has no name.
static uint32_t find_by_gnu_hash(const struct Object* object, struct ObjectName name) {
  const uint32_t* table = object->gnu_hash;
  const uint32_t buckets_count = table[0], first = table[1], filter_words = table[2], shift = table[3];
  const uint64_t* filter = (const uint64_t*)(table + 4);
  const uint32_t* buckets = (const uint32_t*)(filter + filter_words);
  const uint32_t* chain = buckets + buckets_count;
  if (buckets_count == 0 || filter_words == 0) return 0;
  const uint64_t word = filter[name.hash / 64 % filter_words];
  if (((word >> name.hash % 64) & (word >> (name.hash >> shift) % 64) & 1) == 0) return 0;
  uint32_t number = buckets[name.hash % buckets_count];
  if (number < first) return 0;
  for (struct Sought sought = {name.text, 0};; number++) {
    const uint32_t hash = chain[number - first];
    if ((hash | 1) == (name.hash | 1) && is_wanted(object, number, &sought)) return number;
    if (hash & 1) return sought.hidden;
  }
}

static uint32_t find_by_old_hash(const struct Object* object, const char* name) {
  const uint32_t* table = object->old_hash;
  const uint32_t buckets = table[0];
  if (buckets == 0) return 0;
  struct Sought sought = {name, 0};
  uint32_t number = table[2 + old_hash_of(name) % buckets];
  while (number != 0 && !is_wanted(object, number, &sought)) number = table[2 + buckets + number];
  return number != 0 ? number : sought.hidden;
}

static uint32_t find_symbol(const struct Object* object, struct ObjectName name) {
  if (object->gnu_hash) return find_by_gnu_hash(object, name);
  return object->old_hash ? find_by_old_hash(object, name.text) : 0;
}

uint64_t object_symbol_bytes(const struct Object* object, struct ObjectName name) {
  const uint32_t number = find_symbol(object, name);
  return number ? object->symbols[number].st_size : 0;
}

void* object_symbol(const struct Object* object, struct ObjectName name) {
  const uint32_t number = find_symbol(object, name);
  if (number == 0) return NULL;
  const ElfW(Sym)* symbol = &object->symbols[number];
  void* found = (void*)(object->base + symbol->st_value);
  if (ELF64_ST_TYPE(symbol->st_info) != STT_GNU_IFUNC) return found;
  return ((void* (*)(void))(uintptr_t)found)();
}
