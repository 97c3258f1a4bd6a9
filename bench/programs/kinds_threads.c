// kinds_threads [NAME]: small programs with threads, signals, stacks of their own, sockets and shared memory.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <ucontext.h>
#include "kinds.h"

static void* churn_on(void* argument) {
  churn((unsigned)(uintptr_t)argument);
  return argument;
}

static pthread_t start(void* (*body)(void*), void* argument) {
  pthread_t thread;
  const int error = pthread_create(&thread, 0, body, argument);
  if (error != 0) {
    say("error", error);
    exit(1);
  }
  return thread;
}

static void many_threads(void) {
  pthread_t threads[64];
  uintptr_t sum = 0;
  for (uintptr_t i = 0; i < 64; i++) {
    threads[i] = start(churn_on, (void*)i);
  }
  for (int i = 0; i < 64; i++) {
    void* result;
    pthread_join(threads[i], &result);
    sum += (uintptr_t)result;
  }
  say("sum", (long)sum);
}

static void thread_after_thread(void) {
  for (uintptr_t i = 0; i < 300; i++) {
    pthread_join(start(churn_on, (void*)i), 0);
  }
  say("done", 300);
}

static sem_t finished;
static void* detached_body(void* argument) {
  churn_on(argument);
  sem_post(&finished);
  return 0;
}

static void detached_threads(void) {
  sem_init(&finished, 0, 0);
  for (uintptr_t i = 0; i < 30; i++) {
    pthread_detach(start(detached_body, (void*)i));
  }
  for (int i = 0; i < 30; i++) {
    sem_wait(&finished);
  }
  say("done", 30);
}

static pthread_key_t key;
static int destroyed;
static void destroy(void* value) {
  free(value);
  churn(3);
  __atomic_add_fetch(&destroyed, 1, __ATOMIC_SEQ_CST);
}

static void* with_local(void* argument) {
  pthread_setspecific(key, malloc(100));
  return churn_on(argument);
}

static void local_destructors(void) {
  pthread_key_create(&key, destroy);
  for (uintptr_t i = 0; i < 20; i++) {
    pthread_join(start(with_local, (void*)i), 0);
  }
  say("destroyed", destroyed);
  pthread_key_t keys[2000];
  int count = 0;
  while (count < 2000 && pthread_key_create(&keys[count], 0) == 0) {
    count++;
  }
  say("more than 1000 keys", count > 1000);
}

static void* cancelled_body(void* argument) {
  (void)argument;
  for (;;) {
    churn(1);
    usleep(1000);
  }
  return 0;
}

static void cancelled_threads(void) {
  for (int i = 0; i < 10; i++) {
    const pthread_t thread = start(cancelled_body, 0);
    usleep(2000);
    pthread_cancel(thread);
    void* result;
    pthread_join(thread, &result);
    say("cancelled", result == PTHREAD_CANCELED);
  }
}

static void* cancelled_at_once(void* argument) {
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0);
  for (;;) {
    __atomic_add_fetch((int*)argument, 1, __ATOMIC_RELAXED);
  }
  return 0;
}

static void cancelled_asynchronously(void) {
  int count = 0;
  const pthread_t thread = start(cancelled_at_once, &count);
  usleep(1000);
  pthread_cancel(thread);
  void* result;
  pthread_join(thread, &result);
  say("cancelled", result == PTHREAD_CANCELED);
}

static void* late_body(void* argument) {
  usleep(30000);
  churn_on(argument);
  say("after main", 1);
  return 0;
}

static void main_ends_first(void) {
  start(late_body, 0);
  pthread_exit(0);
}

static void* exit_body(void* argument) { exit((int)(uintptr_t)argument); }

static void thread_exits(void) {
  start(exit_body, (void*)11);
  pause();
}

static void smallest_stacks(void) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  say("set", pthread_attr_setstacksize(&attributes, 16384));
  for (uintptr_t i = 0; i < 8; i++) {
    pthread_t thread;
    pthread_create(&thread, &attributes, churn_on, (void*)i);
    pthread_join(thread, 0);
  }
  say("done", 8);
}

static int churn_for_c11(void* argument) {
  churn_on(argument);
  return 2;
}

static void c11_threads(void) {
  thrd_t threads[4];
  for (int i = 0; i < 4; i++) {
    thrd_create(&threads[i], churn_for_c11, 0);
  }
  int result, sum = 0;
  for (int i = 0; i < 4; i++) {
    thrd_join(threads[i], &result);
    sum += result;
  }
  say("sum", sum);
}

