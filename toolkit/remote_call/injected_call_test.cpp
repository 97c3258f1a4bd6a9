// Injected calls change nothing that the thread sees: registers, vector state, waits, and calls that the stop
// interrupted.
#include "toolkit/remote_call/injected_call.h"

#include <doctest/doctest.h>
#include <immintrin.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "toolkit/process/stopping/traceable.h"
#include "toolkit/remote_call/remote_caller.h"
#include "toolkit/remote_call/safe_thread.h"

using namespace cmt;
using namespace cmt::remote_call;

namespace {

/// The memory that a test and its child share.
struct Shared {
  std::atomic<std::uint64_t> turns, calls, sum;
  std::atomic<int> futex, is_over, signals;
  timespec rest;
};

Shared* shared_memory() {
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return static_cast<Shared*>(memory);
}
Shared* const seen = shared_memory();

/// The function that is injected: it makes system calls, and changes the registers that a function may change.
extern "C" void injected_for_test(const char* text, std::uint64_t number) {
  int ends[2];
  if (pipe(ends) == 0) {
    close(ends[0]);
    close(ends[1]);
  }
  for (; *text != 0; ++text) seen->sum += static_cast<unsigned char>(*text);
  seen->sum += number;
  seen->calls += 1;
  errno = EXDEV;
#ifdef __AVX__
  _mm256_zeroall();
#else
  asm volatile("pxor %%xmm0, %%xmm0; pxor %%xmm5, %%xmm5; pxor %%xmm15, %%xmm15" ::: "xmm0", "xmm5", "xmm15");
#endif
  asm volatile("mov $1, %%rax; mov %%rax, %%rcx; mov %%rax, %%r8; mov %%rax, %%r11" ::: "rax", "rcx", "r8", "r11");
}

/// The same with memory that it writes to: two words after a text.
extern "C" void injected_answer(const char* text, std::uint64_t* answer, std::uint64_t* bytes) {
  *answer = static_cast<std::uint64_t>(text[0]) + *bytes;
  *bytes = 4;
}

extern "C" void injected_for_number() { seen->calls = static_cast<std::uint64_t>(gettid()); }

constexpr std::uint64_t sum_of_call = 'a' + 'b' + 7;

class Child {
 public:
  explicit Child(const std::function<int()>& work) : pid_(fork()) {
    if (pid_ != 0) return;
    _exit(work());
  }
  ~Child() {
    if (pid_ < 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_;
};

void reset() {
  seen->turns = seen->calls = seen->sum = 0;
  seen->futex = seen->is_over = seen->signals = 0;
}

bool may_trace() {
  const Child child([] { return pause(); });
  const bool may = ptrace(PTRACE_SEIZE, child.pid(), nullptr, nullptr) == 0 || errno != EPERM;
  if (!may) MESSAGE("skipped: ptrace is not permitted");
  return may;
}

/// Makes some safe thread of the child call the function, twice in one stop.
void inject_twice(int pid, SafeThreads& threads, const Target& target) {
  StoppedThread thread = threads.choose(StoppedThread::Clock::now() + std::chrono::seconds(20), {});
  Injector injector(target.memory(), thread, target.functions().return_trampoline);
  const auto function = reinterpret_cast<std::uint64_t>(&injected_for_test);
  for (int i = 0; i < 2; ++i) {
    injector.begin({function, {0, 7}, std::string("ab\0", 3), {0}});
    injector.await_return([](const SystemCall&) {});
  }
  injector.finish();
  thread.release();
  CHECK(kill(pid, 0) == 0);
}

/// Injects calls into a child that does its work meanwhile, and returns how it has ended.
int status_after_calls(const std::function<int()>& work, int rounds, const std::function<void(int)>& finish,
                       useconds_t between_us = 2000) {
  reset();
  Child child(work);
  while (seen->turns == 0) usleep(100);
  as_tracer([&] {
    Target target(child.pid());
    SafeThreads threads(target);
    for (int round = 0; round < rounds; ++round) {
      usleep(between_us);
      inject_twice(child.pid(), threads, target);
    }
  });
  CHECK(seen->calls == 2u * static_cast<unsigned>(rounds));
  CHECK(seen->sum == seen->calls * sum_of_call);
  seen->is_over = 1;
  finish(child.pid());
  return child.wait();
}

void nothing(int) {}

}  // namespace

TEST_CASE("injected calls: what waits in the kernel goes on to wait, and returns what it would have") {
  if (!may_trace()) return;
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const auto write_byte = [&](int) { CHECK(write(ends[1], "x", 1) == 1); };
  const auto in = [&](const std::function<long()>& call) {
    return [=] {
      seen->turns = 1;
      return call() == 1 ? 0 : 100 + errno % 100;
    };
  };
  const auto drain = [&] {
    pollfd waits{.fd = ends[0], .events = POLLIN, .revents = 0};
    char byte;
    CHECK((poll(&waits, 1, 0) == 1 && read(ends[0], &byte, 1) == 1));
  };
  char byte = 0;
  CHECK(status_after_calls(in([&] { return read(ends[0], &byte, 1); }), 5, write_byte) == 0);
  pollfd wanted{.fd = ends[0], .events = POLLIN, .revents = 0};
  CHECK(status_after_calls(in([&] { return poll(&wanted, 1, -1); }), 5, write_byte) == 0);
  drain();
  CHECK(status_after_calls(in([&] { return poll(&wanted, 1, 100'000); }), 5, write_byte) == 0);
  drain();
  const auto epoll = [&] {
    const int set = epoll_create1(0);
    epoll_event event{.events = EPOLLIN, .data = {}};
    epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event);
    return epoll_wait(set, &event, 1, -1);
  };
  CHECK(status_after_calls(in(epoll), 5, write_byte) == 0);
  drain();
  const auto wake = [](int) {
    seen->futex = 1;
    syscall(SYS_futex, &seen->futex, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  };
  // A thread that waits again after the word has changed gets EAGAIN, as for any wake before a wait.
  const auto futex = [] {
    return syscall(SYS_futex, &seen->futex, FUTEX_WAIT, 0, nullptr, nullptr, 0) == 0 || errno == EAGAIN ? 1 : 0;
  };
  CHECK(status_after_calls(in(futex), 5, wake) == 0);
  close(ends[0]);
  close(ends[1]);
}

TEST_CASE("injected calls: a sleep goes on with the rest of its time") {
  if (!may_trace()) return;
  const auto work = [] {
    seen->rest = {.tv_sec = 1000, .tv_nsec = 0};
    seen->turns = 1;
    while (nanosleep(&seen->rest, &seen->rest) != 0) return 1;
    return 0;
  };
  const auto check_rest = [](int pid) {
    CHECK(seen->rest.tv_sec < 1000);
    kill(pid, SIGKILL);
  };
  CHECK(status_after_calls(work, 3, check_rest) == -SIGKILL);
}

TEST_CASE("injected calls: what the kernel continues goes on with the rest of its time, and is no new call") {
  if (!may_trace()) return;
  const auto is_continued = [](int pid) {
    std::optional<process::WaitingCall> call;
    while (!(call = process::read_waiting_call(pid, pid))) usleep(100);
    CHECK(call->number == SYS_restart_syscall);
    kill(pid, SIGKILL);
  };
  const auto waits = [](const std::function<void()>& wait) {
    return [=] {
      seen->turns = 1;
      wait();
      return 1;
    };
  };
  const timespec long_time{.tv_sec = 1'000'000, .tv_nsec = 0};
  const auto sleep = [&] { syscall(SYS_nanosleep, &long_time, nullptr); };
  const auto futex = [&] { syscall(SYS_futex, &seen->futex, FUTEX_WAIT, 0, &long_time); };
  CHECK(status_after_calls(waits([] { poll(nullptr, 0, 1'000'000); }), 3, is_continued) == -SIGKILL);
  CHECK(status_after_calls(waits(sleep), 3, is_continued) == -SIGKILL);
  CHECK(status_after_calls(waits(futex), 3, is_continued) == -SIGKILL);
}

TEST_CASE("injected calls: vectors and signal mask of a thread that the kernel continues are as before") {
  if (!may_trace()) return;
  const auto work = [] {
    sigset_t one, after;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    sigprocmask(SIG_BLOCK, &one, nullptr);
    const timespec time{.tv_sec = 0, .tv_nsec = 50'000'000};
    bool is_same = true;
    for (int round = 0; is_same && seen->is_over == 0; ++round) {
      const double before = round;
      double value = before;
      long result = SYS_nanosleep;
      asm volatile("syscall" : "+a"(result), "+x"(value) : "D"(&time), "S"(nullptr) : "rcx", "r11", "memory");
      sigprocmask(SIG_BLOCK, nullptr, &after);
      is_same =
          result == 0 && value == before && sigismember(&after, SIGUSR1) == 1 && sigismember(&after, SIGUSR2) == 0;
      seen->turns += 1;
    }
    return is_same ? 0 : 1;
  };
  CHECK(status_after_calls(work, 10, nothing) == 0);
}

TEST_CASE("injected calls: a thread that is stopped again after its call does not see it") {
  if (!may_trace()) return;
  reset();
  Child child([] {
    const int set = epoll_create1(0);
    epoll_event event{};
    seen->turns = 1;
    return epoll_wait(set, &event, 1, -1) == -1 ? errno : 1;
  });
  while (seen->turns == 0) usleep(100);
  as_tracer([&] {
    Target target(child.pid());
    RemoteCaller caller(target, {});
    for (unsigned round = 1; round <= 10; ++round) {
      // The call is over before the second stop, which finds the thread in its own system call.
      const auto is_long_over = [&] {
        const auto call = process::read_waiting_call(child.pid(), child.pid());
        return seen->calls == round && call && call->number == SYS_epoll_wait;
      };
      caller.call({reinterpret_cast<std::uint64_t>(&injected_for_test), {0, 7}, std::string("ab\0", 3), {0}},
                  {.is_done = is_long_over});
    }
  });
  std::optional<process::WaitingCall> call;
  while (!(call = process::read_waiting_call(child.pid(), child.pid())) && kill(child.pid(), 0) == 0) usleep(100);
  CHECK(call->number == SYS_epoll_wait);
  kill(child.pid(), SIGKILL);
  CHECK(child.wait() == -SIGKILL);
}

TEST_CASE("injected calls: a wait for signals ends with a signal, and only then") {
  if (!may_trace()) return;
  const auto wait_by = [](const std::function<long(const sigset_t*)>& wait) {
    return [=] {
      struct sigaction action {};
      action.sa_handler = [](int) { ++seen->signals; };
      sigaction(SIGUSR1, &action, nullptr);
      sigset_t one, none;
      sigemptyset(&none);
      sigemptyset(&one);
      sigaddset(&one, SIGUSR1);
      sigprocmask(SIG_BLOCK, &one, nullptr);
      seen->turns = 1;
      const bool is_interrupted = wait(&none) == -1 && errno == EINTR;
      sigset_t after;
      sigprocmask(SIG_BLOCK, nullptr, &after);
      return is_interrupted && seen->signals == 1 && seen->is_over == 1 && sigismember(&after, SIGUSR1) == 1 ? 0 : 1;
    };
  };
  const auto send = [](int pid) { kill(pid, SIGUSR1); };
  CHECK(status_after_calls(wait_by([](const sigset_t* none) { return sigsuspend(none); }), 5, send) == 0);
  const auto by_poll = [](const sigset_t* none) { return ppoll(nullptr, 0, nullptr, none); };
  CHECK(status_after_calls(wait_by(by_poll), 5, send) == 0);
}

TEST_CASE("injected calls: registers, flags and vectors of code that computes are as before") {
  if (!may_trace()) return;
  const auto work = [] {
    double x = 1, y = 1;
    std::uint64_t a = 1, b = 1;
    long double slow_x = 1, slow_y = 1;
    while (seen->is_over == 0) {
      x = y = 1;
      slow_x = slow_y = 1;
      a = b = 88172645463325252;
      for (int i = 0; i < 5000; ++i) {
        x = x * 1.0000001 + 0.5;
        slow_x = slow_x * 1.0000001L + 0.25L;
        a ^= a << 13, a ^= a >> 7, a ^= a << 17;
      }
      for (int i = 0; i < 5000; ++i) {
        y = y * 1.0000001 + 0.5;
        slow_y = slow_y * 1.0000001L + 0.25L;
        b ^= b << 13, b ^= b >> 7, b ^= b << 17;
      }
      if (x != y || a != b || slow_x != slow_y) return 1;
      seen->turns += 1;
    }
    return 0;
  };
  CHECK(status_after_calls(work, 40, nothing, 100) == 0);
}

TEST_CASE("injected calls: threads that allocate all the time") {
  if (!may_trace()) return;
  const auto work = [] {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([] {
        std::vector<std::unique_ptr<char[]>> blocks(64);
        for (unsigned n = 0; seen->is_over == 0; ++n) {
          blocks[n * 7 % blocks.size()] = std::make_unique<char[]>(1 + n % 3000);
          seen->turns += 1;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return 0;
  };
  CHECK(status_after_calls(work, 5, nothing) == 0);
}

TEST_CASE("injected calls: a thread in a signal handler is not chosen, and is when it is out of it") {
  if (!may_trace()) return;
  reset();
  Child child([] {
    std::signal(SIGALRM, [](int) {
      seen->signals = 1;
      while (seen->futex == 0) usleep(1000);
    });
    raise(SIGALRM);
    seen->signals = 2;
    while (seen->is_over == 0) usleep(1000);
    return 0;
  });
  while (seen->signals == 0) usleep(100);
  as_tracer([&] {
    Target target(child.pid());
    SafeThreads threads(target);
    CHECK_THROWS_WITH_AS(threads.choose(StoppedThread::Clock::now() + std::chrono::milliseconds(20), {}),
                         ("process " + process::called(child.pid()) +
                          ": no thread can be made to call a function now: 1 in a signal handler; try again")
                             .c_str(),
                         Refused);
    seen->futex = 1;
    while (seen->signals != 2) usleep(100);
    inject_twice(child.pid(), threads, target);
  });
  CHECK(seen->calls == 2);
  seen->is_over = 1;
  CHECK(child.wait() == 0);
}

TEST_CASE("injected calls: several in one stop answer in the memory of their arguments") {
  if (!may_trace()) return;
  reset();
  Child child([] {
    seen->turns = 1;
    while (seen->is_over == 0) usleep(1000);
    return 0;
  });
  while (seen->turns == 0) usleep(100);
  std::vector<std::string> answers;
  as_tracer([&] {
    Target target(child.pid());
    RemoteCaller caller(target, {});
    const auto function = reinterpret_cast<std::uint64_t>(&injected_answer);
    const std::string words("\1\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0", 16);
    const std::vector<Call> calls{{function, {0, 8, 16}, std::string("a\0\0\0\0\0\0\0", 8) + words, {0, 1, 2}},
                                  {function, {0, 8, 16}, std::string("b\0\0\0\0\0\0\0", 8) + words, {0, 1, 2}}};
    caller.call_in_turn(calls, [&](std::size_t number, const std::string& bytes) {
      CHECK(number == answers.size());
      answers.push_back(bytes);
    });
    CHECK(caller.pauses().kept.count() > 0);
  });
  REQUIRE(answers.size() == 2);
  CHECK(answers[0] == std::string("a\0\0\0\0\0\0\0h\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0", 24));
  CHECK(answers[1][8] == 'i');
  seen->is_over = 1;
  CHECK(child.wait() == 0);
}

TEST_CASE("injected calls: a call without an effect to wait for ends with its function") {
  if (!may_trace()) return;
  const auto call_once = [](const std::function<int()>& work) {
    reset();
    Child child(work);
    while (seen->turns == 0) usleep(100);
    as_tracer([&] {
      Target target(child.pid());
      RemoteCaller caller(target, {});
      caller.call({reinterpret_cast<std::uint64_t>(&injected_for_test), {0, 7}, std::string("ab\0", 3), {0}}, {});
    });
    CHECK(seen->calls == 1);
    seen->is_over = 1;
    kill(child.pid(), SIGUSR1);
    return child.wait();
  };
  const auto wait_for_ever = [] {
    std::signal(SIGUSR1, [](int) {});
    seen->turns = 1;
    epoll_event event{};
    return epoll_wait(epoll_create1(0), &event, 1, -1) == -1 && seen->is_over == 1 ? 0 : 1;
  };
  const auto compute = [] {
    std::signal(SIGUSR1, SIG_IGN);
    seen->turns = 1;
    while (seen->is_over == 0) seen->sum += 1;
    return 0;
  };
  CHECK(call_once(wait_for_ever) == 0);
  CHECK(call_once(compute) == 0);
}

TEST_CASE("injected calls: a long one is made by a thread that waits without a time, if there is one") {
  if (!may_trace()) return;
  reset();
  Child child([] {
    std::thread([] {
      seen->sum = static_cast<std::uint64_t>(gettid());
      epoll_event event{};
      epoll_wait(epoll_create1(0), &event, 1, -1);
    }).detach();
    while (seen->sum == 0) usleep(100);
    const timespec long_time{.tv_sec = 1000, .tv_nsec = 0};
    seen->turns = 1;
    return nanosleep(&long_time, nullptr);
  });
  const auto waits = [&](int tid, std::int64_t number) {
    const auto call = process::read_waiting_call(child.pid(), tid);
    return call && call->number == number;
  };
  while (seen->turns == 0) usleep(100);
  const int waiting = static_cast<int>(seen->sum);
  const auto sleeps = [&] { return waits(child.pid(), SYS_clock_nanosleep) || waits(child.pid(), SYS_nanosleep); };
  while (!sleeps() || !waits(waiting, SYS_epoll_wait)) usleep(100);
  as_tracer([&] {
    Target target(child.pid());
    RemoteCaller caller(target, {});
    caller.call({reinterpret_cast<std::uint64_t>(&injected_for_number)}, {});
  });
  CHECK(seen->calls == static_cast<std::uint64_t>(waiting));
}
