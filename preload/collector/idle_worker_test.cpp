// Checks that an IdleWorker does its work, passes exceptions on, and ends.

#include "preload/collector/idle_worker.h"

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>

using namespace cmt::collector;

namespace {

void wait_for(IdleWorker& worker) {
  while (!worker.wait(1000)) {
  }
}

/// Whether the kernel allows a thread to leave SCHED_IDLE.
bool may_leave_idle() {
  rlimit nice{};
  return ::geteuid() == 0 || (::getrlimit(RLIMIT_NICE, &nice) == 0 && nice.rlim_cur >= 20);
}

}  // namespace

TEST_CASE(
    "idle worker: its work runs in a thread of its own that gets only idle processors, and that is done when said") {
  IdleWorker worker("idle-test");
  REQUIRE(worker.is_there());
  CHECK(worker.wait(0));
  for (int i = 0; i < 3; ++i) {
    int policy = -1;
    pid_t thread = 0;
    worker.start([&] {
      policy = ::sched_getscheduler(0);
      thread = ::gettid();
    });
    wait_for(worker);
    CHECK(policy == SCHED_IDLE);
    CHECK((thread == worker.thread_id() && thread != ::gettid()));
  }
  CHECK(::sched_getscheduler(0) == SCHED_OTHER);
}

TEST_CASE(
    "idle worker: work that has become urgent runs as any other thread, where the kernel allows it, and the next does "
    "not") {
  IdleWorker worker("idle-test");
  std::atomic<bool> has_begun = false, is_hurried = false;
  int policy = -1;
  worker.start([&] {
    has_begun = true;
    while (!is_hurried) ::sched_yield();
    policy = ::sched_getscheduler(0);
  });
  while (!has_begun) ::usleep(100);
  CHECK_FALSE(worker.wait(0));
  worker.hurry();
  is_hurried = true;
  wait_for(worker);
  CHECK(policy == (may_leave_idle() ? SCHED_OTHER : SCHED_IDLE));
  worker.start([&] { policy = ::sched_getscheduler(0); });
  wait_for(worker);
  CHECK(policy == SCHED_IDLE);
}

TEST_CASE("idle worker: what the work throws is thrown to its owner, once") {
  IdleWorker worker("idle-test");
  worker.start([] { throw std::runtime_error("no space"); });
  CHECK_THROWS_WITH(wait_for(worker), "no space");
  CHECK(worker.wait(0));
  bool is_done = false;
  worker.start([&] { is_done = true; });
  wait_for(worker);
  CHECK(is_done);
}
