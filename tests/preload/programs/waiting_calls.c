// waiting_calls CALL[:MS]...: waits in system calls, one thread for each, and counts those that end too early.
//
// The first call is made by the first thread. With ":MS" a call has a timeout, and is made again each time that it has
// ended by that. SIGTERM has a handler, and ends the first thread's call with EINTR. Then a line is printed for each
// call: its name, how often it was interrupted, how often it ended too early, and its longest delay in ms. The exit
// status is 1 if one was interrupted or ended too early.
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { calls_max = 64 };

struct Call {
  const char* name;
  long (*wait)(int ms);
  int ms;
  unsigned interrupted, early;
  double late_ms;
};

static struct Call calls[calls_max];
static int call_count;
static volatile sig_atomic_t is_over;
static pid_t child;  // holds locks, and ends with us
static int locked = -1, semaphores = -1, messages = -1;

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static struct timespec* timespec_of(int ms, struct timespec* time) {
  *time = (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
  return ms < 0 ? NULL : time;
}

static struct timespec after(clockid_t clock, int ms) {
  struct timespec t;
  clock_gettime(clock, &t);
  const long ns = t.tv_nsec + (ms < 0 ? 0 : ms % 1000 * 1000000L);
  t.tv_sec += (ms < 0 ? 1000 : ms / 1000) + ns / 1000000000;
  t.tv_nsec = ns % 1000000000;
  return t;
}

static int empty_pipe(void) {
  static __thread int ends[2];
  if (!ends[1] && pipe(ends)) abort();
  return ends[0];
}

static int empty_socket(int option, int ms) {
  static __thread int ends[2];
  if (!ends[1]) {
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) abort();
    const struct timeval time = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    if (ms >= 0) setsockopt(ends[0], SOL_SOCKET, option, &time, sizeof time);
  }
  return ends[0];
}

static int listening(const char* name, struct sockaddr_un* address) {
  *address = (struct sockaddr_un){.sun_family = AF_UNIX};
  snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "cmt-%d-%s", (int)getpid(), name);
  const int s = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(s, (struct sockaddr*)address, sizeof *address) || listen(s, 0)) abort();
  return s;
}

static int epoll_set(void) {
  static __thread int set;
  if (!set) {
    set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(set, EPOLL_CTL_ADD, empty_pipe(), &event);
  }
  return set;
}

