#include "libcmt/trace/task_thread.h"

#include <utility>

namespace cmt {

TaskThread::~TaskThread() {
  {
    const std::lock_guard lock(mutex_);
    is_at_end_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::uint64_t TaskThread::post(std::function<void()> task) {
  std::uint64_t number;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return posted_ - done_ < capacity; });
    if (error_) std::rethrow_exception(error_);
    tasks_[posted_ % capacity] = std::move(task);
    number = ++posted_;
  }
  changed_.notify_all();
  return number;
}

void TaskThread::wait_for(std::uint64_t task) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ >= task; });
  if (error_) std::rethrow_exception(error_);
}

void TaskThread::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return done_ != posted_ || is_at_end_; });
    if (done_ == posted_) return;
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
    ++done_;
    changed_.notify_all();
  }
}

}  // namespace cmt
