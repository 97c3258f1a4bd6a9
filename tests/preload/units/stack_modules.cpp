// The unwinder (preload/program/unwind/unwind.h) where modules come and go: each capture is compared with a walk by
// rules alone and with libgcc's (tests/preload/units/stacks.h). This program's malloc and free do what the tracer's do.
//
// stack_modules FIRST SECOND: two variants of stack_plugin.c
#include <dlfcn.h>
#include <iconv.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "tests/preload/units/stacks.h"

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void __libc_free(void* block);
}

namespace {

bool is_watching;
int watched;       // captures in malloc and calloc
int lazily_bound;  // of them, beneath the loader's lazy binding

// In malloc: of the program, and of the loader.
void watch(const void* frame) {
  if (!is_watching) return;
  is_watching = false;
  stacks::check_from(frame, {});
  watched++;
  is_watching = true;
}

}  // namespace

extern "C" void* malloc(size_t size) {
  watch(__builtin_frame_address(0));
  return __libc_malloc(size);
}

extern "C" void* calloc(size_t count, size_t size) {
  watch(__builtin_frame_address(0));
  return __libc_calloc(count, size);
}

extern "C" void free(void* block) {
  unwind_before_free(block, __builtin_return_address(0));
  __libc_free(block);
}

namespace {

using CallBack = void (*)(void (*)());

__attribute__((noinline)) void look() {
  stacks::check();
  __asm__ volatile("" ::: "memory");
}

struct Module {
  void* handle;
  CallBack call_back;
  explicit Module(const char* path) : handle(dlopen(path, RTLD_LAZY | RTLD_LOCAL)) {
    if (!handle) {
      std::puts(dlerror());
      std::abort();
    }
    call_back = reinterpret_cast<CallBack>(dlsym(handle, "call_back"));
  }
  ~Module() { dlclose(handle); }
};

// Another module is loaded to the addresses of one that is gone. Both come back: the table does not grow for ever.
void reuse_addresses(const char* first, const char* second) {
  int reused = 0;
  uint32_t rules = 0, modules = 0;
  const void* last = nullptr;
  for (int i = 0; i < 20; i++) {
    if (i == 10) rules = stacks::table->used, modules = stacks::share->modules;
    const Module module(i % 2 ? second : first);
    const void* address = reinterpret_cast<const void*>(module.call_back);
    reused += last == address;
    last = address;
    module.call_back(look);
    stacks::check();
    module.call_back(look);
  }
  if (reused == 0) {
    std::puts("no address was used again");
    std::exit(77);
  }
  if (reused == 19 && (rules != stacks::table->used || modules != stacks::share->modules)) {
    std::printf("%u rules, then %u; %u modules, then %u\n", rules, stacks::table->used, modules,
                stacks::share->modules);
    std::exit(1);
  }
}

// The modules in the table are those of the loader.
void check_modules() {
  bool has_program = false, has_library = false;
  for (uint32_t i = 0; i < stacks::share->modules; i++) {
    const StackModule& module = stacks::share->module[i];
    Dl_info info{};
    if (module.unloaded != 0) continue;
    const std::string_view path = stacks::share->text + module.path_at;
    if (dladdr(reinterpret_cast<void*>(module.begin + 0x1000), &info) == 0 ||
        reinterpret_cast<uint64_t>(info.dli_fbase) != module.begin || module.loaded == 0 || path.empty()) {
      std::printf("module %u, %s: %s, %#lx, %p\n", i, std::string(path).c_str(), info.dli_fname, module.begin,
                  info.dli_fbase);
      std::exit(1);
    }
    has_program |= path == std::filesystem::read_symlink("/proc/self/exe");
    has_library |= path.find("libc.so") != std::string_view::npos && module.build_id_bytes == 20;
  }
  if (!has_program || !has_library) {
    std::puts("the program or libc is missing");
    std::exit(1);
  }
}

// libc unloads iconv's modules by itself.
void convert() {
  const char* const sets[] = {"ISO-8859-7", "KOI8-R", "EUC-JP", "CP1251", "MACINTOSH", "IBM850"};
  is_watching = true;
  for (int i = 0; i < 30; i++) {
    iconv_t conversion = iconv_open(sets[i % 6], "UTF-8");
    char text[] = "text", out[16];
    char *from = text, *to = out;
    size_t left = sizeof text, room = sizeof out;
    if (conversion == reinterpret_cast<iconv_t>(-1)) continue;  // not installed
    iconv(conversion, &from, &left, &to, &room);
    iconv_close(conversion);
  }
  is_watching = false;
  stacks::check();
}

// The loader allocates while it binds a function: beneath _dl_runtime_resolve, whose frame is found by rbx.
void bind_lazily(const char* first, const char* second) {
  void* other = dlopen(second, RTLD_LAZY | RTLD_GLOBAL);
  const Module module(first);
  const auto call_other = reinterpret_cast<CallBack>(dlsym(module.handle, "call_other"));
  const int before = watched;
  is_watching = true;
  call_other([] {});
  is_watching = false;
  lazily_bound = watched - before;
  call_other(look);
  dlclose(other);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  stacks::begin();
  reuse_addresses(arguments[1], arguments[2]);
  const uint32_t epoch = stacks::reader().thread.epoch;
  look();
  if (epoch < 10) {
    std::puts("modules went unnoticed");
    return 1;
  }
  convert();
  bind_lazily(arguments[1], arguments[2]);
  check_modules();
  if (lazily_bound == 0) {
    std::puts("the loader did not allocate");
    return 1;
  }
  std::printf("%lu captures, %d in malloc, %d while binding\n", stacks::reader().captures, watched, lazily_bound);
}
