// Reads statm from a thread of its own, and halves its samples when there are too many.
#include "cmtreplay/run/timeline.h"

#include <algorithm>
#include <cassert>
#include <system_error>

#include "cmtreplay/protocol.h"
#include "toolkit/process/proc_file.h"
#include "toolkit/process/stat.h"
#include "toolkit/process/system.h"

namespace cmt::replay {
namespace {

constexpr std::size_t samples_max = 8192;

}  // namespace

Timeline::Timeline(int pid, std::uint64_t start_bytes, const std::string& root)
    : statm_(process::ProcessFolder(pid, root).open("statm")),
      start_bytes_(start_bytes),
      resident_before_(resident_bytes()),
      thread_([this](const std::stop_token& stop) { run_sampler(stop); }) {}

void Timeline::resume(std::uint64_t event) {
  {
    const std::lock_guard lock(mutex_);
    assert(!is_running_);
    is_running_ = true;
    event_ = event;
    resumed_at_ = Clock::now();
  }
  changed_.notify_one();
}

void Timeline::pause() {
  const std::lock_guard lock(mutex_);
  if (!is_running_) return;
  is_running_ = false;
  elapsed_ += Clock::now() - resumed_at_;
}

/// The sampler's thread. It holds the lock except while it sleeps. It ends if the worker has died, which WorkerProcess
/// reports.
void Timeline::run_sampler(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  Clock::duration next = distance_;
  while (!stop.stop_requested()) {
    if (!is_running_) {
      changed_.wait(lock, stop, [this] { return is_running_; });
      continue;
    }
    const Clock::duration now = elapsed_ + (Clock::now() - resumed_at_);
    if (now < next) {
      changed_.wait_for(lock, stop, next - now, [this] { return !is_running_; });
      continue;
    }
    try {
      const std::uint64_t resident = resident_bytes() + start_bytes_;
      add_sample({.clock_ns = static_cast<std::uint64_t>(now.count()),
                  .event = event_,
                  .resident_bytes = resident - std::min(resident, resident_before_)});
    } catch (const std::system_error&) {
      return;
    }
    next = now + distance_;
    cpu_ns_ = static_cast<std::uint64_t>(process::clock_ns(CLOCK_THREAD_CPUTIME_ID));
  }
}

/// Resident bytes without pages of files and of shared memory: the replay's own memory is shared.
std::uint64_t Timeline::resident_bytes() {
  const process::Statm statm = process::parse_statm(process::read_again(statm_.get(), text_));
  return (statm.resident_pages - std::min(statm.resident_pages, statm.shared_pages)) * page_bytes;
}

void Timeline::add_sample(const TimelineSample& sample) {
  assert(samples_.size() < samples_max);
  assert(samples_.empty() || samples_.back().clock_ns <= sample.clock_ns);
  samples_.push_back(sample);
  if (samples_.size() < samples_max) return;
  for (std::size_t i = 0; i < samples_.size() / 2; ++i) samples_[i] = samples_[2 * i + 1];
  samples_.resize(samples_.size() / 2);
  distance_ *= 2;
}

}  // namespace cmt::replay
