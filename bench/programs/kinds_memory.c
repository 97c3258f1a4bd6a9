// kinds_memory [NAME]: small programs that use malloc, mappings, the loader and the C library in unusual ways.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <grp.h>
#include <iconv.h>
#include <link.h>
#include <locale.h>
#include <malloc.h>
#include <netdb.h>
#include <pwd.h>
#include <regex.h>
#include <search.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <wordexp.h>
#include "kinds.h"

static void failing_calls(void) {
  volatile size_t huge = SIZE_MAX / 2;
  errno = 0;
  say("malloc", malloc(huge) != 0);
  say("errno", errno);
  errno = 0;
  say("calloc", calloc(huge, 4) != 0);
  say("errno", errno);
  void* block = malloc(100);
  errno = 0;
  say("realloc", realloc(block, huge) != 0);
  say("errno", errno);
  errno = 0;
  say("reallocarray", reallocarray(block, huge, 4) != 0);
  say("errno", errno);
  errno = 7;
  say("posix_memalign", posix_memalign(&block, 3, 100));
  say("posix_memalign", posix_memalign(&block, 64, huge));
  say("errno", errno);
  errno = 0;
  say("aligned_alloc", aligned_alloc(64, huge) != 0);
  say("errno", errno);
}

static void kept_errno(void) {
  errno = 77;
  churn(3);
  say("errno", errno);
  free(calloc(200000, 8));
  say("errno", errno);
}

static void every_form(void) {
  void* block = malloc(0);
  say("none", block != 0);
  free(block);
  free(0);
  block = memalign(4096, 5000);
  say("memalign", (uintptr_t)block % 4096 == 0);
  say("usable", malloc_usable_size(block) >= 5000);
  block = realloc(block, 100000);
  block = reallocarray(block, 10, 10);
  free(block);
  block = valloc(10);
  say("valloc", (uintptr_t)block % 4096 == 0);
  free(block);
  block = pvalloc(10);
  say("pvalloc", malloc_usable_size(block) >= 4096);
  free(block);
  char* text = strdup("copied");
  puts(text);
  free(text);
  say("asprintf", asprintf(&text, "%d", 12345));
  free(text);
  const unsigned char* zeros = calloc(1000, 1000);
  int sum = 0;
  for (int i = 0; i < 1000000; i++) {
    sum += zeros[i];
  }
  say("sum", sum);
  say("realloc to none", realloc(malloc(10), 0) != 0);
}

static void settings(void) {
  say("mallopt", mallopt(M_MMAP_THRESHOLD, 1 << 20));
  say("mallopt", mallopt(M_ARENA_MAX, 2));
  void* block = malloc(600000);
  const struct mallinfo2 info = mallinfo2();
  say("mapped", (long)info.hblkhd);
  say("in use", info.uordblks > 600000);
  free(block);
  say("trim", malloc_trim(0) >= 0);
}

static void break_moved(void) {
  char* top = sbrk(100000);
  memset(top, 1, 100000);
  churn(5);
  say("mine", top[99999]);
  say("moved", (char*)sbrk(0) >= top + 100000);
}

static void mappings(void) {
  char* room = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  strcpy(room, "moved");
  room = mremap(room, 1 << 20, 64 << 20, MREMAP_MAYMOVE);
  puts(room);
  say("advise", madvise(room, 1 << 20, MADV_DONTNEED));
  say("zero", room[0]);
  say("unmap", munmap(room, 64 << 20));
  for (int i = 0; i < 100; i++) {
    void* block = malloc(2000000);
    memset(block, i, 2000000);
    free(block);
  }
  say("done", 100);
}

static void all_locked(void) {
  say("lock", mlockall(MCL_CURRENT | MCL_FUTURE));
  churn(4);
  free(calloc(1000, 1000));
  if (fork() == 0) {
    churn(2);
    _exit(0);
  }
  wait(0);
  say("unlock", munlockall());
}

