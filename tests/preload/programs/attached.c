// A program that attaches the tracer to itself, as cmttrace does to a program that runs (preload/attach.h). It makes
// the file with the library, followed by struct Attach, and loads it while its threads are at work. A thread of its own
// plays cmttrace: it takes the rings, creates the trace and starts the collector. So the side in the program is tested
// without ptrace.
//
//     attached MODE LIBRARY COLLECTOR FOLDER [PLUGIN]
//
// counts   attaches three times; between the phases its threads wait, so that each call is known to be recorded
//          or not. Prints what each trace has to have.
//
// storm    attaches and detaches while all threads allocate, one forks and one loads and unloads PLUGIN.
//
// killed   the collector is killed: the program goes on, and can be attached to again.
//
// loads    PLUGIN is loaded after the attach, in each way that there is. Prints what it has called.
// refused  nobody takes the rings, and settings are wrong.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "preload/attach.h"
#include "preload/protocol.h"

enum { threads = 4, blocks = 500 };

static const char *library, *collector, *folder, *plugin;
static struct Attach* shared;
static int (*again)(int), (*detach)(void), (*release_tracer)(void);
static int rings = -1, output = -1, recordings;
static pid_t writer;
static bool others_open_files;

static void stop(const char* what) {
  fprintf(stderr, "attached: %s: %s\n", what, strerror(errno));
  _exit(1);
}

static void expect(bool is_so, const char* what) {
  if (is_so) return;
  fprintf(stderr, "attached: %s (state %u: %s)\n", what, shared ? shared->state : 99, shared ? shared->message : "");
  _exit(1);
}

// ---- cmttrace's part

// Returns the file's descriptor, which the tracer closes.
static int make_file(const char* settings, size_t bytes) {
  const int file = memfd_create("cmttrace", MFD_CLOEXEC), from = open(library, O_RDONLY | O_CLOEXEC);
  struct stat status;
  if (file < 0 || from < 0 || fstat(from, &status) != 0) stop(library);
  for (off_t left = status.st_size; left > 0;) {
    const ssize_t moved = copy_file_range(from, NULL, file, NULL, (size_t)left, 0);
    char piece[65536];
    const ssize_t got = moved > 0 ? moved : read(from, piece, sizeof piece);
    if (got <= 0 || (moved <= 0 && write(file, piece, (size_t)got) != got)) stop("copy");
    left -= got;
  }
  close(from);
  const off_t begin = (status.st_size + 4095) / 4096 * 4096;
  if (ftruncate(file, begin + attach_bytes) != 0) stop("ftruncate");
  shared = mmap(NULL, attach_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, begin);
  if (shared == MAP_FAILED) stop("mmap");
  memcpy(shared->magic, attach_magic, sizeof shared->magic);
  memcpy(shared->settings, settings, bytes);
  return file;
}

static int above_all(int file) {
  const int moved = fcntl(file, F_DUPFD_CLOEXEC, 20);
  if (moved < 0) stop("a descriptor");
  close(file);
  return moved;
}

static void open_output(struct Control* control) {
  char* path = control->paths[0];
  snprintf(path, output_path_bytes, "%s/%d.cmt", folder, ++recordings);
  output = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (output < 0) stop(path);
  output = above_all(output);
  control->outputs = 1;
  strcpy(control->program, "attached");
  snprintf(control->status_path, output_path_bytes, "%s/status", folder);
}

static void* take_rings(void* unused) {
  while (__atomic_load_n(&shared->state, __ATOMIC_ACQUIRE) == attach_begins)
    syscall(SYS_futex, &shared->state, FUTEX_WAIT, attach_begins, NULL);
  if (shared->state != attach_has_rings) return unused;
  rings = fcntl(shared->rings_fd, F_DUPFD_CLOEXEC, 20);
  if (rings < 0) stop("rings_fd");
  struct stat status;
  fstat(rings, &status);
  struct Control* control = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, rings, 0);
  if (control == MAP_FAILED) stop("rings");
  open_output(control);
  munmap(control, (size_t)status.st_size);
  __atomic_store_n(&shared->rings_taken, 1, __ATOMIC_RELEASE);
  syscall(SYS_futex, &shared->rings_taken, FUTEX_WAKE, 1);
  return unused;
}

