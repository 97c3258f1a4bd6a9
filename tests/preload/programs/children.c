// children WHAT: makes children in all ways, and checks what the program can see of its own.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
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
  // A process may end while all its signals are blocked, for example beside a thread that calls pthread_create.
  const uint64_t all_signals = ~UINT64_C(0);
  pid_t child = fork();
  if (child == 0) {
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all_signals, NULL, sizeof all_signals);
    _exit(5);
  }
  int status;
  if (wait(&status) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 5) return 2;
  if (wait(&status) != -1 || errno != ECHILD) return 3;
  return child_signals != 1;
}

// As strace does: waits until there is no child, clones too. Events after that are recorded as well. `calls_kernel`: by
// syscall(2), so that the tracer does not see the wait. Then the end of an unknown child is returned after some
// seconds.
static int all(bool calls_kernel) {
  make(50001);
  pid_t child = fork();
  if (child == 0) _exit(3);
  int found = 0, strangers = 0;
  for (;;) {
    const long ended = calls_kernel ? syscall(SYS_wait4, -1, NULL, __WALL, NULL) : waitpid(-1, NULL, __WALL);
    if (ended == -1) break;
    *(ended == child ? &found : &strangers) += 1;
  }
  const int error = errno;
  for (int i = 0; i < 20000; i++) free(malloc(50002));
  make(50003);
  return found != 1 || (strangers != 0 && !calls_kernel) || error != ECHILD;
}

// As a debugger does: traces a child and what it clones. It would see the supervisor.
static int debugs(const char* self) {
  make(50001);
  const pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0)
      raise(SIGSTOP);
    else
      puts("not tested: a debugger, because ptrace(2) is refused");
    fflush(stdout);
    execl(self, self, "block", (char*)NULL);
    _exit(6);
  }
  int status, clones = 0;
  const long options = PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_EXITKILL;
  bool is_traced = false;
  while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
    if (!is_traced) is_traced = ptrace(PTRACE_SETOPTIONS, child, NULL, options) == 0;
    clones += status >> 16 != 0;
    ptrace(PTRACE_CONT, child, NULL, NULL);
  }
  return clones != 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "block") == 0) return make(50009), 0;
  if (strcmp(what, "forks") == 0) return forks();
  if (strcmp(what, "vforks") == 0) return vforks(argv[0]);
  if (strcmp(what, "vfork_first") == 0) return vfork_first(argv[0]);
  if (strcmp(what, "closes") == 0) return closes(argv[2]);
  if (strcmp(what, "lonely") == 0) return lonely();
  if (strcmp(what, "all") == 0) return all(argc > 2);
  if (strcmp(what, "debugs") == 0) return debugs(argv[0]);
  return 2;
}
