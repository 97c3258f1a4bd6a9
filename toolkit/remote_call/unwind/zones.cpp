// Collects the zones of a process from its modules and their exported functions.
#include "toolkit/remote_call/unwind/zones.h"

#include <algorithm>

namespace cmt::remote_call {
namespace {

constexpr std::uint64_t before_libc_malloc = 32 << 10, around_own_malloc = 256 << 10;

constexpr const char* malloc_family[] = {
    "malloc",        "free",           "calloc",          "realloc",     "memalign",           "aligned_alloc",
    "valloc",        "pvalloc",        "posix_memalign",  "malloc_trim", "malloc_usable_size", "mallinfo",
    "mallinfo2",     "mallopt",        "malloc_stats",    "malloc_info", "__libc_malloc",      "__libc_free",
    "__libc_calloc", "__libc_realloc", "__libc_memalign",
};

// Other parts of libc from 2.34 on, the last ones before malloc.c. A thread may wait in many of their functions. Each
// part of libc is in one piece, so malloc.c begins after all of these.
constexpr const char* parts_before_malloc[] = {
    "thrd_join",  "tss_set",      "pthread_atfork", "sem_wait",         "sem_timedwait",   "sem_unlink",
    "shm_unlink", "aio_suspend",  "lio_listio",     "aio_write",        "mq_timedreceive", "mq_timedsend",
    "mq_unlink",  "timer_create", "timer_delete",   "timer_getoverrun", "timer_gettime",   "timer_settime",
};

// Not clone: it is the outermost frame of each thread before glibc 2.34.
constexpr const char* locked_calls[] = {
    "fork",
    "_Fork",
    "vfork",
    "__fork",
    "__libc_fork",
    "posix_spawn",
    "posix_spawnp",
    "system",
    "popen",
    "wordexp",
    "forkpty",
    "daemon",
    "pthread_create",
    "pthread_exit",
    "exit",
    "quick_exit",
    "atexit",
    "at_quick_exit",
    "on_exit",
    "__cxa_atexit",
    "__cxa_finalize",
    "__cxa_at_quick_exit",
    "__register_atfork",
    "pthread_atfork",
    "__cxa_thread_atexit_impl",
    "dl_iterate_phdr",
    "dlopen",
    "dlmopen",
    "dlclose",
    "dlsym",
    "dlvsym",
    "dladdr",
    "dladdr1",
    "dlinfo",
    "dlerror",
    "__libc_dlopen_mode",
    "__libc_dlsym",
    "__libc_dlclose",
    "__libc_freeres",
    "pthread_key_create",
    "pthread_key_delete",
    "abort",
};

bool has_name(const Module& module, std::string_view stem) {
  const std::string_view file = module.file_name();
  return file.starts_with(std::string(stem) + ".so") || file.starts_with(std::string(stem) + "-2.");
}

}  // namespace

bool is_libc(const Module& module) { return has_name(module, "libc"); }

Zones::Zones(const RemoteMemory& memory, const std::vector<Module>& modules, const EntryPoints& entries) {
  for (const Module& module : modules) {
    if (module.begin == entries.loader) {
      ranges_.push_back({module.begin, module.end, Zone::loader});
    } else if (process::is_tracer(module.name)) {
      ranges_.push_back({module.begin, module.end, Zone::tracer});
    } else {
      add_allocator(memory, module, module.contains(entries.program));
      if (is_libc(module) || has_name(module, "libpthread") || has_name(module, "libdl"))
        add_locked_calls(memory, module);
    }
  }
}

void Zones::add_allocator(const RemoteMemory& memory, const Module& module, bool is_program) {
  if (!find_function(memory, module, "malloc")) return;
  if (is_libc(module)) return add_libc_malloc(memory, module);
  if (!is_program) {
    ranges_.push_back({module.begin, module.end, Zone::allocator});
    return;
  }
  has_malloc_in_program_ = true;
  for (const char* const name : malloc_family) {
    const auto function = find_function(memory, module, name);
    if (!function) continue;
    const std::uint64_t begin = function->address, end = begin + function->size;
    ranges_.push_back({begin - std::min(begin - module.begin, around_own_malloc),
                       end + std::min(module.end - end, around_own_malloc), Zone::allocator});
  }
}

void Zones::add_libc_malloc(const RemoteMemory& memory, const Module& module) {
  std::uint64_t begin = UINT64_MAX, end = 0;
  for (const char* const name : malloc_family) {
    const auto function = find_function(memory, module, name);
    if (!function) continue;
    begin = std::min(begin, function->address);
    end = std::max(end, function->address + function->size);
  }
  std::uint64_t first = std::max(begin - before_libc_malloc, module.begin);
  for (const char* const name : parts_before_malloc) {
    const auto function = find_function(memory, module, name);
    if (function && function->address < begin) first = std::max(first, function->address + function->size);
  }
  ranges_.push_back({first, std::min(end, module.end), Zone::allocator});
}

void Zones::add_locked_calls(const RemoteMemory& memory, const Module& module) {
  for (const char* const name : locked_calls) {
    const auto function = find_function(memory, module, name);
    if (function) ranges_.push_back({function->address, function->address + function->size, Zone::locked_call});
  }
}

Zone Zones::at(std::uint64_t address) const {
  // A return address just after the last instruction of a function that does not return belongs to that function.
  for (const Range& range : ranges_) {
    if (range.begin <= address && address <= range.end) return range.zone;
  }
  return Zone::none;
}

}  // namespace cmt::remote_call
