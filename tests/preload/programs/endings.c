// endings HOW: allocates a block of a known size at each stage of a process's life, and ends in the given way.
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void* volatile kept;

static void make(size_t size) { kept = malloc(size); }

static void at_exit(void) { make(60003); }
static void at_quick(void) { make(60005); }
__attribute__((constructor)) static void first(void) { make(60001); }
__attribute__((destructor)) static void last(void) { make(60004); }

static void on_signal(int signal) {
  (void)signal;
  make(60006);
  _exit(7);
}

static void program(char** argv) {
  char* arguments[] = {argv[0], (char*)"exit", NULL};
  char* none[] = {NULL};
  execve("/nonexistent", arguments, none);
  make(60007);
  execl("/nonexistent", "a", "b", (char*)NULL);
  make(60008);
  execv(argv[0], arguments);
}

static void end(const char* how, char** argv) {
  if (strcmp(how, "exit") == 0) exit(3);
  if (strcmp(how, "_exit") == 0) _exit(3);
  if (strcmp(how, "_Exit") == 0) _Exit(3);
  if (strcmp(how, "quick_exit") == 0) quick_exit(3);
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "assert") == 0) assert(!"reached");
  if (strcmp(how, "kill") == 0) kill(getpid(), SIGKILL);
  if (strcmp(how, "segv") == 0) kill(getpid(), SIGSEGV);
  if (strcmp(how, "system_call") == 0) syscall(SYS_exit_group, 3);
  if (strcmp(how, "handler") == 0) raise(SIGTERM);
  if (strcmp(how, "execv") == 0) program(argv);
  if (strcmp(how, "execl") == 0) execl(argv[0], argv[0], "exit", (char*)NULL);
  if (strcmp(how, "execlp") == 0) execlp(argv[0], argv[0], "exit", (char*)NULL);
  if (strcmp(how, "execle") == 0) execle(argv[0], argv[0], "exit", (char*)NULL, environ);
  if (strcmp(how, "execvp") == 0) execvp(argv[0], (char*[]){argv[0], (char*)"exit", NULL});
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  signal(SIGTERM, on_signal);
  atexit(at_exit);
  at_quick_exit(at_quick);
  make(60002);
  end(argv[1], argv);
  return 2;
}