static void loaded_libraries(void) {
  const char* names[] = {"libm.so.6", "libz.so.1", "libstdc++.so.6", "libnothing.so"};
  for (int turn = 0; turn < 5; turn++) {
    for (int i = 0; i < 4; i++) {
      void* library = dlopen(names[i], turn % 2 ? RTLD_NOW : RTLD_LAZY);
      say(names[i], library != 0);
      if (!library) {
        puts(dlerror());
        continue;
      }
      dlclose(library);
    }
  }
  double (*cosine)(double) = (double (*)(double))dlsym(dlopen("libm.so.6", RTLD_NOW), "cos");
  printf("%.3f\n", cosine(1));
}

static void another_namespace(void) {
  void* library = dlmopen(LM_ID_NEWLM, "libz.so.1", RTLD_NOW);
  say("loaded", library != 0);
  const char* (*version)(void) = (const char* (*)(void))dlsym(library, "zlibVersion");
  puts(version());
}

static void next_symbol(void) {
  void* (*allocate)(size_t) = (void* (*)(size_t))dlsym(RTLD_NEXT, "malloc");
  void (*release)(void*) = (void (*)(void*))dlsym(RTLD_DEFAULT, "free");
  release(allocate(100));
  say("calloc", dlsym(RTLD_DEFAULT, "calloc") != 0);
  say("nothing", dlsym(RTLD_DEFAULT, "no_such_name") != 0);
  say("mallctl", dlsym(RTLD_DEFAULT, "mallctl") != 0);
  say("mark", dlsym(RTLD_DEFAULT, "tc_malloc") != 0);
  Dl_info info;
  say("address", dladdr((void*)puts, &info));
}

static int count_module(struct dl_phdr_info* info, size_t size, void* count) {
  (void)size;
  if (!strstr(info->dlpi_name, "libcmttrace")) {
    ++*(int*)count;
  }
  free(malloc(50));
  return 0;
}

static void modules(void) {
  int count = 0;
  dl_iterate_phdr(count_module, &count);
  say("modules", count);
  void* frames[20];
  say("frames", backtrace(frames, 20) > 2);
}

static int by_number(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }
static int visit(const char* path, const struct stat* status, int kind, struct FTW* where) {
  (void)path;
  (void)status;
  (void)kind;
  return where->level > 5;
}

static void keep(void* number) { (void)number; }

static void c_library(void) {
  int numbers[5000];
  for (int i = 0; i < 5000; i++) {
    numbers[i] = i * 7919 % 5000;
  }
  qsort(numbers, 5000, sizeof *numbers, by_number);
  say("sorted", numbers[4999]);
  regex_t expression;
  say("compile", regcomp(&expression, "^(a|b)*c[[:digit:]]+$", REG_EXTENDED));
  say("match", regexec(&expression, "ababc123", 0, 0, 0));
  regfree(&expression);
  glob_t found;
  say("glob", glob("/etc/pass*d", 0, 0, &found));
  say("paths", (long)found.gl_pathc);
  globfree(&found);
  wordexp_t words;
  say("wordexp", wordexp("a $HOME/b \"c d\" $(echo e f)", &words, 0));
  say("words", (long)words.we_wordc);
  wordfree(&words);
  say("walk", nftw("/etc/apt", visit, 10, 0));
  struct dirent** names;
  say("scandir", scandir("/etc/apt", &names, 0, alphasort) > 2);
  void* tree = 0;
  for (int i = 0; i < 100; i++) {
    tsearch(&numbers[i], &tree, by_number);
  }
  tdestroy(tree, keep);
  say("hcreate", hcreate(100));
  hdestroy();
}

static void streams(void) {
  char* text = 0;
  size_t size = 0;
  FILE* file = open_memstream(&text, &size);
  for (int i = 0; i < 10000; i++) {
    fprintf(file, "%d ", i);
  }
  fclose(file);
  say("size", (long)size);
  free(text);
  text = 0;
  size = 0;
  file = popen("seq 1 1000", "r");
  say("number", fileno(file));
  long lines = 0;
  while (getline(&text, &size, file) > 0) {
    lines++;
  }
  free(text);
  say("lines", lines);
  say("closed", pclose(file));
  file = tmpfile();
  fputs("temporary", file);
  say("position", ftell(file));
  fclose(file);
  say("system", system("exit 5"));
}

