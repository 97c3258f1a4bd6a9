/* bare_reads FILE COUNT [INTERVAL_NS]: the lower bound for the cost of a sample of FILE. Opens it, reads it to its end
   and closes it, COUNT times: one every INTERVAL_NS on a fixed grid of a timer, or without a pause. Prints the
   processor time of one, in ns. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static long long cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(int count, char** words) {
  static char buffer[16384];
  if (count < 3) return 2;
  const long times = atol(words[2]);
  const long interval_ns = count > 3 ? atol(words[3]) : 0;
  const int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  const struct timespec interval = {interval_ns / 1000000000, interval_ns % 1000000000};
  const struct itimerspec grid = {interval, interval};
  timerfd_settime(timer, 0, &grid, NULL);
  const long long begin = cpu_ns();
  for (long i = 0; i < times; i++) {
    uint64_t passed;
    if (interval_ns != 0 && read(timer, &passed, sizeof passed) < 0) return 1;
    const int fd = open(words[1], O_RDONLY | O_CLOEXEC);
    if (fd < 0) return perror(words[1]), 1;
    while (read(fd, buffer, sizeof buffer) > 0) continue;
    close(fd);
  }
  printf("%lld\n", (cpu_ns() - begin) / times);
  return 0;
}
