// Wakes the thread only for several tasks at once or for an owner that waits, as task_thread.h describes.

#include "libcmt/trace/task_thread.h"

#include <cassert>
#include <utility>

namespace cmt {
namespace {

/// The number of waiting tasks that wakes the thread.
constexpr std::uint64_t tasks_to_begin = 8;

}  // namespace

TaskThread::~TaskThread() {
  {
    const std::lock_guard lock(mutex_);
    is_at_end_ = true;
  }
  work_.notify_one();
  thread_.join();
}

std::uint64_t TaskThread::post(std::function<void()> task) {
  assert(task != nullptr);
  std::unique_lock lock(mutex_);
  assert(!is_at_end_);
  if (posted_ - done_ == capacity) wait_for(posted_ - capacity / 2, lock);
  assert(posted_ - done_ < capacity);
  if (error_) std::rethrow_exception(error_);
  tasks_[posted_ % capacity] = std::move(task);
  const std::uint64_t number = ++posted_;
  const bool wakes = is_asleep_ && posted_ - done_ >= tasks_to_begin;
  lock.unlock();
  if (wakes) work_.notify_one();
  return number;
}

void TaskThread::wait_for(std::uint64_t task) {
  std::unique_lock lock(mutex_);
  wait_for(task, lock);
  if (error_) std::rethrow_exception(error_);
}

void TaskThread::wait_for(std::uint64_t task, std::unique_lock<std::mutex>& lock) {
  assert(task <= posted_);
  if (done_ >= task) return;
  awaited_ = task;
  work_.notify_one();
  done_task_.wait(lock, [&] { return done_ >= task; });
  awaited_ = 0;
}

void TaskThread::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    is_asleep_ = true;
    work_.wait(lock, [this] { return posted_ - done_ >= tasks_to_begin || awaited_ > done_ || is_at_end_; });
    is_asleep_ = false;
    if (done_ == posted_) return;
    while (done_ != posted_) {
      assert(tasks_[done_ % capacity] != nullptr);
      const std::function<void()> task = std::exchange(tasks_[done_ % capacity], nullptr);
      const bool is_wanted = !error_;
      lock.unlock();
      std::exception_ptr error;
      try {
        if (is_wanted) task();
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      if (error) error_ = error;
      if (++done_ == awaited_) done_task_.notify_one();
    }
  }
}

}  // namespace cmt
