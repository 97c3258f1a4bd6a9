/* bare_memory PID: the cost of a look at a process's memory, for any reader. Reads smaps, and each resident page of the
 * private writable mappings, in pieces of 1 MiB with process_vm_readv(2), and uses nothing of it. Prints the bytes. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static char piece[1 << 20];

/* Parts that are not resident are passed over by pagemap, as any reader has to. */
static uint64_t read_mapping(pid_t process, int pagemap, uint64_t begin, uint64_t end) {
  static uint64_t entries[sizeof piece / 4096];
  uint64_t sum = 0;
  for (uint64_t at = begin; at < end; at += sizeof piece) {
    const uint64_t pages = (end - at < sizeof piece ? end - at : sizeof piece) / 4096;
    if (pread(pagemap, entries, pages * 8, (off_t)(at / 4096 * 8)) != (ssize_t)(pages * 8)) return sum;
    for (uint64_t page = 0; page < pages; ++page) {
      uint64_t last = page;
      while (last < pages && entries[last] >> 63) ++last;
      if (last == page) continue;
      const struct iovec to = {piece, (last - page) * 4096}, from = {(void*)(at + page * 4096), (last - page) * 4096};
      const ssize_t bytes = process_vm_readv(process, &to, 1, &from, 1, 0);
      sum += bytes > 0 ? (uint64_t)bytes : 0;
      page = last;
    }
  }
  return sum;
}

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: bare_memory PID\n"), 2;
  char path[64], line[4096], permissions[8];
  const pid_t process = (pid_t)atol(argv[1]);
  snprintf(path, sizeof path, "/proc/%d/pagemap", process);
  const int pagemap = open(path, O_RDONLY);
  snprintf(path, sizeof path, "/proc/%d/smaps", process);
  FILE* const smaps = fopen(path, "r");
  if (pagemap < 0 || !smaps) return perror(path), 1;
  uint64_t begin, end, sum = 0;
  while (fgets(line, sizeof line, smaps)) {
    if (sscanf(line, "%lx-%lx %7s", &begin, &end, permissions) == 3 && !strcmp(permissions, "rw-p"))
      sum += read_mapping(process, pagemap, begin, end);
  }
  printf("%lu\n", sum);
}
