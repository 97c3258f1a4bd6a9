// reaper REPORT COMMAND [ARGUMENT]...: runs COMMAND, reaps it and all orphans, and writes to REPORT how each has ended.
// It is a child subreaper, so each process that COMMAND leaves becomes its child. Ends with status 0 once it has
// no child; REPORT has a line for COMMAND, one for each orphan in the order of their statuses, and their number.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int order(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }

static void describe(FILE* report, const char* name, int status) {
  if (WIFSIGNALED(status)) {
    fprintf(report, "%s: signal %d\n", name, WTERMSIG(status));
  } else {
    fprintf(report, "%s: exit %d\n", name, WEXITSTATUS(status));
  }
}

int main(int argc, char** argv) {
  if (argc < 3 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
    return 2;
  }
  const pid_t command = fork();
  if (command == 0) {
    execvp(argv[2], argv + 2);
    _exit(127);
  }
  static int orphans[10000];
  size_t reaped = 0;
  int status, last = 0;
  pid_t child;
  while ((child = waitpid(-1, &status, 0)) > 0 || errno == EINTR) {
    if (child == command) {
      last = status;
    } else if (child > 0 && reaped < sizeof orphans / sizeof *orphans) {
      orphans[reaped++] = status;
    }
  }
  qsort(orphans, reaped, sizeof *orphans, order);
  FILE* report = fopen(argv[1], "w");
  if (!report) {
    return 1;
  }
  describe(report, "command", last);
  for (size_t i = 0; i < reaped; i++) {
    describe(report, "orphan", orphans[i]);
  }
  fprintf(report, "%zu orphans\n", reaped);
  return fclose(report) == 0 ? 0 : 1;
}
