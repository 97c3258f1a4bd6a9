/* bare_smaps PID COUNT INTERVAL_MS: the cost of reading a process's smaps, for any reader. Opens, reads and closes it
 * COUNT times, INTERVAL_MS apart, and uses nothing of it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char** argv) {
  static char buffer[1 << 20];
  if (argc != 4) return fprintf(stderr, "usage: bare_smaps PID COUNT INTERVAL_MS\n"), 2;
  char path[64];
  snprintf(path, sizeof path, "/proc/%s/smaps", argv[1]);
  const long count = atol(argv[2]), interval_ns = atol(argv[3]) * 1000000;
  struct timespec next;
  clock_gettime(CLOCK_MONOTONIC, &next);
  for (long i = 0; i < count; ++i) {
    const int fd = open(path, O_RDONLY);
    if (fd < 0) return perror(path), 1;
    while (read(fd, buffer, sizeof buffer) > 0) continue;
    close(fd);
    next.tv_nsec += interval_ns;
    next.tv_sec += next.tv_nsec / 1000000000;
    next.tv_nsec %= 1000000000;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
  }
}
