#include "preload/program/give_back/got.h"

#include <link.h>
#include <stdbool.h>
#include <string.h>

#include "preload/program/kernel.h"

enum { page = 4096, read_only = 1, writable = 3 };  // of mprotect

struct Hooks {
  const struct GotHook* hooks;
  int count;
};

/// What the dynamic section of a module says.
struct Module {
  uintptr_t base, begin, end, read_only_begin, read_only_end;
  const ElfW(Sym) * symbols;
  const char* names;
  const ElfW(Rela) * tables[2];
  uint64_t bytes[2];
};

static void read_headers(struct Module* module, const struct dl_phdr_info* object, const ElfW(Dyn) * *dynamic) {
  *module = (struct Module){.base = object->dlpi_addr, .begin = UINTPTR_MAX};
  *dynamic = NULL;
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr)* header = &object->dlpi_phdr[i];
    const uintptr_t from = module->base + header->p_vaddr, to = from + header->p_memsz;
    if (header->p_type == PT_LOAD && from < module->begin) module->begin = from;
    if (header->p_type == PT_LOAD && to > module->end) module->end = to;
    if (header->p_type == PT_DYNAMIC) *dynamic = (const ElfW(Dyn)*)from;
    if (header->p_type != PT_GNU_RELRO) continue;
    module->read_only_begin = from / page * page;  // in whole pages, as the loader protects them
    module->read_only_end = to / page * page;
  }
}

static bool has(const struct Module* module, uintptr_t address) {
  return address >= module->begin && address < module->end;
}

// False: a module whose section has no addresses, such as the kernel's, or no relocations.
static bool read_dynamic(struct Module* module, const ElfW(Dyn) * dynamic) {
  for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
    const uintptr_t value = dynamic->d_un.d_ptr;
    if (dynamic->d_tag == DT_SYMTAB) module->symbols = (const void*)value;
    if (dynamic->d_tag == DT_STRTAB) module->names = (const char*)value;
    if (dynamic->d_tag == DT_JMPREL) module->tables[0] = (const void*)value;
    if (dynamic->d_tag == DT_PLTRELSZ) module->bytes[0] = value;
    if (dynamic->d_tag == DT_RELA) module->tables[1] = (const void*)value;
    if (dynamic->d_tag == DT_RELASZ) module->bytes[1] = value;
  }
  return has(module, (uintptr_t)module->symbols) && has(module, (uintptr_t)module->names);
}

static void store(const struct Module* module, AnyFunction** word, AnyFunction* value) {
  const uintptr_t begin = (uintptr_t)word / page * page;
  const bool is_read_only = (uintptr_t)word >= module->read_only_begin && (uintptr_t)word < module->read_only_end;
  if (is_read_only && sys(SYS_mprotect, begin, page, writable) != 0) return;
  __atomic_store_n(word, value, __ATOMIC_RELEASE);
  if (is_read_only) sys(SYS_mprotect, begin, page, read_only);
}

// A word that is not bound yet leads to its own module.
static void replace_word(const struct Module* module, const ElfW(Rela) * relocation, const struct Hooks* all) {
  const unsigned type = (unsigned)ELF64_R_TYPE(relocation->r_info);
  if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) return;
  const char* name = module->names + module->symbols[ELF64_R_SYM(relocation->r_info)].st_name;
  for (int i = 0; i < all->count; i++) {
    const struct GotHook* hook = &all->hooks[i];
    if (!hook->real || strcmp(hook->name, name) != 0) continue;
    AnyFunction** word = (AnyFunction**)(module->base + relocation->r_offset);
    const bool is_unbound = type == R_X86_64_JUMP_SLOT && has(module, (uintptr_t)*word);
    if (*word == hook->real || is_unbound) store(module, word, hook->ours);
  }
}

static int replace_in(struct dl_phdr_info* object, size_t bytes, void* hooks) {
  (void)bytes;
  struct Module module;
  const ElfW(Dyn) * dynamic;
  read_headers(&module, object, &dynamic);
  if (has(&module, (uintptr_t)&got_replace) || !read_dynamic(&module, dynamic)) return 0;
  for (int t = 0; t < 2; t++) {
    const uint64_t count = module.tables[t] ? module.bytes[t] / sizeof(ElfW(Rela)) : 0;
    for (uint64_t i = 0; i < count; i++) replace_word(&module, &module.tables[t][i], hooks);
  }
  return 0;
}

void got_replace(const struct GotHook* hooks, int count) {
  struct Hooks all = {hooks, count};
  for (int i = 0; i < count; i++) {
    if (!hooks[i].real) continue;
    dl_iterate_phdr(replace_in, &all);
    return;
  }
}
