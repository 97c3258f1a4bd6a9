// orphans HOW: a child subreaper. It has three children, and each of these has one, which it inherits; all six
// allocate. Waits for all by wait, waitpid, wait3, wait4 or waitid, and prints how many it got, and how it ended.
//
// orphans flood: allocates without end until standard input ends.
//
// orphans alone: makes enough events for a collector. Then asks for namespaces that only a process gets that shares its
// memory with no other, allocates on, and prints the results.
//
// orphans exec: a child subreaper. Its child allocates, and executes a program that is not traced. When all children of
// that one have ended, it prints whether it got SIGCHLD. Prints how many children it got itself.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t wait_by(const char* how) {
  siginfo_t info = {0};
  struct rusage used;
  int status;
  if (strcmp(how, "wait") == 0) return wait(&status);
  if (strcmp(how, "waitpid") == 0) return waitpid(-1, &status, 0);
  if (strcmp(how, "wait3") == 0) return wait3(&status, 0, &used);
  if (strcmp(how, "wait4") == 0) return wait4(-1, &status, 0, &used);
  return waitid(P_ALL, 0, &info, WEXITED) == 0 ? info.si_pid : -1;
}

static void be_parent(void) {
  free(malloc(100));
  if (fork() == 0) {
    free(malloc(200));
    _exit(0);
  }
  _exit(0);
}

static void flood(void) {
  struct pollfd input = {.fd = 0, .events = POLLIN};
  while (poll(&input, 1, 0) == 0) {
    for (int i = 0; i < 100000; i++) free(malloc(100));
  }
}

static void be_alone(void) {
  const int time = open("/proc/self/ns/time", O_RDONLY | O_CLOEXEC);
  for (int i = 0; i < 100000; i++) free(malloc(300));
  printf("setns %d\n", setns(time, CLONE_NEWTIME));
  printf("unshare %d\n", unshare(CLONE_NEWUSER));
  for (int i = 0; i < 100000; i++) free(malloc(400));
}

// SIGCHLD stays blocked, and so pending, over the exec.
static void execute_next(const char* program) {
  sigset_t blocked;
  free(malloc(100));
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGCHLD);
  sigprocmask(SIG_BLOCK, &blocked, NULL);
  unsetenv("LD_PRELOAD");
  execl(program, program, "next", (char*)NULL);
  _exit(1);
}

static void ignore_it(int signal) { (void)signal; }

// Without a handler, the kernel drops SIGCHLD.
static void be_next(void) {
  sigset_t pending;
  signal(SIGCHLD, ignore_it);
  while (waitpid(-1, NULL, __WALL) > 0) continue;
  sigpending(&pending);
  printf("SIGCHLD %d\n", sigismember(&pending, SIGCHLD));
}

static int wait_for_next(const char* program) {
  int count = 0;
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return 77;
  if (fork() == 0) execute_next(program);
  while (wait(NULL) > 0) count++;
  printf("%d child\n", count);
  return 0;
}

int main(int argc, char** argv) {
  int count = 0;
  if (argc != 2) return 2;
  if (strcmp(argv[1], "flood") == 0) return flood(), 0;
  if (strcmp(argv[1], "alone") == 0) return be_alone(), 0;
  if (strcmp(argv[1], "next") == 0) return be_next(), 0;
  if (strcmp(argv[1], "exec") == 0) return wait_for_next(argv[0]);
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return 77;
  for (int i = 0; i < 3; i++) {
    if (fork() == 0) be_parent();
  }
  while (wait_by(argv[1]) > 0) count++;
  printf("%d children, then %s\n", count, strerror(errno));
  return 0;
}
