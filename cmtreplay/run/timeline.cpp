#include "cmtreplay/run/timeline.h"

#include <algorithm>
#include <ctime>
#include <system_error>

#include "cmtreplay/protocol.h"
#include "toolkit/process/proc_file.h"
#include "toolkit/process/stat.h"

namespace cmt::replay {
namespace {

constexpr std::size_t samples_max = 8192;

std::uint64_t own_cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

Timeline::Timeline(int pid, const std::string& root)
    : statm_(process::ProcessFolder(pid, root).open("statm")),
      resident_before_(resident_bytes()),
      thread_([this] { sample_now_and_then(); }) {}

Timeline::~Timeline() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Timeline::go(std::uint64_t event) {
  {
    const std::lock_guard lock(mutex_);
    going_ = true;
    event_ = event;
    went_ = Clock::now();
  }
  changed_.notify_one();
}

void Timeline::stop() {
  const std::lock_guard lock(mutex_);
  if (!going_) return;
  going_ = false;
  gone_ += Clock::now() - went_;
}

/// Holds the lock but for its sleep. A worker that has died is told of by others.
void Timeline::sample_now_and_then() {
  std::unique_lock lock(mutex_);
  Clock::duration next = distance_;
  while (!ends_) {
    if (!going_) {
      changed_.wait(lock);
      continue;
    }
    const Clock::duration now = gone_ + (Clock::now() - went_);
    if (now < next) {
      changed_.wait_for(lock, next - now);
      continue;
    }
    try {
      const std::uint64_t resident = resident_bytes();
      keep({.clock_ns = static_cast<std::uint64_t>(now.count()),
            .event = event_,
            .resident_bytes = resident - std::min(resident, resident_before_)});
    } catch (const std::system_error&) {
      return;
    }
    next = now + distance_;
    cpu_ns_ = own_cpu_ns();
  }
}

/// Of no file, and of no memory that is shared: those of the replay are shared.
std::uint64_t Timeline::resident_bytes() {
  const process::Statm statm = process::parse_statm(process::read_again(statm_.get(), text_));
  return (statm.resident_pages - std::min(statm.resident_pages, statm.shared_pages)) * page_bytes;
}

void Timeline::keep(const TimelineSample& sample) {
  samples_.push_back(sample);
  if (samples_.size() < samples_max) return;
  for (std::size_t i = 0; i < samples_.size() / 2; ++i) samples_[i] = samples_[2 * i + 1];
  samples_.resize(samples_.size() / 2);
  distance_ *= 2;
}

}  // namespace cmt::replay
