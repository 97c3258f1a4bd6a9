// Runs the thread of IdleWorker. It enters SCHED_IDLE itself, and leaves it while its work is urgent.

#include "preload/collector/idle_worker.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <cassert>
#include <chrono>
#include <system_error>
#include <utility>

namespace cmt::collector {
namespace {

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
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return id_ != 0; });
}

IdleWorker::~IdleWorker() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_at_end_ = true;
  }
  hurry();  // before it wakes, so that it does not starve
  changed_.notify_all();
  thread_.join();
}

void IdleWorker::run() {
  {
    const std::lock_guard lock(mutex_);
    id_ = ::gettid();
  }
  changed_.notify_all();
  set_policy(0, SCHED_IDLE);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return work_ || is_at_end_; });
    if (!work_) return;
    lock.unlock();
    std::exception_ptr error;
    try {
      work_();
    } catch (...) {
      error = std::current_exception();
    }
    if (is_hurried_.exchange(false)) set_policy(0, SCHED_IDLE);
    lock.lock();
    work_ = nullptr;
    error_ = error;
    changed_.notify_all();
  }
}

void IdleWorker::start(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    assert(is_there() && !work_ && !is_at_end_);
    work_ = std::move(work);
  }
  changed_.notify_all();
}

bool IdleWorker::wait(int milliseconds) {
  std::unique_lock lock(mutex_);
  const bool is_done = changed_.wait_for(lock, std::chrono::milliseconds(milliseconds), [this] { return !work_; });
  if (is_done && error_) std::rethrow_exception(std::exchange(error_, nullptr));
  return is_done;
}

void IdleWorker::hurry() {
  if (!is_hurried_.exchange(true)) set_policy(id_, SCHED_OTHER);
}

}  // namespace cmt::collector