static void prepare(void) { say("prepare", 1); }
static void in_parent(void) { free(malloc(10)); }
static void in_child(void) { churn(2); }

static void* forever(void* argument) {
  for (;;) {
    churn_on(argument);
  }
  return 0;
}

static void fork_with_threads(void) {
  pthread_atfork(prepare, in_parent, in_child);
  start(forever, (void*)1);
  start(forever, (void*)2);
  int reaped = 0, status;
  for (int i = 0; i < 10; i++) {
    if (fork() == 0) {
      pthread_join(start(churn_on, (void*)3), 0);
      _exit(i);
    }
    reaped += wait(&status) > 0 && WEXITSTATUS(status) == i;
  }
  say("reaped", reaped);
}

static void exec_with_threads(void) {
  start(forever, (void*)1);
  start(forever, (void*)2);
  usleep(5000);
  execl("/bin/echo", "echo", "from threads", (char*)0);
}

static void robust_mutex(void) {
  pthread_mutexattr_t how;
  pthread_mutexattr_init(&how);
  pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
  pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
  pthread_mutex_t* mutex = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutex_init(mutex, &how);
  if (fork() == 0) {
    pthread_mutex_lock(mutex);
    churn(2);
    raise(SIGKILL);
  }
  wait(0);
  say("owner died", pthread_mutex_lock(mutex) == EOWNERDEAD);
}

static volatile sig_atomic_t caught;
static void count_signal(int signal) {
  (void)signal;
  caught++;
}

static void timer_signals(void) {
  signal(SIGALRM, count_signal);
  const struct itimerval often = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &often, 0);
  while (caught < 50) {
    churn(6);
  }
  say("caught", 50);
}

static void timer_thread_body(union sigval value) {
  churn(3);
  sem_post(value.sival_ptr);
}

static void timer_threads(void) {
  sem_init(&finished, 0, 0);
  timer_t timer;
  struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_value.sival_ptr = &finished};
  event.sigev_notify_function = timer_thread_body;
  say("create", timer_create(CLOCK_MONOTONIC, &event, &timer));
  const struct itimerspec often = {{0, 2000000}, {0, 2000000}};
  timer_settime(timer, 0, &often, 0);
  for (int i = 0; i < 10; i++) {
    sem_wait(&finished);
  }
  timer_delete(timer);
  say("done", 10);
}

static void interrupted_calls(void) {
  struct sigaction action = {.sa_handler = count_signal};
  sigaction(SIGUSR1, &action, 0);
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 200; i++) {
      usleep(5000);
      kill(getppid(), SIGUSR1);
    }
    _exit(0);
  }
  say_error("pause", pause());
  say_error("sleep", usleep(900000));
  int ends[2];
  char byte;
  say("pipe", pipe(ends));
  say_error("read", read(ends[0], &byte, 1));
  say_error("poll", poll(0, 0, 5000));
  kill(child, SIGKILL);
  wait(0);
}

static void waits_for_signals(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGRTMIN);
  sigprocmask(SIG_BLOCK, &set, 0);
  for (int i = 0; i < 3; i++) {
    sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i});
  }
  siginfo_t info;
  for (int i = 0; i < 3; i++) {
    say("signal", sigwaitinfo(&set, &info) == SIGRTMIN);
    say("value", info.si_value.sival_int);
  }
  const int file = signalfd(-1, &set, 0);
  raise(SIGUSR1);
  struct signalfd_siginfo record;
  say("signalfd", read(file, &record, sizeof record) == sizeof record && record.ssi_signo == SIGUSR1);
  execl("/bin/grep", "grep", "SigBlk", "/proc/self/status", (char*)0);
}

static sigjmp_buf before;
static void jump_back(int signal) {
  (void)signal;
  siglongjmp(before, 1);
}

static void faults_caught(void) {
  struct sigaction action = {.sa_handler = jump_back, .sa_flags = SA_NODEFER};
  sigaction(SIGSEGV, &action, 0);
  volatile int faults = 0;
  while (faults < 20) {
    if (sigsetjmp(before, 1) == 0) {
      churn(3);
      *(volatile int*)8 = 1;
    }
    faults++;
  }
  say("faults", faults);
}

static void churn_in_handler(int signal) {
  (void)signal;
  churn(1);
  caught++;
}

