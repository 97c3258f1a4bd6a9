// kinds_processes [NAME]: small programs that fork, execute, wait, limit themselves, or change user and root.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "kinds.h"

extern char** environ;

static int reap_all(void) {
  int count = 0, status;
  while (waitpid(-1, &status, 0) > 0) {
    count++;
  }
  return count;
}

static void fork_storm(void) {
  int children = 0;
  for (unsigned i = 0; i < 40; i++) {
    if (fork() == 0) {
      churn(i);
      _exit((int)i);
    }
  }
  int status, sum = 0;
  while (wait(&status) > 0) {
    children++;
    sum += WEXITSTATUS(status);
  }
  say("children", children);
  say("sum", sum);
}

static void fork_tree(void) {
  int depth = 0;
  for (; depth < 4; depth++) {
    fflush(stdout);
    fork();
  }
  churn(7);
  _exit(reap_all());
}

static void vfork_exec(void) {
  for (volatile int i = 0; i < 5; i++) {
    if (vfork() == 0) {
      execl("/bin/true", "true", (char*)0);
      _exit(1);
    }
  }
  say("reaped", reap_all());
}

static void vfork_exit(void) {
  volatile int seen = 0;
  if (vfork() == 0) {
    free(malloc(100));
    seen = 5;
    _exit(3);
  }
  int status;
  wait(&status);
  say("seen", seen);
  say("status", WEXITSTATUS(status));
}

static void spawn_many(void) {
  for (int i = 0; i < 10; i++) {
    pid_t child;
    char* words[] = {"expr", "3", "*", "4", 0};
    posix_spawnattr_t how;
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, i % 2 ? POSIX_SPAWN_SETPGROUP : POSIX_SPAWN_SETSIGDEF);
    posix_spawnp(&child, "expr", 0, &how, words, environ);
    posix_spawnattr_destroy(&how);
    int status;
    say("same", waitpid(child, &status, 0) == child);
    say("status", status);
  }
}

static int in_clone(void* value) { return *(int*)value + 1; }

static void clone_memory(void) {
  static char stack[65536] __attribute__((aligned(16)));
  int value = 4, status;
  const int forms[] = {SIGCHLD, CLONE_VM | SIGCHLD, CLONE_VM | CLONE_VFORK | SIGCHLD, CLONE_FILES | SIGCHLD};
  for (int i = 0; i < 4; i++) {
    const pid_t child = clone(in_clone, stack + sizeof stack, forms[i], &value);
    say("same", waitpid(child, &status, 0) == child);
    say("status", WEXITSTATUS(status));
  }
}

static void clone_without_signal(void) {
  static char stack[65536] __attribute__((aligned(16)));
  int value = 6, status = 0;
  const pid_t child = clone(in_clone, stack + sizeof stack, 0, &value);
  say_error("wait", waitpid(-1, &status, 0) > 0 ? 1 : -1);
  say("all", waitpid(child, &status, __WALL) == child);
  say("status", WEXITSTATUS(status));
}

static void exec_chain(void) {
  const char* left = getenv("LEFT");
  const int count = left ? atoi(left) : 20;
  churn((unsigned)count);
  if (count > 0) {
    char text[20];
    snprintf(text, sizeof text, "%d", count - 1);
    setenv("LEFT", text, 1);
    execl("/proc/self/exe", "kinds", "exec_chain", (char*)0);
  }
  say("left", count);
}

static void exec_empty_environment(void) {
  char* const words[] = {"env", 0};
  char* const none[] = {0};
  execve("/usr/bin/env", words, none);
}

static void exec_by_descriptor(void) {
  const int file = open("/bin/echo", O_RDONLY | O_CLOEXEC);
  char* const words[] = {"echo", "by descriptor", 0};
  fexecve(file, words, environ);
}

static void exec_fails(void) {
  say_error("missing", execl("/nothing/here", "x", (char*)0));
  say_error("folder", execl("/tmp", "x", (char*)0));
  churn(1);
  say("reaped", reap_all());
}

static void daemonise(void) {
  if (daemon(1, 1) == 0) {
    churn(3);
    say("daemon of a new session", getsid(0) != getppid());
    _exit(7);
  }
}

static void double_fork(void) {
  if (fork() == 0) {
    if (fork() == 0) {
      usleep(30000);
      churn(2);
      _exit(9);
    }
    _exit(1);
  }
  say("reaped", reap_all());
}

static void subreaper(void) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (int i = 0; i < 5; i++) {
    if (fork() == 0) {
      if (fork() == 0) {
        churn(5);
        _exit(1);
      }
      _exit(2);
    }
  }
  say("reaped", reap_all());
  say_error("then", waitpid(-1, 0, WNOHANG));
}

