/* Imitates the supervisor of a collector in its visible form: an orphan in the memory of a program that has ended,
   which has the supervisor's name and whose birth asked for no signal at its end. It writes its pid to "supervisor.pid"
   and lives until there is a "go.1". */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static char stack[64 * 1024];

static int keep(void* unused) {
  const struct timespec while_waiting = {0, 1000000};
  (void)unused;
  prctl(PR_SET_NAME, "cmttrace-superv");
  while (access("go.1", F_OK) != 0) nanosleep(&while_waiting, NULL);
  _exit(0);
}

int main(void) {
  FILE* pid = fopen("supervisor.pid", "w");
  fprintf(pid, "%d\n", clone(keep, stack + sizeof stack, CLONE_VM, NULL));
  fclose(pid);
  _exit(0);
}