static void start_collector(void) {
  const int process = above_all((int)syscall(SYS_pidfd_open, getpid(), 0));
  writer = fork();
  if (writer == 0) {
    dup2(rings, collector_memory);
    dup2(process, collector_process);
    dup2(output, collector_output);
    execl(collector, collector, "--attach", NULL);
    _exit(127);
  }
  close(rings);
  close(process);
  close(output);
}

// Attaches, with a collector. Returns the tracer's answer, which cmttrace does not see.
static void attach(const char* settings, size_t bytes) {
  static void* handle;
  pthread_t tool;
  const int file = make_file(settings, bytes);
  pthread_create(&tool, NULL, take_rings, NULL);
  if (!handle) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) stop(dlerror());
    *(void**)&again = dlsym(handle, "cmttrace_attach");
    *(void**)&detach = dlsym(handle, "cmttrace_detach");
    *(void**)&release_tracer = dlsym(handle, "cmttrace_release");
  } else {
    again(file);
  }
  expect(shared->state == attach_recording, "not attached");
  if (!others_open_files)
    expect(fcntl(file, F_GETFD) < 0 && fcntl(shared->rings_fd, F_GETFD) < 0, "a descriptor is left");
  pthread_join(tool, NULL);
  start_collector();
}

// ---- threads that are at work all the time

enum { busy_max = threads + 2 };
static unsigned busy;  // the number of these threads
static unsigned laps[busy_max];
static bool is_over;

static bool goes_on(unsigned number) {
  __atomic_fetch_add(&laps[number], 1, __ATOMIC_SEQ_CST);
  return !__atomic_load_n(&is_over, __ATOMIC_SEQ_CST);
}

// A thread that was in the library has left it at the second lap from now on. One that has lost the processor there
// would go on in the memory of the next recording.
static void await_none_in_library(void) {
  for (unsigned i = 0; i < busy; i++) {
    const unsigned seen = __atomic_load_n(&laps[i], __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&laps[i], __ATOMIC_SEQ_CST) - seen < 2) sched_yield();
  }
}

// As cmttrace does, tries again if another thread is at work on the words.
static void let_go(void) {
  int result = detach();
  for (int tries = 0; result == -EAGAIN && tries < 1000; tries++) result = detach();
  expect(result == 0 && shared->state == attach_detached, "not detached");
  if (shared->message[0]) printf("recording %d: %s\n", recordings, shared->message);
  expect(waitpid(writer, NULL, 0) == writer, "no collector");
  await_none_in_library();
  expect(release_tracer() == 0 && shared->state == attach_released, "not released");
  munmap(shared, attach_bytes);
}

// ---- words

enum { words_max = 65536 };

struct Words {
  size_t count;
  uintptr_t values[words_max];
};

static int read_words(struct dl_phdr_info* info, size_t bytes, void* argument) {
  struct Words* words = argument;
  const ElfW(Dyn)* entry = NULL;
  const ElfW(Rela) * tables[2] = {NULL, NULL};
  size_t sizes[2] = {0, 0};
  if (strstr(info->dlpi_name, "/proc/self/fd") || strstr(info->dlpi_name, "vdso")) return 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr)* header = &info->dlpi_phdr[i];
    const uintptr_t* words_of_header = (const uintptr_t*)(info->dlpi_addr + header->p_vaddr);
    if (header->p_type == PT_DYNAMIC) entry = (const void*)words_of_header;
    const size_t count = header->p_type == PT_GNU_RELRO ? header->p_memsz / sizeof(uintptr_t) : 0;
    for (size_t w = 0; w < count && words->count < words_max; w++) words->values[words->count++] = words_of_header[w];
  }
  for (; entry && entry->d_tag != DT_NULL; entry++) {
    if (entry->d_tag == DT_JMPREL) tables[0] = (const void*)entry->d_un.d_ptr;
    if (entry->d_tag == DT_PLTRELSZ) sizes[0] = entry->d_un.d_val / sizeof(ElfW(Rela));
    if (entry->d_tag == DT_RELA) tables[1] = (const void*)entry->d_un.d_ptr;
    if (entry->d_tag == DT_RELASZ) sizes[1] = entry->d_un.d_val / sizeof(ElfW(Rela));
  }
  for (int t = 0; t < 2; t++) {
    for (size_t i = 0; i < sizes[t] && words->count < words_max; i++) {
      const unsigned type = (unsigned)ELF64_R_TYPE(tables[t][i].r_info);
      if (type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT || type == R_X86_64_64)
        words->values[words->count++] = *(const uintptr_t*)(info->dlpi_addr + tables[t][i].r_offset);
    }
  }
  (void)bytes;
  return 0;
}

