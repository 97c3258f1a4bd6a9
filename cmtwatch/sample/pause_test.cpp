// Paused processes execute nothing, go on afterwards, and lose no signal and no end of a child.
#include "cmtwatch/sample/pause.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <system_error>
#include <thread>

#include "cmtwatch/sample/pausing.h"
#include "toolkit/process/stat.h"

using namespace cmt::watch;
using namespace cmt;
using namespace pausing;

namespace {

void handle(int signal, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO;
  sigaction(signal, &action, nullptr);
}

/// Adds up the numbers that come with signals, too.
void count_signals() {
  handle(SIGRTMIN, [](int, siginfo_t* info, void*) {
    shared->sum += static_cast<std::uint64_t>(info->si_value.sival_int);
    ++shared->signals;
  });
  count();
}

/// A parent that counts the ends of its child.
void mourn() {
  handle(SIGCHLD, [](int, siginfo_t*, void*) { ++shared->signals; });
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  shared->sum = static_cast<std::uint64_t>(child);
  count();
}

/// Waits in the kernel for the child that runs in its memory, while another thread counts.
void lend_memory() {
  std::thread(count).detach();
  const pid_t child = vfork();
  if (child == 0) {
    shared->sum = static_cast<std::uint64_t>(getpid());
    for (;;) pause();
  }
}

/// Threads that end all the time and begin anew, after times that differ, so that one ends beside others that live.
void breed() {
  const auto parent = [](useconds_t life_us) {
    for (;;) {
      std::thread([life_us] {
        ++shared->turns;
        usleep(life_us);
        ++shared->turns;
      }).join();
    }
  };
  for (useconds_t i = 0; i < 20; ++i) std::thread(parent, 20 + 20 * i * i).detach();
  parent(0);
}

/// X if it was about to end.
char state_of(int tid) {
  try {
    return process::read_stat(tid).state;
  } catch (const std::system_error&) {
    return 'X';
  }
}

}  // namespace

TEST_CASE("pause: all threads stand still, also those that were just being made") {
  if (!may_trace()) return;
  const Child child(breed);
  for (int round = 0; round < 100; ++round) {
    std::string states;
    bool still = false;
    std::size_t not_paused = 0;
    paused(child.pid(), [&](Pause& pause) {
      const std::uint64_t turns = shared->turns;
      for (const int tid : process::read_threads(child.pid())) states += state_of(tid);
      still = shared->turns == turns;
      not_paused = pause.not_paused();
    });
    CHECK(states.find_first_not_of("tZX") == states.npos);
    CHECK(still);
    CHECK(not_paused == 0);
    child.await_turn();
  }
}

TEST_CASE("pause: no signal is lost, whether it comes before, at or in the pause") {
  if (!may_trace()) return;
  const Child child(count_signals);
  constexpr int rounds = 200;
  for (int round = 0; round < rounds; ++round) {
    sigqueue(child.pid(), SIGRTMIN, {.sival_int = round});
    paused(child.pid(), [&](Pause&) {
      sigqueue(child.pid(), SIGRTMIN, {.sival_int = round});
      if (round % 20 == 0) usleep(5000);  // a long pause: whoever looks after ended threads comes by
    });
  }
  while (shared->signals < 2 * rounds) sched_yield();
  CHECK(shared->signals == 2 * rounds);
  CHECK(shared->sum == rounds * (rounds - 1));
}

TEST_CASE("pause: what SIGSTOP stopped stays so until SIGCONT") {
  if (!may_trace()) return;
  const Child child(count);
  kill(child.pid(), SIGSTOP);
  child.await_state('T');
  char inside = '?';
  paused(child.pid(), [&](Pause&) { inside = child.state(); });
  CHECK(inside == 't');
  child.await_state('T');
  kill(child.pid(), SIGCONT);
  child.await_turn();
}

TEST_CASE("pause: all threads that SIGSTOP stopped stay so") {
  if (!may_trace()) return;
  const Child child(breed);
  kill(child.pid(), SIGSTOP);
  child.await_state('T');
  paused(child.pid(), [](Pause&) {});
  child.await_state('T');
  const std::uint64_t turns = shared->turns;
  paused(child.pid(), [](Pause&) {});
  CHECK(shared->turns == turns);
  kill(child.pid(), SIGCONT);
  child.await_turn();
}

