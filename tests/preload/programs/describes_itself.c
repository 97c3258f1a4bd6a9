// Prints what a program may know of its own start: words, names, environment, descriptors, signals.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <unistd.h>

extern char** environ;

// `by_descriptor PROGRAM WORD...`: executes it by a descriptor that exec closes.
static int execute_by_descriptor(char** words) {
  const int file = open(words[0], O_PATH | O_CLOEXEC);
  dup3(file, 77, O_CLOEXEC);
  fexecve(77, words, environ);
  return 126;
}

int main(int count, char** words) {
  if (count > 2 && strcmp(words[1], "by_descriptor") == 0) return execute_by_descriptor(words + 2);
  char name[16] = {0};
  sigset_t blocked;
  prctl(PR_GET_NAME, name);
  sigprocmask(SIG_SETMASK, NULL, &blocked);
  for (int i = 0; i < count; i++) printf("word %s|\n", words[i]);
  printf("started as %s, called %s, %s\n", (const char*)getauxval(AT_EXECFN), name, program_invocation_short_name);
  printf("USR1 blocked: %d, secure: %ld, parent: %d\n", sigismember(&blocked, SIGUSR1), getauxval(AT_SECURE),
         getppid() > 1);
  for (char** variable = environ; *variable; variable++) {
    if (strncmp(*variable, "_=", 2) != 0) printf("%s\n", *variable);
  }
  for (int file = 0; file < 100; file++) {
    if (fcntl(file, F_GETFD) >= 0) printf("descriptor %d\n", file);
  }
  return 3;
}
