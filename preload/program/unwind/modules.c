// Enters modules into the shared table with their path, address range and build id, without a lock.
#include "preload/program/unwind/modules.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#include "preload/program/block_filter.h"
#include "preload/program/hooks/find.h"
#include "preload/program/hooks/object.h"
#include "preload/program/kernel.h"
#include "preload/program/unwind/memory.h"

enum { no_link_map = 1, path_bytes_max = 4096, page_bytes = 4096 };

uintptr_t unwind_loader_begin, unwind_loader_bytes;
uint8_t unwind_extras;

LARGE_VARIABLE static struct {
  int (*find_object)(void*, struct dl_find_object*);
  struct r_debug* const* list;  // musl's
  struct StackShare* share;
  uint32_t looked_at;  // by unwind_next_module()
  char program[path_bytes_max];
} modules;

bool modules_find_loader(void) {
  struct dl_find_object loader;
  if (!modules.find_object) *(void**)&modules.find_object = find_one("_dl_find_object", find_everywhere);
  if (!modules.find_object) *(void**)&modules.list = find_one("_dl_debug_addr", find_everywhere);
  if (!modules.find_object) return modules.list != NULL;
  if (modules.find_object((void*)getauxval(AT_BASE), &loader) == 0) {
    unwind_loader_begin = (uintptr_t)loader.dlfo_map_start;
    unwind_loader_bytes = (uintptr_t)loader.dlfo_map_end - unwind_loader_begin;
  }
  return true;
}

void modules_begin(struct StackShare* share) {
  modules.share = share;
  modules.looked_at = 0;
  if (share->text_used == 0) share->text_used = 1;
  if (sandbox_entered) return;
  const long bytes = sys(SYS_readlink, "/proc/self/exe", modules.program, sizeof modules.program - 1);
  modules.program[bytes > 0 ? bytes : 0] = 0;
}

static bool find_in_list(uintptr_t address, struct LoadedModule* module);

// _dl_find_object (glibc 2.35) takes no lock and allocates nothing.
bool module_find(uintptr_t address, struct LoadedModule* module) {
  struct dl_find_object found;
  if (!modules.find_object) return find_in_list(address, module);
  if (modules.find_object((void*)address, &found) != 0) return false;
  module->link_map = found.dlfo_link_map;
  module->begin = (uintptr_t)found.dlfo_map_start;
  module->end = (uintptr_t)found.dlfo_map_end;
  module->header = (uintptr_t)found.dlfo_eh_frame;
  module->info_begin = module->begin;
  module->info_end = module->end;
  if (module->header < module->begin || module->header >= module->end) {
    // A program at a fixed address. The loader knows its segments, but does not report which one has .eh_frame.
    enum { info_distance_max = 1 << 30 };
    module->info_begin = module->header > info_distance_max ? module->header - info_distance_max : 0;
    module->info_end = module->header + info_distance_max;
  }
  return true;
}

static size_t tables_from(const void* context, uint64_t address, const uint8_t** bytes) {
  const struct LoadedModule* module = context;
  if (address < module->info_begin || address >= module->info_end) return 0;
  *bytes = (const uint8_t*)(uintptr_t)address;
  return module->info_end - (uintptr_t)address;
}

struct CfiTables module_tables(const struct LoadedModule* module) {
  return (struct CfiTables){module->header, tables_from, module};
}

// The program headers of a module in memory.
struct Headers {
  const ElfW(Phdr) * first;
  size_t count;
};

// glibc gives the program no name. Where musl's loader was called by its name, the program is as any module.
static bool is_program(const struct link_map* map) {
  return map->l_name[0] == 0 || (modules.list && map == (*modules.list)->r_map && getauxval(AT_BASE) != 0);
}

static struct Headers find_headers(const struct LoadedModule* module) {
  struct Headers headers = {NULL, 0};
  const ElfW(Ehdr)* file = (const ElfW(Ehdr)*)module->begin;
  if (is_program(module->link_map)) {
    headers.first = (const ElfW(Phdr)*)getauxval(AT_PHDR);
    headers.count = headers.first ? getauxval(AT_PHNUM) : 0;
  } else if (memory_is_readable(module->begin) && memcmp(file->e_ident, ELFMAG, SELFMAG) == 0 &&
             file->e_phentsize == sizeof *headers.first && file->e_phoff % 8 == 0 &&
             file->e_phoff + file->e_phnum * sizeof *headers.first <= page_bytes) {
    headers.first = (const ElfW(Phdr)*)(module->begin + file->e_phoff);
    headers.count = file->e_phnum;
  }
  return headers;
}

