// System calls that a pause interrupts return what they would have returned without it.
#include "toolkit/process/stopping/interrupted_calls.h"

#include <doctest/doctest.h>
#include <linux/aio_abi.h>
#include <sys/epoll.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <functional>
#include <thread>

#include "cmtwatch/sample/pausing.h"

using namespace cmt::watch;
using namespace cmt;
using namespace pausing;

namespace {

/// The ends of a pipe, or of a pair of sockets, that a child has from its test.
struct Ends {
  int ours = -1, theirs = -1;

  explicit Ends(bool sockets = false) {
    int both[2];
    REQUIRE((sockets ? socketpair(AF_UNIX, SOCK_STREAM, 0, both) : pipe(both)) == 0);
    ours = both[1];
    theirs = both[0];
  }
  ~Ends() {
    close(ours);
    close(theirs);
  }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;
};

/// A child whose first thread is in `call`, which returns -1 if it fails. The child's exit status is its errno, else 0.
auto in_call(std::function<long()> call) {
  return [call = std::move(call)] {
    std::thread(count).detach();
    _exit(call() == -1 ? errno : 0);
  };
}

/// Waits for the call, or for the child's end if it did not stay in the call.
void await_sleep(const Child& child) {
  for (char state = 'R'; state != 'S' && state != 'Z'; state = child.state()) sched_yield();
}

/// Pauses a child that is in `call`, several times, then lets `finish` end the call; returns the child's exit status.
int status_after_pauses(std::function<long()> call, const std::function<void(int pid)>& finish) {
  Child child(in_call(std::move(call)));
  process::InterruptedCalls calls;
  for (int round = 0; round < 5; ++round) {
    await_sleep(child);
    if (child.state() == 'Z') break;
    paused(
        child.pid(), [](Pause&) {}, std::move(calls));
  }
  await_sleep(child);
  finish(child.pid());
  const int status = child.wait();
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int epoll_of(int descriptor) {
  const int set = epoll_create1(0);
  epoll_event event{.events = EPOLLIN, .data = {}};
  epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event);
  return set;
}

void write_byte(int descriptor) { REQUIRE(write(descriptor, "x", 1) == 1); }

void give_timeout(int socket, int option, int seconds) {
  const timeval time{.tv_sec = seconds, .tv_usec = 0};
  setsockopt(socket, SOL_SOCKET, option, &time, sizeof time);
}

}  // namespace

// The calls that signal(7) lists as ended by stop signals without a handler, and others that end with EINTR.
TEST_CASE("interrupted calls: those without a timeout go on, whatever the number of pauses") {
  if (!may_trace()) return;
  epoll_event event{};
  sigset_t none;
  sigemptyset(&none);
  const std::function<long(int)> calls[] = {
      [&](int end) { return epoll_wait(epoll_of(end), &event, 1, -1); },
      [&](int end) { return epoll_pwait(epoll_of(end), &event, 1, -1, &none); },
#ifdef SYS_epoll_pwait2
      [&](int end) { return syscall(SYS_epoll_pwait2, epoll_of(end), &event, 1, nullptr, nullptr, 0); },
#endif
      [&](int end) { return read(end, &event, 1); },
  };
  for (const auto& call : calls) {
    const Ends pipe;
    CHECK(status_after_pauses([&] { return call(pipe.theirs); }, [&](int) { write_byte(pipe.ours); }) == 0);
  }
}

TEST_CASE("interrupted calls: semop and semtimedop go on") {
  if (!may_trace()) return;
  const int set = semget(IPC_PRIVATE, 1, 0600);
  REQUIRE(set >= 0);
  sembuf down{.sem_num = 0, .sem_op = -1, .sem_flg = 0}, up{.sem_num = 0, .sem_op = 1, .sem_flg = 0};
  const auto let_go = [&](int) { REQUIRE(semop(set, &up, 1) == 0); };
  CHECK(status_after_pauses([&] { return semop(set, &down, 1); }, let_go) == 0);
  CHECK(status_after_pauses([&] { return semtimedop(set, &down, 1, nullptr); }, let_go) == 0);
  semctl(set, 0, IPC_RMID);
}

TEST_CASE("interrupted calls: sigwaitinfo goes on until its signal comes") {
  if (!may_trace()) return;
  const auto call = [] {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    sigprocmask(SIG_BLOCK, &one, nullptr);
    return static_cast<long>(sigwaitinfo(&one, nullptr));
  };
  // The thread that counts does not block it: so it is sent to the one that waits.
  CHECK(status_after_pauses(call, [](int pid) { syscall(SYS_tgkill, pid, pid, SIGUSR1); }) == 0);
}

TEST_CASE("interrupted calls: io_getevents goes on until its thread is killed") {
  if (!may_trace()) return;
  const auto call = [] {
    aio_context_t context = 0;
    if (syscall(SYS_io_setup, 1, &context) != 0) return 0L;
    io_event event{};
    return syscall(SYS_io_getevents, context, 1, 1, &event, nullptr);
  };
  const auto end = [](int pid) { kill(pid, SIGKILL); };
  CHECK(status_after_pauses(call, end) == -1);
}