static void wait_forms(void) {
  for (int i = 0; i < 6; i++) {
    if (fork() == 0) {
      _exit(10 + i);
    }
  }
  int status;
  struct rusage use;
  siginfo_t info = {0};
  say("wait", wait(&status) > 0);
  say("wait3", wait3(&status, 0, &use) > 0);
  say("wait4", wait4(-1, &status, 0, &use) > 0);
  say("waitpid", waitpid(0, &status, 0) > 0);
  say("waitid", waitid(P_ALL, 0, &info, WEXITED) == 0 && info.si_code == CLD_EXITED);
  say("system call", syscall(SYS_wait4, -1, &status, 0, 0) > 0);
  say_error("then", wait(&status));
  say_error("waitid", waitid(P_ALL, 0, &info, WEXITED | WNOHANG));
}

static volatile sig_atomic_t ends;
static void count_end(int signal) {
  (void)signal;
  ends++;
}

static void child_signals(void) {
  struct sigaction action = {.sa_handler = count_end};
  sigaction(SIGCHLD, &action, 0);
  for (int i = 0; i < 10; i++) {
    const sig_atomic_t before = ends;
    if (fork() == 0) {
      churn(4);
      _exit(0);
    }
    while (ends == before) {
      usleep(1000);
    }
    wait(0);
  }
  say("signals", ends);
}

static void children_ignored(void) {
  signal(SIGCHLD, SIG_IGN);
  for (int i = 0; i < 5; i++) {
    if (fork() == 0) {
      _exit(0);
    }
  }
  say_error("wait", wait(0));
}

static void children_not_waited(void) {
  struct sigaction action = {.sa_handler = count_end, .sa_flags = SA_NOCLDWAIT | SA_RESTART};
  sigaction(SIGCHLD, &action, 0);
  if (fork() == 0) {
    _exit(0);
  }
  say_error("wait", wait(0));
  say("signals", ends);
}

static void kill_children(void) {
  const int signals[] = {SIGKILL, SIGTERM, SIGINT, SIGQUIT, SIGUSR1};
  for (int i = 0; i < 5; i++) {
    const pid_t child = fork();
    if (child == 0) {
      churn(2);
      for (;;) {
        pause();
      }
    }
    int status;
    kill(child, signals[i]);
    waitpid(child, &status, 0);
    say("signal", WTERMSIG(status));
  }
}

static void kill_group(void) {
  const pid_t leader = fork();
  if (leader == 0) {
    setpgid(0, 0);
    for (int i = 0; i < 4 && fork(); i++) {
    }
    churn(1);
    pause();
    _exit(0);
  }
  setpgid(leader, leader);
  usleep(50000);
  kill(-leader, SIGTERM);
  int status;
  waitpid(leader, &status, 0);
  say("signal", WTERMSIG(status));
}

static void stop_and_continue(void) {
  const pid_t child = fork();
  if (child == 0) {
    raise(SIGSTOP);
    churn(2);
    _exit(4);
  }
  int status;
  waitpid(child, &status, WUNTRACED);
  say("stopped", WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
  kill(child, SIGCONT);
  waitpid(child, &status, WCONTINUED);
  say("continued", WIFCONTINUED(status));
  waitpid(child, &status, 0);
  say("exit", WEXITSTATUS(status));
}

static void parent_dies(void) {
  if (fork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != 1) {
      pause();
    }
    _exit(0);
  }
  usleep(50000);
}

static void pidfd(void) {
  const pid_t child = fork();
  if (child == 0) {
    usleep(10000);
    _exit(3);
  }
  const int file = (int)syscall(SYS_pidfd_open, child, 0);
  struct pollfd poll_for = {.fd = file, .events = POLLIN};
  say("number", file);
  say("poll", poll(&poll_for, 1, 5000));
  siginfo_t info = {0};
  say("waitid", waitid(P_PIDFD, (id_t)file, &info, WEXITED));
  say("status", info.si_status);
}

static void traced_by_itself(void) {
  const pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    execl("/bin/true", "true", (char*)0);
    _exit(1);
  }
  int status, stops = 0;
  while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
    stops++;
    ptrace(PTRACE_CONT, child, 0, 0);
  }
  say("stops", stops);
  say("exit", WEXITSTATUS(status));
}

static void descriptors(void) {
  const int first = open("/dev/null", O_RDONLY), second = dup(first);
  say("first", first);
  say("second", second);
  int pair[2];
  say("pipe", pipe(pair));
  say("read end", pair[0]);
  DIR* folder = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(folder)) {
    count++;
  }
  closedir(folder);
  say("open", count);
}

static void close_all(void) {
  for (int i = 3; i < 1024; i++) {
    close(i);
  }
  churn(8);
  say("next", open("/dev/null", O_RDONLY));
  if (fork() == 0) {
    closefrom(3);
    churn(9);
    _exit(2);
  }
  say("reaped", reap_all());
}