static long wait_read(int ms) {
  char c;
  (void)ms;
  return read(empty_pipe(), &c, 1);
}
static long wait_eventfd(int ms) {
  uint64_t n;
  (void)ms;
  static int fd = -1;
  if (fd < 0) fd = eventfd(0, 0);
  return read(fd, &n, 8);
}
static long wait_inotify(int ms) {
  char all[4096];
  (void)ms;
  static int fd = -1;
  if (fd < 0) fd = inotify_init();
  return read(fd, all, sizeof all);
}
static long wait_write(int ms) {
  (void)ms;
  static int ends[2];
  if (!ends[1]) {
    if (pipe2(ends, O_NONBLOCK)) abort();
    while (write(ends[1], calls, sizeof calls) > 0) {
    }
    while (write(ends[1], calls, 1) > 0) {
    }
    fcntl(ends[1], F_SETFL, 0);
  }
  return write(ends[1], calls, 1);
}
static long wait_epoll(int ms) {
  struct epoll_event e;
  return epoll_wait(epoll_set(), &e, 1, ms);
}
static long wait_epoll_p(int ms) {
  struct epoll_event e;
  sigset_t none;
  sigemptyset(&none);
  return epoll_pwait(epoll_set(), &e, 1, ms, &none);
}
static long wait_epoll_p2(int ms) {
  struct epoll_event e;
  struct timespec t;
  return syscall(441, epoll_set(), &e, 1, timespec_of(ms, &t), NULL, 0);
}
static long wait_poll(int ms) {
  struct pollfd p = {.fd = empty_pipe(), .events = POLLIN};
  return poll(&p, 1, ms);
}
static long wait_ppoll(int ms) {
  struct pollfd p = {.fd = empty_pipe(), .events = POLLIN};
  struct timespec t;
  sigset_t none;
  sigemptyset(&none);
  return ppoll(&p, 1, timespec_of(ms, &t), &none);
}
// The kernel cannot write the rest of its time there.
static long wait_ppoll_constant(int ms) {
  static struct timespec* t;
  if (!t) {
    t = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    timespec_of(ms < 0 ? 1000000 : ms, t);
    mprotect(t, 4096, PROT_READ);
  }
  return syscall(SYS_ppoll, NULL, 0, t, NULL, 8);
}
static long wait_select(int ms) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(empty_pipe(), &set);
  struct timeval t = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
  return select(empty_pipe() + 1, &set, NULL, NULL, ms < 0 ? NULL : &t);
}
static long wait_pselect(int ms) {
  struct timespec t;
  sigset_t none;
  sigemptyset(&none);
  return pselect(0, NULL, NULL, NULL, timespec_of(ms, &t), &none);
}
static long wait_semop(int ms) {
  (void)ms;
  struct sembuf down = {.sem_op = -1};
  return semop(semaphores, &down, 1);
}
static long wait_semtimedop(int ms) {
  struct timespec t;
  struct sembuf down = {.sem_op = -1};
  return semtimedop(semaphores, &down, 1, timespec_of(ms, &t));
}
static long wait_signal(int ms) {
  sigset_t one;
  struct timespec t;
  sigemptyset(&one);
  sigaddset(&one, SIGRTMIN);
  sigprocmask(SIG_BLOCK, &one, NULL);
  return ms < 0 ? sigwaitinfo(&one, NULL) : sigtimedwait(&one, NULL, timespec_of(ms, &t));
}
static long wait_io_events(int ms) {
  static aio_context_t context;
  struct io_event event;
  struct timespec t;
  if (!context && syscall(SYS_io_setup, 1, &context)) abort();
  return syscall(SYS_io_getevents, context, 1, 1, &event, timespec_of(ms, &t));
}
static long wait_io_uring(int ms) {
  static int ring = -1;
  struct io_uring_params parameters = {0};
  if (ring < 0) ring = (int)syscall(SYS_io_uring_setup, 1, &parameters);
  if (ring < 0) return pause();  // not permitted here
  struct timespec t;
  struct {
    uint64_t mask;
    uint32_t size, least;
    uint64_t time;
  } argument = {.time = (uint64_t)timespec_of(ms, &t)};
  return syscall(SYS_io_uring_enter, ring, 0, 1, IORING_ENTER_GETEVENTS | 8, &argument, sizeof argument);
}
static long wait_nanosleep(int ms) {
  struct timespec t;
  timespec_of(ms < 0 ? 1000000 : ms, &t);
  return nanosleep(&t, NULL);
}
static long wait_clock(int ms) {
  struct timespec t;
  timespec_of(ms < 0 ? 1000000 : ms, &t);
  return (errno = clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL)) ? -1 : 0;
}
static long wait_clock_until(int ms) {
  struct timespec t = after(CLOCK_MONOTONIC, ms);
  return (errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL)) ? -1 : 0;
}
static long wait_futex(int ms) {
  static int word;
  struct timespec t;
  return syscall(SYS_futex, &word, FUTEX_WAIT, 0, timespec_of(ms, &t));
}
static long wait_condition(int ms) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  struct timespec t = after(CLOCK_REALTIME, ms);
  pthread_mutex_lock(&mutex);
  const int failed = pthread_cond_timedwait(&condition, &mutex, &t);
  pthread_mutex_unlock(&mutex);
  errno = failed;
  return failed ? -1 : 0;
}
static long wait_recv(int ms) {
  char c;
  return recv(empty_socket(SO_RCVTIMEO, ms), &c, 1, 0);
}
static long wait_recvmsg(int ms) {
  char c;
  struct iovec v = {&c, 1};
  struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
  return recvmsg(empty_socket(SO_RCVTIMEO, ms), &m, 0);
}
static long wait_recvmmsg(int ms) {
  char c;
  struct iovec v = {&c, 1};
  struct mmsghdr m = {.msg_hdr = {.msg_iov = &v, .msg_iovlen = 1}};
  return recvmmsg(empty_socket(SO_RCVTIMEO, ms), &m, 1, 0, NULL);
}
static long wait_socket_read(int ms) {
  char c;
  return read(empty_socket(SO_RCVTIMEO, ms), &c, 1);
}
static long wait_send(int ms) {
  static bool is_full;
  const int s = empty_socket(SO_SNDTIMEO, ms);
  if (!is_full) {
    while (send(s, calls, sizeof calls, MSG_DONTWAIT) > 0) {
    }
    while (send(s, calls, 1, MSG_DONTWAIT) > 0) {
    }
    is_full = true;
  }
  return send(s, calls, 1, 0);
}
static long wait_accept(int ms) {
  static int s = -1;
  struct sockaddr_un address;
  if (s < 0) {
    s = listening("accept", &address);
    const struct timeval time = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    if (ms >= 0) setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  }
  return accept(s, NULL, NULL);
}
static long wait_connect(int ms) {
  static int s = -1;
  static struct sockaddr_un address;
  if (s < 0) {
    listening("connect", &address);
    const int first = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(first, (struct sockaddr*)&address, sizeof address)) abort();
    s = socket(AF_UNIX, SOCK_STREAM, 0);
    const struct timeval time = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    if (ms >= 0) setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
  }
  return connect(s, (struct sockaddr*)&address, sizeof address);
}
static int opened_again(void) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", locked);
  return open(path, O_RDWR);
}
static long wait_flock(int ms) {
  (void)ms;
  return flock(opened_again(), LOCK_EX);
}
static long wait_lock(int ms) {
  (void)ms;
  struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  return fcntl(locked, F_SETLKW, &all);
}
static long wait_child(int ms) {
  (void)ms;
  return waitpid(child, NULL, 0);
}
static long wait_child_id(int ms) {
  (void)ms;
  siginfo_t i;
  return waitid(P_PID, (id_t)child, &i, WEXITED);
}
static long wait_message(int ms) {
  (void)ms;
  struct {
    long type;
    char text[8];
  } m;
  return msgrcv(messages, &m, sizeof m.text, 1, 0);
}
static long wait_queue(int ms) {
  static mqd_t queue = -1;
  char text[64];
  char name[32];
  if (queue < 0) {
    struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = sizeof text};
    snprintf(name, sizeof name, "/cmt-%d", (int)getpid());
    queue = mq_open(name, O_CREAT | O_RDWR, 0600, &attributes);
    mq_unlink(name);
  }
  if (queue < 0) return pause();
  struct timespec t = after(CLOCK_REALTIME, ms);
  return mq_timedreceive(queue, text, sizeof text, NULL, &t);
}
static long wait_pause(int ms) {
  (void)ms;
  return pause();
}
static long wait_suspend(int ms) {
  (void)ms;
  sigset_t none;
  sigemptyset(&none);
  return sigsuspend(&none);
}
static long wait_fifo(int ms) {
  char name[64];
  (void)ms;
  snprintf(name, sizeof name, "fifo.%d", (int)getpid());
  mkfifo(name, 0600);
  return open(name, O_RDONLY);
}

