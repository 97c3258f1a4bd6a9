/// A second thread for one owner, which compresses and writes, or formats, or checks, while the owner goes on.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace cmt {

/// A thread that carries out tasks in the order in which the owner posted them. If a task throws, the tasks after it
/// are dropped. The thread begins to work when several tasks are waiting, or when the owner waits for a task: waking a
/// thread costs as much as a small task.
///
/// Threads: only one thread, the owner, may call it.
class TaskThread {
 public:
  /// The most tasks that wait.
  static constexpr std::size_t capacity = 32;

  /// Throws std::system_error if the system has no thread for it.
  TaskThread() : thread_([this] { run(); }) {}
  /// Waits for the tasks.
  ~TaskThread();
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  /// Returns the task's number, from 1 on. Blocks while `capacity` others wait. Rethrows the exception of an earlier
  /// task.
  std::uint64_t post(std::function<void()> task);
  /// Waits until a task, and so all before it, are done. Rethrows the exception of one of them.
  void wait_for(std::uint64_t task);
  void wait_for_all() { wait_for(posted_); }

 private:
  void run();
  void wait_for(std::uint64_t task, std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;  // guards all below but the thread
  std::condition_variable work_, done_task_;
  std::array<std::function<void()>, capacity> tasks_;
  std::uint64_t posted_ = 0, done_ = 0;
  std::uint64_t awaited_ = 0;  // the task that the owner waits for; 0: it does not wait
  bool is_asleep_ = false, is_at_end_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace cmt
