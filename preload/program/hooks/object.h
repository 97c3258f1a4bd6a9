/// A program or library as it lies in memory: what its dynamic section says.
///
/// The C library's dlsym, dladdr and dlerror are not used in the tracer. They have another version since glibc 2.34, so
/// that a library which names them cannot be loaded by an older one. They also allocate: a text for each name that is
/// not found, while the first malloc waits.
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct Object {
  const char* path;  ///< the loader's name of it: empty for the program
  uintptr_t base;    ///< what is added to the file's addresses
  uintptr_t begin, end;
  uintptr_t relro_begin, relro_end;  ///< whole pages that the loader makes read-only once the words in them are bound
  const ElfW(Sym) * symbols;
  const char* names;
  const uint16_t* versions;  ///< NULL: none
  const uint32_t* gnu_hash;  ///< NULL: none
  const uint32_t* old_hash;  ///< NULL: none
  const ElfW(Rela) * tables[2];
  uint64_t bytes[2];
};

/// False: there is no dynamic section with symbols.
bool object_read(struct Object* object, const struct dl_phdr_info* info);

static inline bool object_has(const struct Object* object, uintptr_t address) {
  return address - object->begin < object->end - object->begin;
}

/// Whether it is the tracer itself.
bool object_is_ours(const struct Object* object);

/// A name to look for, with the hash that is needed for it.
struct ObjectName {
  const char* text;
  uint32_t hash;
};
struct ObjectName object_name(const char* text);

/// The address of a symbol that it defines; NULL: none. The version is the one that a program would be linked to today.
/// Where there is none of these, any version is taken.
void* object_symbol(const struct Object* object, struct ObjectName name);
/// Its size in bytes; 0: there is none.
uint64_t object_symbol_bytes(const struct Object* object, struct ObjectName name);
