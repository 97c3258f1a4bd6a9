#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace cmt {

/// A thread that carries out tasks in the order in which they were posted. If one throws, those behind it are dropped.
///
/// Threads: used by one, the owner.
class TaskThread {
 public:
  /// Tasks that may wait.
  static constexpr std::size_t capacity = 32;

  /// Throws std::system_error where there can be no thread.
  TaskThread() : thread_([this] { run(); }) {}
  /// Waits for the tasks.
  ~TaskThread();
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  /// Returns the task's number, from 1 on. Waits while `capacity` others wait. Throws what a task has thrown.
  std::uint64_t post(std::function<void()> task);
  /// Waits until a task, and so all before it, is done. Throws what one of them has thrown.
  void wait_for(std::uint64_t task);
  void wait_for_all() { wait_for(posted_); }

 private:
  void run();

  std::mutex mutex_;  // guards all below but the thread
  std::condition_variable changed_;
  std::array<std::function<void()>, capacity> tasks_;
  std::uint64_t posted_ = 0, done_ = 0;
  bool is_at_end_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace cmt
