// The functions of glibc that a libstdc++ and a libgcc_eh for it call, and musl lacks.
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct Found {
  unsigned long long flags;
  void *begin, *end, *map, *header;
  void* unused[7];
};

struct Search {
  uintptr_t address;
  struct Found* found;
};

char __libc_single_threaded;
uint32_t arc4random(void) { return 4; }

size_t __strftime_l(char* out, size_t bytes, const char* format, const struct tm* time, void* locale) {
  (void)locale;
  return strftime(out, bytes, format, time);
}

int __cxa_thread_atexit_impl(void (*function)(void*), void* object, void* module) {
  (void)function, (void)object, (void)module;
  return 0;
}

static int look(struct dl_phdr_info* info, size_t bytes, void* argument) {
  const struct Search* search = argument;
  int is_inside = 0;
  (void)bytes;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    is_inside |= info->dlpi_phdr[i].p_type == PT_LOAD && search->address - begin < info->dlpi_phdr[i].p_memsz;
    if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME) search->found->header = (void*)begin;
  }
  return is_inside && search->found->header;
}

int _dl_find_object(void* address, struct Found* found) {
  struct Search search = {(uintptr_t)address, found};
  return dl_iterate_phdr(look, &search) ? 0 : -1;
}
