// Gives steps to threads, as stages.h describes.

#include "toolkit/trace/stages.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

namespace cmt::trace {
namespace {

/// The number of waiting steps that wakes a thread.
constexpr std::uint64_t steps_to_wake = 4;

/// So long a thread sleeps at most, because fewer steps may be all that there are, as from a slow pipe.
constexpr std::chrono::milliseconds nap(1);

}  // namespace

Stages::Stages(std::vector<Stage> stages, std::size_t places)
    : stages_(std::move(stages)), places_(places), next_(stages_.size()) {
  assert(places != 0 && !stages_.empty() && stages_.front().in_order && stages_.back().in_order);
}

void Stages::run(unsigned threads) {
  std::vector<std::thread> others;
  others.reserve(threads);
  sleeps_.resize(threads);
  {
    const std::lock_guard lock(mutex_);  // they begin when their number is known
    try {
      for (unsigned i = 1; i < threads; ++i) others.emplace_back([this, i] { work_as(i); });
    } catch (const std::system_error&) {  // fewer have to do
    }
    threads_ = 1 + others.size();
  }
  work_as(0);
  for (std::thread& other : others) other.join();
  if (error_) std::rethrow_exception(error_);
}

void Stages::work_as(std::size_t thread) {
  std::unique_lock lock(mutex_);
  while (!is_over()) {
    const std::optional<Step> step = next_step(thread);
    if (!step) {
      sleep(thread, lock);
      continue;
    }
    begin_step(*step);
    lock.unlock();
    bool more = false;
    std::exception_ptr error;
    try {
      more = stages_[step->stage].work(step->batch % places_.size());
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !error_) error_ = error;
    end_step(*step, more);
    wake_if([&](std::size_t sleeper) { return is_over() || steps_for(sleeper) >= steps_to_wake; });
  }
}

bool Stages::is_at_home(std::size_t thread, std::size_t stage) const {
  return stages_[stage].home && *stages_[stage].home % threads_ == thread;
}

bool Stages::may_do(std::size_t thread, std::size_t stage) const {
  return !stages_[stage].home || is_at_home(thread, stage);
}

/// How many steps wait for the thread, with those that another one has to end first.
std::uint64_t Stages::steps_for(std::size_t thread) const {
  std::uint64_t steps = 0;
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
    if (!may_do(thread, stage)) continue;
    const std::uint64_t end = std::min(end_, stage == 0 ? done_ + places_.size() : next_[stage - 1]);
    steps += end - std::min(end, next_[stage]);
  }
  return steps;
}

void Stages::wake_if(const std::function<bool(std::size_t)>& is_needed) {
  for (std::size_t thread = 0; thread < threads_; ++thread) {
    Sleep& sleep = sleeps_[thread];
    if (!sleep.is_on || !is_needed(thread)) continue;
    sleep.is_on = false;
    sleep.end.notify_one();
  }
}

/// Before it sleeps, the thread wakes those that can do a step now.
void Stages::sleep(std::size_t thread, std::unique_lock<std::mutex>& lock) {
  wake_if([&](std::size_t sleeper) { return next_step(sleeper).has_value(); });
  sleeps_[thread].is_on = true;
  sleeps_[thread].end.wait_for(lock, nap);
  sleeps_[thread].is_on = false;
}

/// Looks first for stages that are at home in this thread, then for those without a home. Later stages come first,
/// since the last one makes room. A last stage without a home is at home everywhere.
std::optional<Stages::Step> Stages::next_step(std::size_t thread) const {
  std::optional<Step> found;
  const auto look_at = [&](std::size_t stage) {
    if (found) return;
    if (const auto batch = batch_for(stage)) found = Step{stage, *batch};
  };
  const std::size_t last = stages_.size() - 1;
  if (!stages_[last].home) look_at(last);
  for (std::size_t stage = stages_.size(); stage-- > 0;) {
    if (is_at_home(thread, stage)) look_at(stage);
  }
  for (std::size_t stage = stages_.size(); stage-- > 0;) {
    if (!stages_[stage].home) look_at(stage);
  }
  return found;
}

void Stages::begin_step(const Step& step) {
  assert(place_of(step.batch).stage == step.stage && !place_of(step.batch).is_busy);
  place_of(step.batch) = {step.stage, true};
  next_[step.stage] = step.batch + 1;
}

/// The batch that a stage can work on now.
std::optional<std::uint64_t> Stages::batch_for(std::size_t stage) const {
  const std::uint64_t batch = next_[stage];
  if (batch >= end_) return std::nullopt;
  if (stage == 0) {
    const bool is_at_work = batch > done_ && place_of(batch - 1).stage == 0;
    return batch - done_ < places_.size() && !is_at_work ? std::optional(batch) : std::nullopt;
  }
  if (batch >= next_[stage - 1]) return std::nullopt;
  const Place& place = place_of(batch);
  if (place.stage != stage || place.is_busy) return std::nullopt;
  const bool is_at_work =
      stages_[stage].in_order && batch > done_ && place_of(batch - 1).stage == stage && place_of(batch - 1).is_busy;
  return is_at_work ? std::nullopt : std::optional(batch);
}

void Stages::end_step(const Step& step, bool more) {
  assert(place_of(step.batch).stage == step.stage && place_of(step.batch).is_busy);
  assert(step.stage + 1 != stages_.size() || step.batch == done_);
  if (!more) end_ = std::min(end_, step.batch + 1);
  if (step.stage + 1 == stages_.size()) done_ = step.batch + 1;
  place_of(step.batch) = {step.stage + 1 == stages_.size() ? 0 : step.stage + 1, false};
}

}  // namespace cmt::trace