TEST_CASE("pause: who ends in it is told to its parent after it") {
  if (!may_trace()) return;
  const Child child(mourn);
  std::uint64_t inside = 0;
  paused(child.pid(), [&](Pause&) {
    kill(static_cast<pid_t>(shared->sum), SIGKILL);
    while (process::read_stat(static_cast<int>(shared->sum)).state != 'Z') sched_yield();
    inside = shared->signals;
  });
  CHECK(inside == 0);
  while (shared->signals == 0) sched_yield();
  CHECK(shared->signals == 1);
}

TEST_CASE("pause: a thread that cannot be interrupted is said not to be paused, and goes on afterwards") {
  if (!may_trace()) return;
  Child child(lend_memory);
  while (shared->sum == 0 || child.state() != 'D') sched_yield();
  std::size_t not_paused = 0;
  bool still = false;
  paused(child.pid(), [&](Pause& pause) {
    const std::uint64_t turns = shared->turns;
    not_paused = pause.not_paused();
    still = shared->turns == turns;
  });
  CHECK(not_paused == 1);
  CHECK(still);
  child.await_turn();
  kill(static_cast<pid_t>(shared->sum), SIGKILL);
  CHECK(WIFEXITED(child.wait()));
}

TEST_CASE("pause: SIGSTOP and SIGCONT in it do their work after it") {
  if (!may_trace()) return;
  const Child child(count);
  paused(child.pid(), [&](Pause&) { kill(child.pid(), SIGSTOP); });
  child.await_state('T');
  paused(child.pid(), [&](Pause&) { kill(child.pid(), SIGCONT); });
  child.await_turn();
}

TEST_CASE("pause: a child that is killed in it is ours to wait for") {
  if (!may_trace()) return;
  for (int round = 0; round < 20; ++round) {
    Child child(breed);
    paused(child.pid(), [&](Pause&) { kill(child.pid(), SIGKILL); });
    CHECK(WIFSIGNALED(child.wait()));
  }
}

TEST_CASE("pause: it ends when the measurement fails") {
  if (!may_trace()) return;
  const Child child(count);
  CHECK_THROWS_AS(paused(child.pid(), [](Pause&) { throw std::out_of_range("a failure"); }), std::out_of_range);
  child.await_turn();
  paused(child.pid(), [](Pause&) {});
  child.await_turn();
}

TEST_CASE("pause: who is traced already is named, with who does it") {
  if (!may_trace()) return;
  const Child child(count);
  REQUIRE(ptrace(PTRACE_SEIZE, child.pid(), nullptr, nullptr) == 0);
  const std::string who = "process " + std::to_string(child.pid()) + " (" + process::read_stat(child.pid()).name + ")";
  const std::string tracer = std::to_string(getpid()) + " (" + process::read_stat(getpid()).name + ")";
  CHECK_THROWS_WITH_AS(paused(child.pid(), [](Pause&) {}),
                       (who + " cannot be paused: " + tracer + " traces it already").c_str(), PauseRefused);
  process::InterruptedCalls calls;
  while_paused(calls, [&](Pause& pause) {
    pause.stop_all([&] { return std::vector<int>{child.pid()}; }, {});
    CHECK(pause.not_paused() == 1);
  });
}

TEST_CASE("pause: who has ended, and ourselves, are left out") {
  process::InterruptedCalls calls;
  CHECK(while_paused(calls, [](Pause& pause) {
          pause.stop_all([] { return std::vector<int>{0x7ffffffe, getpid()}; }, {0x7ffffffe});
          CHECK(pause.not_paused() == 0);
        }) == 0);
}

TEST_CASE("pause: its price is the sum and the longest") {
  PauseCost cost;
  for (const int ns : {2000, 0, 3000}) cost.add(ns);
  CHECK(cost.text() == "paused 2 times, 5.00 us in all, 3.00 us at most");
}

TEST_CASE("pause: the processes of another machine's /proc are not those of ours") {
  CHECK_NOTHROW(check_pausable(getpid(), "/proc"));
  CHECK_THROWS_AS(check_pausable(getpid(), "/nowhere"), PauseRefused);
}
