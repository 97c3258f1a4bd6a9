// probe_watch LIBRARY PROGRAM [WORD]...: runs the program with the library preloaded, and counts the events of its
// probes otel_memory:alloc and :free. It finds them as a profiler does, by uprobes at the places in .note.stapsdt.
//
// Prints "alloc COUNT weighted BYTES free COUNT". Exits with 77 where the kernel allows no uprobes (they need root).
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { pages = 256, page = 4096, skipped = 77, registers = 3 };
/// Bits of perf_event_attr::sample_regs_user (asm/perf_regs.h).
enum { register_dx = 3, register_si = 4, register_di = 5 };

static uint8_t* file;

/// A probe: its places in the file, and the events that the kernel has reported.
struct Probe {
  const char* name;
  uint64_t location, semaphore;
  struct perf_event_mmap_page* events;
  uint64_t count, weighted;
};
static struct Probe probes[] = {{.name = "alloc"}, {.name = "free"}};

static uint64_t offset_of(uint64_t address) {
  const Elf64_Ehdr* header = (const void*)file;
  const Elf64_Phdr* segment = (const void*)(file + header->e_phoff);
  for (int i = 0; i < header->e_phnum; i++) {
    const uint64_t at = address - segment[i].p_vaddr;
    if (segment[i].p_type == PT_LOAD && at < segment[i].p_filesz) return at + segment[i].p_offset;
  }
  return 0;
}

static void read_note(const uint8_t* description) {
  const uint64_t* words = (const void*)description;
  const char* provider = (const char*)(words + 3);
  const char* name = provider + strlen(provider) + 1;
  for (int i = 0; i < 2; i++) {
    if (strcmp(provider, "otel_memory") != 0 || strcmp(name, probes[i].name) != 0) continue;
    probes[i].location = offset_of(words[0]);
    probes[i].semaphore = offset_of(words[2]);
  }
}

static void read_notes(void) {
  const Elf64_Ehdr* header = (const void*)file;
  const Elf64_Shdr* section = (const void*)(file + header->e_shoff);
  const char* names = (const char*)file + section[header->e_shstrndx].sh_offset;
  for (int i = 0; i < header->e_shnum; i++) {
    if (strcmp(names + section[i].sh_name, ".note.stapsdt") != 0) continue;
    const uint8_t *note = file + section[i].sh_offset, *end = note + section[i].sh_size;
    while (note < end) {
      const Elf64_Nhdr* head = (const void*)note;
      const uint8_t* description = note + sizeof *head + ((head->n_namesz + 3) & ~3u);
      read_note(description);
      note = description + ((head->n_descsz + 3) & ~3u);
    }
  }
}

static void attach(struct Probe* probe, const char* path, int type, pid_t child) {
  struct perf_event_attr attributes = {
      .type = (uint32_t)type,
      .size = sizeof attributes,
      .config = probe->semaphore << 32,
      .config1 = (uintptr_t)path,
      .config2 = probe->location,
      .sample_period = 1,
      .sample_type = PERF_SAMPLE_REGS_USER,
      .sample_regs_user = 1 << register_dx | 1 << register_si | 1 << register_di,
      .wakeup_events = 1,
  };
  const int event = (int)syscall(SYS_perf_event_open, &attributes, child, -1, -1, 0);
  probe->events = event < 0 ? MAP_FAILED : mmap(NULL, page * (1 + pages), PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
  if (probe->events != MAP_FAILED) return;
  perror("probe_watch: a uprobe");
  kill(child, 9);
  exit(skipped);
}

static void read_events(struct Probe* probe) {
  const uint64_t head = __atomic_load_n(&probe->events->data_head, __ATOMIC_ACQUIRE);
  uint64_t tail = probe->events->data_tail;
  const uint8_t* data = (const uint8_t*)probe->events + page;
  while (tail < head) {
    // A record does not wrap within a word.
    const uint64_t mask = page * pages - 1;
    const struct perf_event_header* record = (const void*)(data + (tail & mask));
    if (record->type == PERF_RECORD_SAMPLE) {
      const uint64_t after_abi = tail + sizeof *record + sizeof(uint64_t);
      probe->count++;
      probe->weighted += *(const uint64_t*)(data + (after_abi & mask));  // rdx comes first
    }
    tail += record->size;
  }
  __atomic_store_n(&probe->events->data_tail, tail, __ATOMIC_RELEASE);
}

int main(int count, char** words) {
  if (count < 3) return 2;
  const int library = open(words[1], O_RDONLY);
  struct stat status;
  if (library < 0 || fstat(library, &status) != 0) return 2;
  file = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, library, 0);
  read_notes();
  int type = -1, go[2];
  FILE* types = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
  if (!types || fscanf(types, "%d", &type) != 1 || pipe(go) != 0) return skipped;
  const pid_t child = fork();
  if (child == 0) {
    char ready;
    close(go[1]);
    if (read(go[0], &ready, 1) != 1) _exit(127);
    setenv("LD_PRELOAD", words[1], 1);
    execvp(words[2], words + 2);
    _exit(127);
  }
  for (int i = 0; i < 2; i++) attach(&probes[i], words[1], type, child);
  if (write(go[1], "x", 1) != 1) return 1;
  int ended = 0;
  while (waitpid(child, &ended, WNOHANG) != child) {
    for (int i = 0; i < 2; i++) read_events(&probes[i]);
    usleep(1000);
  }
  for (int i = 0; i < 2; i++) read_events(&probes[i]);
  printf("alloc %lu weighted %lu free %lu\n", probes[0].count, probes[0].weighted, probes[1].count);
  return ended != 0;
}