TEST_CASE("interrupted calls: sockets with a timeout, and without, go on") {
  if (!may_trace()) return;
  for (const int seconds : {0, 1000}) {
    const Ends sockets(true);
    give_timeout(sockets.theirs, SO_RCVTIMEO, seconds);
    Child child(in_call([&] {
      char byte;
      return recv(sockets.theirs, &byte, 1, 0);
    }));
    await_sleep(child);
    paused(child.pid(), [](Pause&) {});
    child.await_turn();
    await_sleep(child);
    write_byte(sockets.ours);
    CHECK(child.wait() == 0);
  }
}

TEST_CASE("interrupted calls: those of an event loop, each with a timeout, are calls of their own") {
  if (!may_trace()) return;
  const Ends pipe;
  Child child([&] {
    std::thread(count).detach();
    const int set = epoll_of(pipe.theirs);
    epoll_event event{};
    for (char byte = 0; byte != 'x';) {
      if (epoll_wait(set, &event, 1, 1'000'000) != 1) _exit(1);
      if (read(pipe.theirs, &byte, 1) != 1) _exit(2);
    }
  });
  process::InterruptedCalls calls;
  for (int round = 0; round < 20 && child.state() != 'Z'; ++round) {
    await_sleep(child);
    paused(
        child.pid(), [](Pause&) {}, std::move(calls));
    REQUIRE(write(pipe.ours, "-", 1) == 1);
  }
  write_byte(pipe.ours);
  CHECK(child.wait() == 0);
}

TEST_CASE("interrupted calls: one with a timeout ends by it, however often it is paused") {
  if (!may_trace()) return;
  const timespec time{.tv_sec = 0, .tv_nsec = 200'000'000};
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  const Ends sockets(true), pipe;
  epoll_event event{};
  const std::function<long()> calls[] = {[&] { return epoll_wait(epoll_of(pipe.theirs), &event, 1, 200); },
                                         [&] {
                                           sigprocmask(SIG_BLOCK, &one, nullptr);
                                           return static_cast<long>(sigtimedwait(&one, nullptr, &time));
                                         },
                                         [&] {
                                           const timeval socket_time{.tv_sec = 0, .tv_usec = 200'000};
                                           setsockopt(sockets.theirs, SOL_SOCKET, SO_RCVTIMEO, &socket_time,
                                                      sizeof socket_time);
                                           char byte;
                                           return recv(sockets.theirs, &byte, 1, 0);
                                         }};
  for (const auto& call : calls) {
    Child child(in_call(call));
    process::InterruptedCalls calls_of_child;
    while (child.state() != 'Z')
      paused(
          child.pid(), [](Pause&) { usleep(1000); }, std::move(calls_of_child));
    const int status = child.wait();
    CHECK((WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == EAGAIN)));
  }
}

TEST_CASE("interrupted calls: a signal that the program ignores does not end them") {
  if (!may_trace()) return;
  const Ends pipe;
  epoll_event event{};
  Child child(in_call([&] {
    signal(SIGUSR1, SIG_IGN);
    return epoll_wait(epoll_of(pipe.theirs), &event, 1, -1);
  }));
  await_sleep(child);
  // The kernel gives a traced thread the signals too that it ignores. It comes before our stop, or in it.
  for (int round = 0; round < 10; ++round) {
    paused(child.pid(), [&](Pause&) { syscall(SYS_tgkill, child.pid(), child.pid(), SIGUSR1); });
    await_sleep(child);
  }
  write_byte(pipe.ours);
  CHECK(child.wait() == 0);
}

TEST_CASE("interrupted calls: a signal with a handler that comes in the pause ends them") {
  if (!may_trace()) return;
  const Ends pipe;
  epoll_event event{};
  Child child(in_call([&] {
    signal(SIGUSR1, [](int) { ++shared->signals; });
    return epoll_wait(epoll_of(pipe.theirs), &event, 1, -1);
  }));
  await_sleep(child);
  paused(child.pid(), [&](Pause&) { syscall(SYS_tgkill, child.pid(), child.pid(), SIGUSR1); });
  const int status = child.wait();
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == EINTR));
}

TEST_CASE("interrupted calls: the call that a thread waits in is read without a stop") {
  const auto call = process::parse_waiting_call("232 0x4 0x7ffc 0x1 0xffffffff 0x0 0x8 0x7ffd00 0x7f1234\n");
  REQUIRE(call);
  CHECK(call->number == 232);
  CHECK(call->arguments[3] == 0xffffffff);
  CHECK(call->stack_pointer == 0x7ffd00);
  CHECK(call->instruction == 0x7f1234);
  for (const char* text : {"", "running\n", "-1 0x7ffd00 0x7f1234\n", "232 0x4\n", "0x", "0xg 0x1"})
    CHECK(!process::parse_waiting_call(text));
}

#if defined(__x86_64__)
TEST_CASE("interrupted calls: a stop disturbs calls with a timeout, and those that may have done a part") {
  process::WaitingCall call{.number = SYS_epoll_wait, .arguments = {4, 0, 1, 300}};
  CHECK(process::may_be_disturbed(call));
  call.arguments[3] = 0xffffffff;
  CHECK(!process::may_be_disturbed(call));
  for (const long number : {SYS_write, SYS_connect, SYS_io_uring_enter}) {
    call.number = number;
    CHECK(process::may_be_disturbed(call));
  }
  for (const long number : {SYS_read, SYS_poll, SYS_nanosleep, SYS_futex, SYS_wait4}) {
    call.number = number;
    CHECK(!process::may_be_disturbed(call));
  }
}
#endif