// musl has no _dl_find_object, and dl_iterate_phdr takes a lock. Its loader appends modules to a list, and takes none
// away but those of a dlopen that fails: another thread may do that meanwhile.
static bool find_in_list(uintptr_t address, struct LoadedModule* module) {
  const struct link_map* below = NULL;
  const struct link_map* map = (*modules.list)->r_map;
  for (; map && memory_is_readable((uintptr_t)map); map = map->l_next) {
    if (map->l_addr <= address && (!below || map->l_addr > below->l_addr)) below = map;
  }
  if (!below) return false;
  *module = (struct LoadedModule){.link_map = below, .begin = below->l_addr};
  const struct Headers headers = find_headers(module);
  uintptr_t begin = UINTPTR_MAX;
  for (size_t i = 0; i < headers.count; i++) {
    const ElfW(Phdr)* segment = &headers.first[i];
    const uintptr_t from = below->l_addr + segment->p_vaddr, to = from + segment->p_memsz;
    if (segment->p_type == PT_GNU_EH_FRAME) module->header = from;
    if (segment->p_type != PT_LOAD) continue;
    if (from < begin) begin = from;
    if (to > module->end) module->end = to;
  }
  module->begin = module->info_begin = begin / page_bytes * page_bytes;
  module->info_end = module->end;
  return address >= begin && address < module->end;
}

// Whether a readable segment of the file contains the bytes. Addresses as in the file.
static bool are_loaded(struct Headers headers, uintptr_t begin, uintptr_t bytes) {
  for (size_t i = 0; i < headers.count; i++) {
    const ElfW(Phdr)* segment = &headers.first[i];
    if (segment->p_type == PT_LOAD && segment->p_flags & PF_R && begin >= segment->p_vaddr &&
        begin - segment->p_vaddr <= segment->p_filesz && bytes <= segment->p_filesz - (begin - segment->p_vaddr))
      return true;
  }
  return false;
}

// Looks for the build id among the notes of a segment. Each note and each of its parts begins at a multiple of `align`.
static void find_in_notes(const uint8_t* at, size_t left, size_t align, struct StackModule* module) {
  ElfW(Nhdr) note;
  while (left >= sizeof note) {
    memcpy(&note, at, sizeof note);
    const size_t name = sizeof note, id = (name + (size_t)note.n_namesz + align - 1) & ~(align - 1);
    const size_t end = (id + (size_t)note.n_descsz + align - 1) & ~(align - 1);
    if (id + note.n_descsz > left) return;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(at + name, "GNU", 4) == 0 &&
        note.n_descsz <= stack_build_id_max) {
      module->build_id_bytes = note.n_descsz;
      memcpy(module->build_id, at + id, note.n_descsz);
      return;
    }
    if (end >= left) return;
    at += end;
    left -= end;
  }
}

static void read_build_id(const struct LoadedModule* found, struct StackModule* module) {
  const struct Headers headers = find_headers(found);
  for (size_t i = 0; i < headers.count && module->build_id_bytes == 0; i++) {
    const ElfW(Phdr)* notes = &headers.first[i];
    if (notes->p_type != PT_NOTE || !are_loaded(headers, notes->p_vaddr, notes->p_memsz)) continue;
    const uintptr_t at = module->bias + notes->p_vaddr;
    if (!memory_is_readable(at) || !memory_is_readable(at + notes->p_memsz - 1)) continue;
    find_in_notes((const uint8_t*)at, notes->p_memsz, notes->p_align == 8 ? 8 : 4, module);
  }
}

void module_symbol(uintptr_t address, const struct WantedSymbol* wanted) {
  struct LoadedModule module;
  struct Object object;
  if (!module_find(address, &module)) return;
  const struct Headers headers = find_headers(&module);
  const struct dl_phdr_info info = {
      .dlpi_addr = ((const struct link_map*)module.link_map)->l_addr,
      .dlpi_name = ((const struct link_map*)module.link_map)->l_name,
      .dlpi_phdr = headers.first,
      .dlpi_phnum = (ElfW(Half))headers.count,
  };
  if (!headers.first || !object_read(&object, &info) || object_is_ours(&object)) return;
  void* const found = object_symbol(&object, object_name(wanted->name));
  if (found) *wanted->found = found;
  if (found && wanted->bytes) *wanted->bytes = object_symbol_bytes(&object, object_name(wanted->name));
}

extern ElfW(Dyn) _DYNAMIC[] HIDDEN;

static const char* path_of(const struct LoadedModule* module) {
  const struct link_map* map = module->link_map;
  if (is_program(map)) return modules.program;
  // An attach has loaded us by a descriptor, whose number means nothing to the reader of the trace.
  if (map->l_ld == _DYNAMIC && strncmp(map->l_name, "/proc/", 6) == 0) return "/memfd:cmttrace (deleted)";
  return module->begin == getauxval(AT_SYSINFO_EHDR) ? "[vdso]" : map->l_name;
}