static void databases(void) {
  puts(getpwuid(0)->pw_name);
  puts(getgrgid(0)->gr_name);
  struct addrinfo *found, hint = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
  say("localhost", getaddrinfo("localhost", "80", &hint, &found));
  freeaddrinfo(found);
  puts(getservbyname("https", "tcp") ? "https" : "none");
  puts(setlocale(LC_ALL, "C.UTF-8"));
  iconv_t converter = iconv_open("UTF-16LE", "UTF-8");
  char in[] = "gr\xc3\xbc\xc3\x9f", out[40], *from = in, *to = out;
  size_t left = sizeof in, room = sizeof out;
  say("iconv", (long)iconv(converter, &from, &left, &to, &room));
  say("written", to - out);
  iconv_close(converter);
}

static void environment(void) {
  for (int i = 0; i < 500; i++) {
    char name[20];
    snprintf(name, sizeof name, "NAME_%d", i);
    setenv(name, "value", 1);
  }
  say("set", getenv("NAME_77") != 0);
  if (fork() == 0) {
    clearenv();
    churn(2);
    _exit(system("exit 3") >> 8);
  }
  int status;
  wait(&status);
  say("status", WEXITSTATUS(status));
  execl("/bin/sh", "sh", "-c", "env | grep -c NAME_", (char*)0);
}

static void filtered(void) {
  say("no new rights", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  free(malloc(100));
  say("strict", prctl(PR_SET_SECCOMP, 1, 0, 0, 0));
  free(malloc(100));
  static const char text[] = "still here\n";
  syscall(SYS_exit, write(1, text, sizeof text - 1) > 0 ? 6 : 7);
}

static char heap[1 << 20];
static size_t used;
static void* arena_allocate(size_t size) {
  void* block = heap + used;
  used = (used + size + 15) / 16 * 16;
  return used < sizeof heap ? block : 0;
}

static void own_arena(void) {
  int count = 0;
  while (arena_allocate((size_t)count % 100 + 1)) {
    count++;
  }
  say("blocks", count);
}

static void deep_recursion_of(int depth) {
  volatile char room[300];
  room[0] = 1;
  void* block = malloc((size_t)depth % 50);
  if (depth > 0) {
    deep_recursion_of(depth - 1);
  }
  free(block);
  room[1] = room[0];
}

static void deep_recursion(void) {
  deep_recursion_of(10000);
  say("depth", 10000);
}

static void many_live(void) {
  void** blocks = malloc(200000 * sizeof *blocks);
  for (int i = 0; i < 200000; i++) {
    blocks[i] = malloc((size_t)i % 40);
  }
  for (int i = 0; i < 200000; i += 2) {
    free(blocks[i]);
  }
  say("live", 100000);
}

static void touched_pages(void) {
  for (int i = 0; i < 50; i++) {
    char* block = malloc(10 << 20);
    for (int page = 0; page < 2560; page += i + 1) {
      block[page * 4096L] = 1;
    }
    free(block);
  }
  say("done", 50);
}

static const struct kind kinds[] = {
    {"failing_calls", failing_calls},
    {"kept_errno", kept_errno},
    {"every_form", every_form},
    {"settings", settings},
    {"break_moved", break_moved},
    {"mappings", mappings},
    {"all_locked", all_locked},
    {"loaded_libraries", loaded_libraries},
    {"another_namespace", another_namespace},
    {"next_symbol", next_symbol},
    {"modules", modules},
    {"c_library", c_library},
    {"streams", streams},
    {"databases", databases},
    {"environment", environment},
    {"filtered", filtered},
    {"own_arena", own_arena},
    {"deep_recursion", deep_recursion},
    {"many_live", many_live},
    {"touched_pages", touched_pages},
};

int main(int argc, char** argv) { return run_kind(kinds, sizeof kinds / sizeof *kinds, argc, argv); }