static void close_range_all(void) {
  say("close_range", syscall(SYS_close_range, 3, ~0U, 0));
  churn(8);
  close(0);
  say("next", open("/dev/null", O_RDONLY));
  say("system", system("exit 3"));
}

static void close_standard(void) {
  close(0);
  close(1);
  close(2);
  churn(3);
  if (fork() == 0) {
    churn(4);
    _exit(open("/dev/null", O_RDONLY));
  }
  int status;
  wait(&status);
  _exit(WEXITSTATUS(status) + 20);
}

static void exec_without_standard(void) {
  close(0);
  close(1);
  close(2);
  execl("/proc/self/exe", "kinds", "close_standard", (char*)0);
}

static void few_descriptors(void) {
  const struct rlimit limit = {6, 6};
  say("limit", setrlimit(RLIMIT_NOFILE, &limit));
  for (int i = 0; i < 5; i++) {
    say_error("open", open("/dev/null", O_RDONLY));
  }
  if (fork() == 0) {
    churn(4);
    _exit(5);
  }
  say("reaped", reap_all());
  for (int i = 3; i < 6; i++) {
    close(i);
  }
  say("system", system("echo in a shell"));
}

static void limited(int kind, rlim_t bytes, const char* name) {
  const struct rlimit limit = {bytes, bytes};
  say(name, setrlimit((__rlimit_resource_t)kind, &limit));
  void* block = malloc(300 << 20);
  say("large block", block != 0);
  free(block);
  churn(3);
  if (fork() == 0) {
    churn(4);
    _exit(5);
  }
  say("reaped", reap_all());
  say("system", system("echo in a shell"));
}

static void limit_memory(void) { limited(RLIMIT_AS, 200 << 20, "address space"); }
static void limit_data(void) { limited(RLIMIT_DATA, 50 << 20, "data"); }
static void limit_stack(void) { limited(RLIMIT_STACK, 256 << 10, "stack"); }
static void limit_core(void) { limited(RLIMIT_CORE, 0, "core"); }
static void limit_locked(void) { limited(RLIMIT_MEMLOCK, 0, "locked"); }

static void limit_processor(void) {
  const struct rlimit limit = {1, 2};
  setrlimit(RLIMIT_CPU, &limit);
  for (;;) {
    churn(1);
  }
}

static void limit_file(void) {
  const struct rlimit limit = {1000, 1000};
  setrlimit(RLIMIT_FSIZE, &limit);
  signal(SIGXFSZ, SIG_IGN);
  const int file = open("file", O_WRONLY | O_CREAT, 0600);
  char text[700] = {0};
  for (int i = 0; i < 3; i++) {
    say_error("write", write(file, text, sizeof text));
  }
  churn(5);
  if (fork() == 0) {
    churn(4);
    _exit(5);
  }
  say("reaped", reap_all());
}

static void other_user(void) {
  say_error("groups", setgroups(0, 0));
  say_error("group", setresgid(65534, 65534, 65534));
  say_error("user", setresuid(65534, 65534, 65534));
  churn(5);
  if (fork() == 0) {
    churn(4);
    _exit(open("/etc/shadow", O_RDONLY) < 0 ? 5 : 6);
  }
  int status;
  wait(&status);
  say("status", WEXITSTATUS(status));
  say("system", system("id -u"));
}

static void other_root(void) {
  mkdir("root", 0755);
  say_error("chroot", chroot("root"));
  say_error("chdir", chdir("/"));
  churn(5);
  if (fork() == 0) {
    churn(4);
    _exit(access("/bin", F_OK) ? 5 : 6);
  }
  int status;
  wait(&status);
  say("status", WEXITSTATUS(status));
}

static void own_namespaces(void) {
  say_error("unshare", unshare(CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNS));
  say_error("pid namespace", unshare(CLONE_NEWPID));
  const pid_t child = fork();
  if (child == 0) {
    churn(4);
    _exit(getpid());
  }
  int status;
  waitpid(child, &status, 0);
  say("status", WEXITSTATUS(status));
}

static void not_dumpable(void) {
  prctl(PR_SET_DUMPABLE, 0);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_NAME, "another");
  churn(4);
  if (fork() == 0) {
    churn(4);
    _exit(5);
  }
  char name[16] = {0};
  prctl(PR_GET_NAME, name);
  puts(name);
  say("reaped", reap_all());
}

static void deleted_folder(void) {
  mkdir("gone", 0755);
  say("chdir", chdir("gone"));
  say("rmdir", rmdir("../gone"));
  churn(2);
  if (fork() == 0) {
    churn(4);
    _exit(getcwd(0, 0) ? 5 : 6);
  }
  int status;
  wait(&status);
  say("status", WEXITSTATUS(status));
  execl("/bin/echo", "echo", "from no folder", (char*)0);
}