static const struct Call known[] = {
    {.name = "read", .wait = wait_read},
    {.name = "eventfd", .wait = wait_eventfd},
    {.name = "inotify", .wait = wait_inotify},
    {.name = "write", .wait = wait_write},
    {.name = "epoll_wait", .wait = wait_epoll},
    {.name = "epoll_pwait", .wait = wait_epoll_p},
    {.name = "epoll_pwait2", .wait = wait_epoll_p2},
    {.name = "poll", .wait = wait_poll},
    {.name = "ppoll", .wait = wait_ppoll},
    {.name = "ppoll_constant", .wait = wait_ppoll_constant},
    {.name = "select", .wait = wait_select},
    {.name = "pselect", .wait = wait_pselect},
    {.name = "semop", .wait = wait_semop},
    {.name = "semtimedop", .wait = wait_semtimedop},
    {.name = "sigtimedwait", .wait = wait_signal},
    {.name = "io_getevents", .wait = wait_io_events},
    {.name = "io_uring_enter", .wait = wait_io_uring},
    {.name = "nanosleep", .wait = wait_nanosleep},
    {.name = "clock_nanosleep", .wait = wait_clock},
    {.name = "clock_nanosleep_until", .wait = wait_clock_until},
    {.name = "futex", .wait = wait_futex},
    {.name = "pthread_cond_timedwait", .wait = wait_condition},
    {.name = "recv", .wait = wait_recv},
    {.name = "recvmsg", .wait = wait_recvmsg},
    {.name = "recvmmsg", .wait = wait_recvmmsg},
    {.name = "socket_read", .wait = wait_socket_read},
    {.name = "send", .wait = wait_send},
    {.name = "accept", .wait = wait_accept},
    {.name = "connect", .wait = wait_connect},
    {.name = "flock", .wait = wait_flock},
    {.name = "fcntl", .wait = wait_lock},
    {.name = "waitpid", .wait = wait_child},
    {.name = "waitid", .wait = wait_child_id},
    {.name = "msgrcv", .wait = wait_message},
    {.name = "mq_timedreceive", .wait = wait_queue},
    {.name = "pause", .wait = wait_pause},
    {.name = "sigsuspend", .wait = wait_suspend},
    {.name = "open_fifo", .wait = wait_fifo},
};

