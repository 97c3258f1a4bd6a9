// Runs the thread of IdleWorker. It enters SCHED_IDLE itself, and leaves it while its work is urgent.

#include "preload/collector/idle_worker.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cassert>
#include <chrono>
#include <ctime>
#include <system_error>
#include <utility>

namespace cmt::collector {
namespace {

constexpr int wait_ms_max = 10'000;  // of one wait, which is then begun again

bool set_policy(pid_t thread, int policy) {
  const sched_param none{};
  return ::sched_setscheduler(thread, policy, &none) == 0;
}

}  // namespace

IdleWorker::IdleWorker(const char* name) {
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    return;
  }
  ::pthread_setname_np(thread_.native_handle(), name);
  while (state_ == beginning) await_other(beginning, wait_ms_max);
}

IdleWorker::~IdleWorker() {
  if (!thread_.joinable()) return;
  hurry();  // before it wakes, so that it does not starve
  set_state(at_end);
  thread_.join();
}

void IdleWorker::set_state(State state) {
  state_.store(state, std::memory_order_release);
  wake();
}

void IdleWorker::wake() const { ::syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0); }

void IdleWorker::await_other(State state, int milliseconds) const {
  const timespec time{milliseconds / 1000, milliseconds % 1000 * 1'000'000L};
  ::syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, state, &time, nullptr, 0);
}

// The thread reports the end of its work before it becomes idle again.
void IdleWorker::run() {
  id_ = ::gettid();
  set_state(without_work);
  set_policy(0, SCHED_IDLE);
  for (;;) {
    State state;
    while ((state = State(state_.load(std::memory_order_acquire))) == without_work)
      await_other(without_work, wait_ms_max);
    if (state == at_end) return;
    if (is_hurried_.exchange(false)) set_policy(0, SCHED_IDLE);
    try {
      work_();
    } catch (...) {
      error_ = std::current_exception();
    }
    std::uint32_t expected = with_work;  // at_end remains
    if (state_.compare_exchange_strong(expected, without_work, std::memory_order_acq_rel)) wake();
  }
}

void IdleWorker::start(std::function<void()> work) {
  assert(is_there() && state_ == without_work);
  work_ = std::move(work);
  set_state(with_work);
}

bool IdleWorker::wait(int milliseconds) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::milliseconds(milliseconds);
  while (state_.load(std::memory_order_acquire) == with_work) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    await_other(with_work, static_cast<int>(left));
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  return true;
}

void IdleWorker::hurry() {
  is_hurried_ = true;
  set_policy(id_, SCHED_OTHER);
}

}  // namespace cmt::collector