// ---- phases

static pthread_barrier_t begins, ends;
static unsigned size_of_phase;

// A table of functions in data: R_X86_64_64.
static void (*const volatile table[])(void*) = {free};

static void use_all(unsigned size, char** old) {
  char* made[blocks];
  for (int i = 0; i < blocks; i++) made[i] = malloc(size);
  for (int i = 0; i < blocks; i++) made[i] = realloc(made[i], size + 1);
  for (int i = 0; i < blocks; i += 2) free(made[i]);
  for (int i = 1; i < blocks; i += 2) table[0](made[i]);
  for (int i = 0; i < blocks; i++) free(calloc(2, size));
  void* aligned;
  for (int i = 0; i < blocks; i++) free(posix_memalign(&aligned, 64, size) == 0 ? aligned : NULL);
  for (int i = 0; i < blocks; i++) free(strdup("by the C library"));
  // Blocks of the phase before, and for the next one.
  for (int i = 0; i < blocks; i++) free(old[i]);
  for (int i = 0; i < blocks; i++) old[i] = malloc(size + 2);
}

static void* work(void* unused) {
  char* old[blocks] = {NULL};
  for (;;) {
    pthread_barrier_wait(&begins);
    if (is_over) return unused;
    use_all(size_of_phase, old);
    pthread_barrier_wait(&ends);
  }
}

static void phase(unsigned size) {
  size_of_phase = size;
  pthread_barrier_wait(&begins);
  pthread_barrier_wait(&ends);
}

static int counts(void) {
  static struct Words before, after;
  pthread_t ids[threads];
  pthread_barrier_init(&begins, NULL, threads + 1);
  pthread_barrier_init(&ends, NULL, threads + 1);
  for (int i = 0; i < threads; i++) pthread_create(&ids[i], NULL, work, NULL);
  phase(4000);
  for (unsigned i = 1; i <= 3; i++) {
    static const char plain[] = "CMTTRACE_TOUCHED=off\0", with_stacks[] = "CMTTRACE_STACKS=1\0CMTTRACE_TIME=1\0";
    before.count = after.count = 0;
    dl_iterate_phdr(read_words, &before);
    if (i == 2)
      attach(with_stacks, sizeof with_stacks);
    else
      attach(plain, sizeof plain);
    phase(4000 + 100 * i);
    let_go();
    dl_iterate_phdr(read_words, &after);
    expect(before.count == after.count && before.count > 100, "other modules");
    expect(!getenv("LD_BIND_NOW") || memcmp(&before, &after, sizeof before) == 0, "words were not restored");
    phase(4000 + 100 * i + 50);
    printf("recording %u size %u each %d\n", i, 4000 + 100 * i, threads * blocks);
  }
  is_over = true;
  pthread_barrier_wait(&begins);
  for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
  return 0;
}

// ---- while all threads are at work

static void* churn(void* number) {
  unsigned random = (unsigned)(uintptr_t)number + 1;
  void* kept[64] = {NULL};
  while (goes_on((unsigned)(uintptr_t)number)) {
    random = random * 1664525 + 1013904223;
    void** place = &kept[random >> 16 & 63];
    if (random >> 30 == 0)
      *place = realloc(*place, random >> 8 & 4095);
    else
      free(*place), *place = random >> 30 == 1 ? calloc(1, random >> 8 & 1023) : malloc(random >> 8 & 2047);
  }
  for (int i = 0; i < 64; i++) free(kept[i]);
  return NULL;
}

static void* fork_all_the_time(void* number) {
  while (goes_on((unsigned)(uintptr_t)number)) {
    const pid_t child = fork();
    int status = 1;
    if (child == 0) {
      free(malloc(7777));
      _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) stop("a child");
  }
  return NULL;
}

