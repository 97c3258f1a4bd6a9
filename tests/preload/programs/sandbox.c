// sandbox HOW: forbids nearly all system calls to itself, with a signal that ends it, and then allocates many blocks.
// Blocks of 41000 bytes come before that, those of 41001 after.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { before = 10, after = 100000, allowed_max = 16 };

static void make(int count, size_t size) {
  for (int i = 0; i < count; i++) free(malloc(size));
}

struct Filter {
  struct sock_filter instructions[2 * allowed_max + 2];
  struct sock_fprog program;
};

static void allow(struct Filter* filter, const int* allowed, int count, uint32_t otherwise) {
  struct sock_filter* next = filter->instructions;
  *next++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (int i = 0; i < count; i++) {
    *next++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)allowed[i], 0, 1);
    *next++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  *next++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise);
  filter->program.filter = filter->instructions;
  filter->program.len = (unsigned short)(next - filter->instructions);
}

// The system calls that malloc and the program's end need.
static struct sock_fprog* deadly(void) {
  static const int allowed[] = {SYS_read, SYS_write, SYS_mmap, SYS_munmap, SYS_brk, SYS_exit, SYS_exit_group};
  static struct Filter filter;
  allow(&filter, allowed, sizeof allowed / sizeof *allowed, SECCOMP_RET_KILL_PROCESS);
  return &filter.program;
}

static int by_prctl(void) {
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, deadly());
}

static int by_syscall(void) {
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, deadly()) != 0;
}

static int by_strict(void) { return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT); }

static int without_clock(void) { return prctl(PR_SET_TSC, PR_TSC_SIGSEGV); }

// A refused call changes nothing.
static int in_vain(void) {
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) != -1 || errno != EFAULT ||
         prctl(PR_SET_SECCOMP, 77) != -1 || syscall(SYS_getpid) != getpid();
}

static atomic_int goes, done;

static void* beside(void* unused) {
  while (!goes) continue;
  make(after, 41002);
  done++;
  return unused;
}

// Other threads start when this one is in the sandbox; the tracer's state is shared with them.
static int with_threads(void) {
  pthread_t thread;
  for (int i = 0; i < 3; i++) pthread_create(&thread, NULL, beside, NULL);
  if (by_prctl() != 0) return 1;
  goes = 1;
  while (done < 3) continue;
  return 0;
}

// A child that is forked in the sandbox cannot begin a trace.
static int fork_inside(void) {
  static const int allowed[] = {SYS_read,  SYS_write,          SYS_mmap,   SYS_munmap, SYS_brk,
                                SYS_clone, SYS_exit_group,     SYS_exit,   SYS_wait4,  SYS_set_robust_list,
                                SYS_futex, SYS_rt_sigprocmask, SYS_gettid, SYS_getpid};
  static struct Filter filter;
  allow(&filter, allowed, sizeof allowed / sizeof *allowed, SECCOMP_RET_KILL_PROCESS);
  int status = 1;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter.program)) return 1;
  pid_t child = fork();
  if (child == 0) {
    make(100, 41003);
    _exit(0);
  }
  return waitpid(child, &status, 0) != child || status != 0;
}

static int enter(const char* how) {
  if (strcmp(how, "prctl") == 0) return by_prctl();
  if (strcmp(how, "syscall") == 0) return by_syscall();
  if (strcmp(how, "strict") == 0) return by_strict();
  if (strcmp(how, "clock") == 0) return without_clock();
  if (strcmp(how, "in_vain") == 0) return in_vain();
  if (strcmp(how, "threads") == 0) return with_threads();
  if (strcmp(how, "fork") == 0) return fork_inside();
  return 1;
}

int main(int argc, char** argv) {
  prctl(PR_SET_NAME, "a name that is longer");
  make(before, 41000);
  if (argc != 2 || enter(argv[1]) != 0) return 1;
  make(after, 41001);
  write(STDOUT_FILENO, "alive\n", 6);
  if (strcmp(argv[1], "strict") == 0) syscall(SYS_exit, 4);
  return 4;
}
