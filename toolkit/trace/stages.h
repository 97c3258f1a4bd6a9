/// Work in stages, on several threads.
///
/// Each event of a trace is read, goes into a model, and is written as a line. Reading and the model need the events
/// before. But one thread can read a batch while the model works on the batch before it. The lines of any batch can be
/// made at the same time:
///
///     batch      read   model  lines  out       thread 1   thread 2
///       1         x      x      x      x         read 1
///       2         x      x      x                read 2     model 1
///       3         x      x                       read 3     model 2
///       4         x                              lines 1    model 3     ...
///
/// A stage is in order (one batch at a time, the next of the trace), or it may work on many at once. A stage without a
/// home is for every thread, because each trace needs another share of each stage. A stage at home in a thread is for
/// that thread alone, which looks for it first. Then the stage's data (the live blocks of decoder or model) stay in the
/// cache of one processor. So does a batch that passes two stages of one home.
///
/// Batches are in a few places, which are used in turns. So memory is bounded, and a stage that is ahead waits. A step
/// takes a lock twice, which is 0.1 us of some 50. A thread without work sleeps until a few steps wait for it, because
/// to wake a thread for each step costs as much as the step. It sleeps 1 ms at most.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace cmt::trace {

class Stages {
 public:
  struct Stage {
    bool in_order = true;
    /// Works on the batch at a place. Returns false if that batch is the last one: no later batch will be finished. An
    /// exception ends all work.
    std::function<bool(std::size_t place)> work;
    std::optional<std::size_t> home{};  ///< a thread, from 0; of fewer threads, the remainder by their number
  };

  /// The first and the last stage are in order.
  Stages(std::vector<Stage> stages, std::size_t places);

  /// How many places so many threads need: enough that one can go on while another opens a block of the stream, which
  /// takes as long as 10 batches. A single thread brings one batch after the other to its end.
  static std::size_t places_for(unsigned threads) { return threads == 1 ? 1 : 12 + 2 * std::size_t{threads}; }

  /// Brings all batches through all stages, on so many threads, or fewer where the system has no more. Throws what a
  /// stage has thrown.
  void run(unsigned threads);

 private:
  struct Step {
    std::size_t stage;
    std::uint64_t batch;
  };
  /// The batch at a place waits for a stage, or the stage works on it.
  struct Place {
    std::size_t stage = 0;
    bool is_busy = false;
  };

  struct Sleep {
    std::condition_variable end;
    bool is_on = false;
  };

  void work_as(std::size_t thread);
  bool may_do(std::size_t thread, std::size_t stage) const;
  bool is_at_home(std::size_t thread, std::size_t stage) const;
  std::uint64_t steps_for(std::size_t thread) const;
  void wake_if(const std::function<bool(std::size_t thread)>& is_needed);
  void sleep(std::size_t thread, std::unique_lock<std::mutex>& lock);
  std::optional<Step> next_step(std::size_t thread) const;
  void begin_step(const Step& step);
  std::optional<std::uint64_t> batch_for(std::size_t stage) const;
  void end_step(const Step& step, bool more);
  bool is_over() const { return done_ == end_ || error_ != nullptr; }
  Place& place_of(std::uint64_t batch) { return places_[batch % places_.size()]; }
  const Place& place_of(std::uint64_t batch) const { return places_[batch % places_.size()]; }

  std::vector<Stage> stages_;
  std::mutex mutex_;  // guards all below
  std::vector<Place> places_;
  std::vector<std::uint64_t> next_;  // by stage: the first batch that has not begun it
  std::uint64_t done_ = 0;           // batches that are through
  std::uint64_t end_ = ~std::uint64_t{0};
  std::exception_ptr error_;
  std::deque<Sleep> sleeps_;  // by thread
  std::size_t threads_ = 1;
};

}  // namespace cmt::trace
