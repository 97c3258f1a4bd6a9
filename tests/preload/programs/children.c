// children WHAT: makes children in all ways, and checks what the program can see of its own.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void* volatile kept;
static volatile sig_atomic_t child_signals;

static void make(size_t size) { kept = malloc(size); }

static int wait_for(pid_t child) {
  int status;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

// The child frees inherited blocks, and has children of its own.
static int forks(void) {
  void* inherited = malloc(50000);
  make(50001);
  pid_t child = fork();
  if (child == 0) {
    free(inherited);
    make(50002);
    pid_t grandchild = fork();
    make(grandchild ? 50003 : 50004);
    exit(grandchild ? wait_for(grandchild) : 0);
  }
  make(50005);
  free(inherited);
  return wait_for(child);
}

static int vforks(char* self) {
  make(50001);
  pid_t child = vfork();
  if (child == 0) _exit(5);
  if (wait_for(child) != 5) return 1;
  make(50002);
  child = vfork();
  if (child == 0) {
    execl("/nonexistent", "a", (char*)NULL);
    closefrom(3);
    execl(self, self, "block", (char*)NULL);
    _exit(6);
  }
  if (wait_for(child) != 0) return 2;
  for (int i = 0; i < 20000; i++) free(malloc(50003));
  char* arguments[] = {self, (char*)"block", NULL};
  if (posix_spawn(&child, self, NULL, NULL, arguments, environ) != 0) return 3;
  make(50004);
  return wait_for(child);
}

// The first call of malloc after a fork is that of a vfork child, which is not the process that is recorded.
static int vfork_first(char* self) {
  make(50001);
  pid_t child = fork();
  if (child != 0) return wait_for(child);
  child = vfork();
  if (child == 0) {
    make(50002);
    execl(self, self, "block", (char*)NULL);
    _exit(6);
  }
  if (wait_for(child) != 0) exit(2);
  for (int i = 0; i < 20000; i++) free(malloc(50003));
  make(50004);
  exit(waitpid(-1, NULL, __WALL) != -1);
}

// As a daemon does: closes all descriptors, and uses their numbers for other files.
static int closes(const char* how) {
  make(50001);
  if (strcmp(how, "closefrom") == 0) closefrom(3);
  if (strcmp(how, "close_range") == 0) close_range(3, ~0u, 0);
  if (strcmp(how, "loop") == 0) {
    for (int fd = 3; fd < 4096; fd++) close(fd);
  }
  int mine = open("mine", O_RDWR | O_CREAT, 0666);
  for (int fd = mine; fd < 1024; fd++) {
    if (fd != mine && strcmp(how, "overwrite") == 0) dup2(mine, fd);
  }
  for (int i = 0; i < 20000; i++) free(malloc(50002));
  make(50003);
  return lseek(mine, 0, SEEK_END) != 0;
}

static void on_child(int signal) {
  (void)signal;
  child_signals++;
}

// A program without children sees none, and gets no signal of one.
static int lonely(void) {
  struct sigaction action = {.sa_handler = on_child};
  sigaction(SIGCHLD, &action, NULL);
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  for (int i = 0; i < 20000; i++) free(malloc(50001));
  if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD) return 1;
  pid_t child = fork();
  if (child == 0) _exit(0);
  int status;
  if (wait(&status) != child) return 2;
  if (wait(&status) != -1 || errno != ECHILD) return 3;
  return child_signals != 1;
}

// As strace does: waits until there is no child, clones too. Events after that are recorded as well.
static int all(void) {
  make(50001);
  pid_t child = fork();
  if (child == 0) _exit(3);
  bool is_found = false;
  for (pid_t ended; (ended = waitpid(-1, NULL, __WALL)) != -1;) is_found |= ended == child;
  for (int i = 0; i < 20000; i++) free(malloc(50002));
  make(50003);
  return !is_found || errno != ECHILD;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "block") == 0) return make(50009), 0;
  if (strcmp(what, "forks") == 0) return forks();
  if (strcmp(what, "vforks") == 0) return vforks(argv[0]);
  if (strcmp(what, "vfork_first") == 0) return vfork_first(argv[0]);
  if (strcmp(what, "closes") == 0) return closes(argv[2]);
  if (strcmp(what, "lonely") == 0) return lonely();
  if (strcmp(what, "all") == 0) return all();
  return 2;
}
