#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace cmt::collector {

/// A thread for work that can wait: it runs where a processor has nothing else to do (SCHED_IDLE, sched(7)). The kernel
/// judges, and preempts it as soon as any other thread wants the processor.
///
/// Starvation. While all processors are busy this thread gets a third of a per cent of one, so a lock that it holds is
/// held for seconds. The kernel does not lend it the priority of those who wait (PTHREAD_PRIO_INHERIT is for real-time
/// threads). So it must not take a lock that a thread takes for which the program may wait, malloc's among them: what
/// one thread allocates and the other frees is guarded by one lock.
///
/// The way back. A thread may leave SCHED_IDLE only with CAP_SYS_NICE or where RLIMIT_NICE allows its nice value, which
/// it does not by default. So urgent work is not given to this thread; its owner waits for the work at hand, which
/// should be short, and does all further work itself. hurry() asks the kernel to end the starvation, where it may.
///
/// Rejected: nice 19 (a lower share, but a share: 1.5 %, and a way back as little); a thread of normal priority that
/// works for as long as a SCHED_IDLE one has found a processor idle (the kernel judges then whether that one may run,
/// and it hardly takes time, so it may run often).
class IdleWorker {
 public:
  /// `name`: of the thread, at most 15 characters.
  explicit IdleWorker(const char* name);
  ~IdleWorker();
  IdleWorker(const IdleWorker&) = delete;
  IdleWorker& operator=(const IdleWorker&) = delete;

  /// Whether there is such a thread: there may be none where the kernel or a limit refuses it.
  bool is_there() const { return id_ != 0; }
  pid_t thread_id() const { return id_; }

  /// Hands over work. Requires is_there(), and that there is none. What the work uses belongs to the thread until
  /// wait() says that there is none.
  void start(std::function<void()> work);
  /// Waits until there is no work, at most so long. Returns whether there is none. Throws what the work has thrown.
  bool wait(int milliseconds);
  /// The work at hand has become urgent.
  void hurry();

 private:
  void run();

  std::thread thread_;
  pid_t id_ = 0;
  std::atomic<bool> is_hurried_ = false;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::function<void()> work_;
  std::exception_ptr error_;
  bool is_at_end_ = false;
};

}  // namespace cmt::collector