static void alternate_stack(void) {
  static char stack[8192];
  const stack_t there = {.ss_sp = stack, .ss_size = sizeof stack};
  sigaltstack(&there, 0);
  struct sigaction action = {.sa_handler = churn_in_handler, .sa_flags = SA_ONSTACK};
  sigaction(SIGUSR1, &action, 0);
  for (int i = 0; i < 10; i++) {
    raise(SIGUSR1);
  }
  say("caught", caught);
  stack_t now;
  sigaltstack(0, &now);
  say("the same", now.ss_sp == stack && now.ss_size == sizeof stack);
}

static long overflow(long depth) {
  volatile char room[1000];
  room[depth % 1000] = 1;
  return depth < 0 ? 0 : overflow(depth + 1) + room[depth % 1000];
}

static void overflow_caught(int signal) {
  (void)signal;
  static const char text[] = "overflow\n";
  _exit(write(1, text, sizeof text - 1) > 0 ? 3 : 4);
}

static void stack_overflow(void) {
  static char stack[8192];
  const stack_t there = {.ss_sp = stack, .ss_size = sizeof stack};
  sigaltstack(&there, 0);
  struct sigaction action = {.sa_handler = overflow_caught, .sa_flags = SA_ONSTACK};
  sigaction(SIGSEGV, &action, 0);
  say("depth", overflow(0));
}

static ucontext_t main_context, coroutine;
static void coroutine_body(void) {
  for (int i = 0; i < 50; i++) {
    free(malloc((size_t)i * 10));
    swapcontext(&coroutine, &main_context);
  }
}

static void coroutines(void) {
  static char stack[8192];
  getcontext(&coroutine);
  coroutine.uc_stack.ss_sp = stack;
  coroutine.uc_stack.ss_size = sizeof stack;
  coroutine.uc_link = &main_context;
  makecontext(&coroutine, coroutine_body, 0);
  for (int i = 0; i < 50; i++) {
    swapcontext(&main_context, &coroutine);
  }
  say("done", 50);
}

static int listen_on_loopback(struct sockaddr_in* at) {
  const int server = socket(AF_INET, SOCK_STREAM, 0);
  socklen_t length = sizeof *at;
  *at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  bind(server, (struct sockaddr*)at, sizeof *at);
  listen(server, 20);
  getsockname(server, (struct sockaddr*)at, &length);
  return server;
}

static void* client_body(void* argument) {
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  char text[6] = {0};
  connect(client, argument, sizeof(struct sockaddr_in));
  send(client, "hello", 5, 0);
  recv(client, text, 5, MSG_WAITALL);
  close(client);
  return strdup(text);
}

static void sockets(void) {
  struct sockaddr_in at;
  const int server = listen_on_loopback(&at);
  say("number", server);
  for (int i = 0; i < 10; i++) {
    const pthread_t thread = start(client_body, &at);
    const int client = accept(server, 0, 0);
    char text[5];
    recv(client, text, 5, MSG_WAITALL);
    send(client, "HELLO", 5, 0);
    close(client);
    void* result;
    pthread_join(thread, &result);
    puts(result);
    free(result);
  }
}

static void event_loop(void) {
  struct sockaddr_in at;
  const int server = listen_on_loopback(&at), loop = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = server};
  epoll_ctl(loop, EPOLL_CTL_ADD, server, &event);
  pthread_t threads[8];
  for (int i = 0; i < 8; i++) {
    threads[i] = start(client_body, &at);
  }
  for (int served = 0; served < 8;) {
    epoll_wait(loop, &event, 1, -1);
    if (event.data.fd == server) {
      event = (struct epoll_event){.events = EPOLLIN, .data.fd = accept(server, 0, 0)};
      epoll_ctl(loop, EPOLL_CTL_ADD, event.data.fd, &event);
      continue;
    }
    char* text = malloc(5);
    served += recv(event.data.fd, text, 5, MSG_WAITALL) == 5;
    send(event.data.fd, text, 5, 0);
    close(event.data.fd);
    free(text);
  }
  for (int i = 0; i < 8; i++) {
    void* result;
    pthread_join(threads[i], &result);
    puts(result);
    free(result);
  }
}

static void passed_descriptor(void) {
  int pair[2];
  socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
  char room[CMSG_SPACE(sizeof(int))] = {0}, byte = 'x';
  struct iovec data = {&byte, 1};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
  if (fork() == 0) {
    const int file = memfd_create("passed", 0);
    dprintf(file, "in a file of memory\n");
    struct cmsghdr* part = CMSG_FIRSTHDR(&message);
    *part = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof file)};
    memcpy(CMSG_DATA(part), &file, sizeof file);
    _exit(sendmsg(pair[0], &message, 0) == 1 ? 0 : 1);
  }
  say("received", recvmsg(pair[1], &message, 0));
  int file;
  memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
  say("number", file);
  off_t from = 0;
  fflush(stdout);
  say("sent", sendfile(1, file, &from, 100));
  wait(0);
}