static uint32_t keep_text(const char* text) {
  struct StackShare* share = modules.share;
  const size_t bytes = strnlen(text, path_bytes_max - 1) + 1;
  if (bytes == 1 || __atomic_load_n(&share->text_used, __ATOMIC_RELAXED) + bytes > stack_text_bytes) return 0;
  const uint32_t at = __atomic_fetch_add(&share->text_used, (uint32_t)bytes, __ATOMIC_RELAXED);
  if (at + bytes > stack_text_bytes) return 0;
  memcpy(share->text + at, text, bytes - 1);
  return at;
}

static uint32_t modules_used(void) {
  const uint32_t used = __atomic_load_n(&modules.share->modules, __ATOMIC_ACQUIRE);
  return used < stack_modules_max ? used : stack_modules_max;
}

static bool has_same_file(const struct StackModule* a, const struct StackModule* b, const char* path) {
  return a->begin == b->begin && a->end == b->end && a->bias == b->bias && a->build_id_bytes != 0 &&
         a->build_id_bytes == b->build_id_bytes && memcmp(a->build_id, b->build_id, a->build_id_bytes) == 0 &&
         strcmp(modules.share->text + a->path_at, path) == 0;
}

// Gives a module that was unloaded and loaded again its old entry. Returns its number, or 0 if it has none.
static uint32_t return_module(const struct StackModule* module, const char* path) {
  const uint32_t used = modules_used();
  for (uint32_t i = 0; i < used; i++) {
    struct StackModule* known = &modules.share->module[i];
    uint64_t gone = no_link_map;
    if (__atomic_load_n(&known->link_map, __ATOMIC_ACQUIRE) != gone || !has_same_file(known, module, path)) continue;
    if (!__atomic_compare_exchange_n(&known->link_map, &gone, module->link_map, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
      continue;
    __atomic_store_n(&known->unloaded, 0, __ATOMIC_RELEASE);
    return i + 1;
  }
  return 0;
}

static uint32_t enter_module(const struct LoadedModule* found) {
  const char* path = path_of(found);
  struct StackModule module = {
      .link_map = (uintptr_t)found->link_map,
      .begin = found->begin,
      .end = found->end,
      .bias = ((const struct link_map*)found->link_map)->l_addr,
  };
  read_build_id(found, &module);
  block_filter_add_always(found->link_map, 1);  // its free is to be seen by the sampler, too
  const uint32_t old = return_module(&module, path);
  if (old != 0) return old;
  if (modules_used() == stack_modules_max) return 0;
  const uint32_t index = __atomic_fetch_add(&modules.share->modules, 1, __ATOMIC_RELAXED);
  if (index >= stack_modules_max) return 0;
  struct StackModule* entry = &modules.share->module[index];
  module.path_at = keep_text(path);
  module.loaded = clock_stamp(false);
  const uint64_t link_map = module.link_map;
  module.link_map = 0;
  *entry = module;
  __atomic_store_n(&entry->link_map, link_map, __ATOMIC_RELEASE);
  __atomic_fetch_or(&unwind_extras, unwind_met_module, __ATOMIC_RELEASE);
  return index + 1;
}

uintptr_t unwind_next_module(void) {
  while (modules.looked_at < modules_used()) {
    const struct StackModule* const module = &modules.share->module[modules.looked_at];
    if (__atomic_load_n(&module->link_map, __ATOMIC_ACQUIRE) == 0) break;  // not complete
    modules.looked_at++;
    if (module->link_map != no_link_map) return module->begin;
  }
  return 0;
}

void unwind_first_module(void) { modules.looked_at = 0; }

uint32_t module_number(const struct LoadedModule* module) {
  const uint32_t used = modules_used();
  for (uint32_t i = 0; i < used; i++) {
    const struct StackModule* known = &modules.share->module[i];
    if (__atomic_load_n(&known->link_map, __ATOMIC_ACQUIRE) == (uintptr_t)module->link_map &&
        known->begin == module->begin)
      return i + 1;
  }
  return enter_module(module);
}

void modules_remove(const void* link_map, void (*forget)(uint32_t number)) {
  if ((uintptr_t)link_map <= no_link_map || !modules.share) return;
  const uint32_t used = modules_used();
  for (uint32_t i = 0; i < used; i++) {
    struct StackModule* known = &modules.share->module[i];
    if (__atomic_load_n(&known->link_map, __ATOMIC_ACQUIRE) != (uintptr_t)link_map) continue;
    __atomic_store_n(&known->unloaded, clock_stamp(false), __ATOMIC_RELEASE);
    forget(i + 1);
    __atomic_store_n(&known->link_map, no_link_map, __ATOMIC_RELEASE);
  }
}
