// A thread that runs only on idle processors, and the rules by which others may rely on it without starving.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>

namespace cmt::collector {

/// A thread for work that can wait. It runs if a processor has nothing else to do (SCHED_IDLE, sched(7)). The kernel
/// decides, and preempts it as soon as any other thread wants the processor.
///
/// Starvation. While all processors are busy, this thread gets a third of a per cent of one, so it may hold a lock for
/// seconds. The kernel does not lend it the priority of waiting threads (PTHREAD_PRIO_INHERIT is for real-time
/// threads). So it must not share a lock with a thread for which the program may wait. This includes malloc's locks:
/// memory that one thread allocates and the other frees is guarded by one lock. Owner and thread talk by one atomic
/// word: with a mutex, an owner waited for half a minute beside 20 busy programs, and could not call hurry().
///
/// The way back. A thread may leave SCHED_IDLE only with CAP_SYS_NICE, or if RLIMIT_NICE allows its nice value. By
/// default it does not. So the owner gives this thread no urgent work. The owner waits for the work at hand, which
/// should be short. All further work the owner does itself. hurry() asks the kernel to end the starvation, if it may.
///
/// Rejected:
///
/// - nice 19: the share is 1.5 % instead of 0.3 %, and there is no way back either.
///
/// - A thread of normal priority that works as long as a SCHED_IDLE thread has found a processor idle. The kernel
///   decides whether the SCHED_IDLE thread may run. It needs hardly any time, so it may run often.
class IdleWorker {
 public:
  /// `name`: of the thread, at most 15 characters.
  explicit IdleWorker(const char* name);
  ~IdleWorker();
  IdleWorker(const IdleWorker&) = delete;
  IdleWorker& operator=(const IdleWorker&) = delete;

  /// Whether the thread exists: the kernel or a limit may have refused it.
  bool is_there() const { return id_ != 0; }
  pid_t thread_id() const { return id_; }

  /// Hands over work. Requires is_there() and no work at hand. Data that the work uses belongs to the thread until
  /// wait() returns true.
  void start(std::function<void()> work);
  /// Waits until no work is at hand, at most so long. Returns whether none is. Throws the exception that the work has
  /// thrown.
  bool wait(int milliseconds);
  /// Notes that the work at hand is urgent. Call it again while the work is not done: the thread may have
  /// returned to SCHED_IDLE at the same moment.
  void hurry();

 private:
  enum State : std::uint32_t { beginning, without_work, with_work, at_end };

  void run();
  void set_state(State state);
  void wake() const;
  /// Waits until the state is another one, or for some time.
  void await_other(State state, int milliseconds) const;

  std::thread thread_;
  std::atomic<pid_t> id_ = 0;
  std::atomic<bool> is_hurried_ = false;
  std::atomic<std::uint32_t> state_ = beginning;
  // The thread's while there is work, else the owner's.
  std::function<void()> work_;
  std::exception_ptr error_;
};

}  // namespace cmt::collector