static void watched_files(void) {
  const int watch = inotify_init1(0), event = eventfd(5, 0), timer = timerfd_create(CLOCK_MONOTONIC, 0);
  say("add", inotify_add_watch(watch, ".", IN_CREATE));
  close(open("new file", O_CREAT | O_WRONLY, 0600));
  char text[4096] __attribute__((aligned(8)));
  say("inotify", read(watch, text, sizeof text) > 0);
  say("eventfd", read(event, text, 8) == 8 && *(uint64_t*)text == 5);
  timerfd_settime(timer, 0, &(struct itimerspec){.it_value.tv_nsec = 1000000}, 0);
  say("timerfd", read(timer, text, 8) == 8);
}

static void shared_memory(void) {
  const int id = shmget(IPC_PRIVATE, 100000, 0600);
  int* shared = shmat(id, 0, 0);
  shmctl(id, IPC_RMID, 0);
  char name[40];
  snprintf(name, sizeof name, "/kinds.%d", getpid());
  const int file = shm_open(name, O_CREAT | O_RDWR, 0600);
  say("size", ftruncate(file, 8192));
  int* other = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  shm_unlink(name);
  for (int i = 0; i < 5; i++) {
    if (fork() == 0) {
      churn(2);
      __atomic_add_fetch(shared, i, __ATOMIC_SEQ_CST);
      __atomic_add_fetch(other, 1, __ATOMIC_SEQ_CST);
      _exit(0);
    }
  }
  while (wait(0) > 0) {
  }
  say("sum", *shared);
  say("children", *other);
}

static void queues_and_semaphores(void) {
  const int queue = msgget(IPC_PRIVATE, 0600), set = semget(IPC_PRIVATE, 1, 0600);
  struct {
    long type;
    char text[8];
  } message = {1, "queued"};
  if (fork() == 0) {
    churn(2);
    msgsnd(queue, &message, sizeof message.text, 0);
    semop(set, &(struct sembuf){.sem_op = 3}, 1);
    _exit(0);
  }
  say("received", msgrcv(queue, &message, sizeof message.text, 0, 0));
  say("semaphore", semop(set, &(struct sembuf){.sem_op = -3}, 1));
  msgctl(queue, IPC_RMID, 0);
  semctl(set, 0, IPC_RMID);
  wait(0);
}

static void file_locks(void) {
  const int file = open("locked", O_CREAT | O_RDWR, 0600), second = open("locked", O_RDWR);
  say("lockf", lockf(file, F_TLOCK, 0));
  say("flock", flock(second, LOCK_EX | LOCK_NB));
  if (fork() == 0) {
    churn(1);
    const int mine = open("locked", O_RDWR);
    _exit((lockf(mine, F_TLOCK, 0) != 0) + 2 * (flock(mine, LOCK_EX | LOCK_NB) != 0));
  }
  int status;
  wait(&status);
  say("refused", WEXITSTATUS(status));
}

static const struct kind kinds[] = {
    {"many_threads", many_threads},
    {"thread_after_thread", thread_after_thread},
    {"detached_threads", detached_threads},
    {"local_destructors", local_destructors},
    {"cancelled_threads", cancelled_threads},
    {"cancelled_asynchronously", cancelled_asynchronously},
    {"main_ends_first", main_ends_first},
    {"thread_exits", thread_exits},
    {"smallest_stacks", smallest_stacks},
    {"c11_threads", c11_threads},
    {"fork_with_threads", fork_with_threads},
    {"exec_with_threads", exec_with_threads},
    {"robust_mutex", robust_mutex},
    {"timer_signals", timer_signals},
    {"timer_threads", timer_threads},
    {"interrupted_calls", interrupted_calls},
    {"waits_for_signals", waits_for_signals},
    {"faults_caught", faults_caught},
    {"alternate_stack", alternate_stack},
    {"stack_overflow", stack_overflow},
    {"coroutines", coroutines},
    {"sockets", sockets},
    {"event_loop", event_loop},
    {"passed_descriptor", passed_descriptor},
    {"watched_files", watched_files},
    {"shared_memory", shared_memory},
    {"queues_and_semaphores", queues_and_semaphores},
    {"file_locks", file_locks},
};

int main(int argc, char** argv) { return run_kind(kinds, sizeof kinds / sizeof *kinds, argc, argv); }
