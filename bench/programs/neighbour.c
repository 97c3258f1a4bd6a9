// neighbour: keeps the last usable processor busy for 5 of each 10 ms, until it is killed. It stays on that processor.
#include <sched.h>
#include <time.h>

enum { busy_ns = 5000000, period_ns = 10000000, second_ns = 1000000000 };

static void stay_on_last(void) {
  cpu_set_t usable, only;
  CPU_ZERO(&only);
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return;
  int last = CPU_SETSIZE - 1;
  while (last > 0 && !CPU_ISSET(last, &usable)) last--;
  CPU_SET(last, &only);
  sched_setaffinity(0, sizeof only, &only);
}

static long long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * (long long)second_ns + now.tv_nsec;
}

int main(void) {
  stay_on_last();
  for (long long begin = now_ns();; begin += period_ns) {
    while (now_ns() < begin + busy_ns) continue;
    const long long next = begin + period_ns;
    const struct timespec until = {next / second_ns, next % second_ns};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
  }
}