static void* make(void* of) {
  struct Call* call = of;
  while (!is_over) {
    const double begin = now_ms();
    errno = 0;
    const long result = call->wait(call->ms);
    const int error = errno;
    const double took = now_ms() - begin;
    if (is_over) break;
    const bool is_timeout = call->ms >= 0 && (result == 0 || (result == -1 && error != EINTR));
    if (result == -1 && error == EINTR) {
      call->interrupted++;
    } else if (!is_timeout || took < call->ms - 1) {
      fprintf(stderr, "%s: %ld (%s) after %.1f ms\n", call->name, result, strerror(error), took);
      call->early++;
      usleep(1000);
    }
    if (is_timeout && took - call->ms > call->late_ms) call->late_ms = took - call->ms;
  }
  return NULL;
}

static void add(const char* text) {
  char name[64];
  struct Call* call = &calls[call_count++];
  snprintf(name, sizeof name, "%s", text);
  char* const colon = strchr(name, ':');
  if (colon) *colon = 0;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (strcmp(name, known[i].name) == 0) *call = known[i];
  }
  if (!call->wait) exit(2);
  call->ms = colon ? atoi(colon + 1) : -1;
}

static void end(int signal) {
  (void)signal;
  is_over = 1;
}

int main(int argc, char** argv) {
  if (argc < 2 || argc > calls_max) return 2;
  if (strcmp(argv[1], "--list") == 0) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) puts(known[i].name);
    return 0;
  }
  for (int i = 1; i < argc; i++) add(argv[i]);
  char name[64];
  snprintf(name, sizeof name, "locked.%d", (int)getpid());
  locked = open(name, O_CREAT | O_RDWR, 0600);
  unlink(name);
  semaphores = semget(IPC_PRIVATE, 1, 0600);
  messages = msgget(IPC_PRIVATE, 0600);
  int held[2];
  if (pipe(held)) return 1;
  child = fork();
  if (child == 0) {
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fcntl(locked, F_SETLKW, &all);
    flock(opened_again(), LOCK_EX);
    if (write(held[1], "", 1) != 1) return 1;
    for (;;) pause();
  }
  char byte;
  if (read(held[0], &byte, 1) != 1) return 1;
  const struct sigaction action = {.sa_handler = end};
  sigset_t ours, before;
  sigemptyset(&ours);
  sigaddset(&ours, SIGTERM);
  sigprocmask(SIG_BLOCK, &ours, &before);
  sigaction(SIGTERM, &action, NULL);
  signal(SIGWINCH, SIG_IGN);
  for (int i = 1; i < call_count; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, make, &calls[i])) return 1;
  }
  sigprocmask(SIG_SETMASK, &before, NULL);
  free(malloc(1));
  puts("ready");
  fflush(stdout);
  make(&calls[0]);
  semctl(semaphores, 0, IPC_RMID);
  msgctl(messages, IPC_RMID, NULL);
  kill(child, SIGKILL);
  bool is_bad = false;
  for (int i = 0; i < call_count; i++) {
    printf("%s %u %u %.0f\n", calls[i].name, calls[i].interrupted, calls[i].early, calls[i].late_ms);
    is_bad |= calls[i].interrupted || calls[i].early;
  }
  return is_bad;
}
