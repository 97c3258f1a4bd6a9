// exit_stamp REPORT COMMAND [ARGUMENT]...: runs COMMAND, and writes to REPORT when it ended, in ns of the monotonic
// clock. Ends with the status of COMMAND. Linked statically, so that a tracer that is preloaded records COMMAND and not
// this program. REPORT.status is cmttrace's list of what each of its collectors did, which cmttrace removes at its end.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc < 3) {
    return 2;
  }
  const char* list = getenv("CMTTRACE_STATUS");
  char kept[4096];
  snprintf(kept, sizeof kept, "%s.status", argv[1]);
  const pid_t command = fork();
  if (command == 0) {
    execvp(argv[2], argv + 2);
    _exit(127);
  }
  int status;
  if (command < 0 || waitpid(command, &status, 0) != command) {
    return 126;
  }
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (list && link(list + (*list == '-'), kept) != 0) {
    return 126;
  }
  FILE* report = fopen(argv[1], "w");
  if (!report || fprintf(report, "%lld\n", now.tv_sec * 1000000000LL + now.tv_nsec) < 0 || fclose(report) != 0) {
    return 126;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