static void ends_by(const char* how) {
  churn(3);
  say(how, 0);
}
static void end_by_abort(void) {
  ends_by("abort");
  abort();
}
static void end_by_fault(void) {
  ends_by("fault");
  *(volatile int*)8 = 1;
}
static void end_by_kill(void) {
  ends_by("kill");
  kill(getpid(), SIGKILL);
}
static void end_at_once(void) {
  ends_by("_exit");
  _exit(42);
}
static void say_goodbye(void) { say("goodbye", 0); }
static void end_quickly(void) {
  at_quick_exit(say_goodbye);
  quick_exit(43);
}
static void end_with_handlers(void) {
  atexit(say_goodbye);
  atexit(end_at_once);
  exit(1);
}
static void end_by_double_free(void) {
  void* volatile block = malloc(100);
  free(block);
  free(block);
}
static void end_by_alarm(void) {
  alarm(1);
  for (;;) {
    pause();
  }
}

static void use_of_children(void) {
  struct rusage use;
  if (fork() == 0) {
    for (int i = 0; i < 1000; i++) {
      churn((unsigned)i);
    }
    _exit(0);
  }
  wait(0);
  getrusage(RUSAGE_CHILDREN, &use);
  say("below a second", use.ru_utime.tv_sec == 0);
}

static void ids(void) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(getpid() == (pid_t)syscall(SYS_gettid) && getpid() == (pid_t)syscall(SYS_getpid) ? 3 : 4);
  }
  int status;
  wait(&status);
  say("status", WEXITSTATUS(status));
  char path[64], line[256];
  snprintf(path, sizeof path, "/proc/%d/status", getpid());
  FILE* file = fopen(path, "r");
  while (fgets(line, sizeof line, file)) {
    if (strncmp(line, "Threads", 7) == 0 || (strncmp(line, "Sig", 3) == 0 && line[3] != 'Q') ||
        strncmp(line, "Seccomp:", 8) == 0) {
      fputs(line, stdout);
    }
  }
  fclose(file);
  snprintf(path, sizeof path, "/proc/%d/task/%d/children", getpid(), getpid());
  file = fopen(path, "r");
  int children = 0, pid;
  while (file && fscanf(file, "%d", &pid) == 1) {
    children++;
  }
  say("at most one child in /proc", children <= 1);
}

static const struct kind kinds[] = {
    {"fork_storm", fork_storm},
    {"fork_tree", fork_tree},
    {"vfork_exec", vfork_exec},
    {"vfork_exit", vfork_exit},
    {"spawn_many", spawn_many},
    {"clone_memory", clone_memory},
    {"clone_without_signal", clone_without_signal},
    {"exec_chain", exec_chain},
    {"exec_empty_environment", exec_empty_environment},
    {"exec_by_descriptor", exec_by_descriptor},
    {"exec_fails", exec_fails},
    {"daemonise", daemonise},
    {"double_fork", double_fork},
    {"subreaper", subreaper},
    {"wait_forms", wait_forms},
    {"child_signals", child_signals},
    {"children_ignored", children_ignored},
    {"children_not_waited", children_not_waited},
    {"kill_children", kill_children},
    {"kill_group", kill_group},
    {"stop_and_continue", stop_and_continue},
    {"parent_dies", parent_dies},
    {"pidfd", pidfd},
    {"traced_by_itself", traced_by_itself},
    {"descriptors", descriptors},
    {"close_all", close_all},
    {"close_range_all", close_range_all},
    {"close_standard", close_standard},
    {"exec_without_standard", exec_without_standard},
    {"few_descriptors", few_descriptors},
    {"limit_memory", limit_memory},
    {"limit_data", limit_data},
    {"limit_stack", limit_stack},
    {"limit_core", limit_core},
    {"limit_locked", limit_locked},
    {"limit_processor", limit_processor},
    {"limit_file", limit_file},
    {"other_user", other_user},
    {"other_root", other_root},
    {"own_namespaces", own_namespaces},
    {"not_dumpable", not_dumpable},
    {"deleted_folder", deleted_folder},
    {"end_by_abort", end_by_abort},
    {"end_by_fault", end_by_fault},
    {"end_by_kill", end_by_kill},
    {"end_at_once", end_at_once},
    {"end_quickly", end_quickly},
    {"end_with_handlers", end_with_handlers},
    {"end_by_double_free", end_by_double_free},
    {"end_by_alarm", end_by_alarm},
    {"use_of_children", use_of_children},
    {"ids", ids},
};

int main(int argc, char** argv) { return run_kind(kinds, sizeof kinds / sizeof *kinds, argc, argv); }