static void* load_all_the_time(void* number) {
  while (goes_on((unsigned)(uintptr_t)number)) {
    if (!plugin) continue;
    void* loaded = dlopen(plugin, RTLD_NOW);
    if (!loaded) stop(dlerror());
    void (*use)(int);
    *(void**)&use = dlsym(loaded, "use_plugin");
    if (use) use(100);
    dlclose(loaded);
  }
  return NULL;
}

static void begin_thread(pthread_t ids[busy_max], void* (*function)(void*)) {
  pthread_create(&ids[busy], NULL, function, (void*)(uintptr_t)busy);
  busy++;
}

static void end_threads(const pthread_t ids[busy_max]) {
  __atomic_store_n(&is_over, true, __ATOMIC_SEQ_CST);
  for (unsigned i = 0; i < busy; i++) pthread_join(ids[i], NULL);
}

static int storm(void) {
  pthread_t ids[busy_max];
  others_open_files = true;
  for (int i = 0; i < threads; i++) begin_thread(ids, churn);
  begin_thread(ids, fork_all_the_time);
  begin_thread(ids, load_all_the_time);
  for (int i = 0; i < 4; i++) {
    static const char plain[] = "CMTTRACE_STAMPS=sparse\0", with_stacks[] = "CMTTRACE_STACKS=1\0";
    if (i % 2)
      attach(plain, sizeof plain);
    else
      attach(with_stacks, sizeof with_stacks);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    let_go();
  }
  end_threads(ids);
  return 0;
}

static int killed(void) {
  pthread_t ids[busy_max];
  attach("\0", 2);
  kill(writer, SIGKILL);
  for (int i = 0; i < threads; i++) begin_thread(ids, churn);
  for (int i = 0; i < 100000; i++) free(malloc(5000));  // more than a ring holds
  let_go();
  attach("\0", 2);
  for (int i = 0; i < 1000; i++) free(malloc(6000));
  let_go();
  end_threads(ids);
  return 0;
}

static void use(void* loaded, int calls) {
  void (*function)(int);
  if (!loaded) stop(dlerror());
  *(void**)&function = dlsym(loaded, "use_plugin");
  function(calls);
}

static int loads(void) {
  attach("\0", 2);
  void* loaded = dlopen(plugin, RTLD_NOW);
  use(loaded, 10);
  dlclose(loaded);
  loaded = dlopen(plugin, RTLD_LAZY);  // most likely to the same addresses
  use(loaded, 20);
  dlclose(loaded);
  loaded = dlopen(plugin, RTLD_LAZY | RTLD_DEEPBIND);
  use(loaded, 40);
  let_go();
  use(loaded, 80);
  attach("\0", 2);
  use(loaded, 160);
  let_go();
  puts("70\n160");
  return 0;
}

static void refuse(const char* settings, size_t bytes, const char* message) {
  const int file = make_file(settings, bytes);
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  if (!again) {
    void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) stop(dlerror());
    *(void**)&again = dlsym(handle, "cmttrace_attach");
  } else {
    expect(again(file) < 0, "attached");
  }
  expect(shared->state == attach_failed && strcmp(shared->message, message) == 0, message);
  expect(fcntl(file, F_GETFD) < 0, "a descriptor is left");
}

static int refused(void) {
  refuse("CMTTRACE_TIME=x\0", 17, "CMTTRACE_TIME cannot be 'x'");
  refuse("CMTTRACE_TIEM=1\0", 17, "CMTTRACE_TIEM is not a variable that the tracer knows");
  refuse("CMTTRACE_RINGS=/x\0", 19, "CMTTRACE_RINGS is not for a program that is attached to");
  refuse("\0", 2, "nobody has taken the rings");
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  library = argv[2], collector = argv[3], folder = argv[4], plugin = argc > 5 ? argv[5] : NULL;
  if (strcmp(argv[1], "counts") == 0) return counts();
  if (strcmp(argv[1], "storm") == 0) return storm();
  if (strcmp(argv[1], "killed") == 0) return killed();
  if (strcmp(argv[1], "loads") == 0) return loads();
  if (strcmp(argv[1], "refused") == 0) return refused();
  return 2;
}
