// The clock of samples, its budget of processor time, and the loop that waits for both clock and signals.
#include "cmtwatch/sample/sampling.h"

#include <poll.h>
#include <signal.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <system_error>
#include <utility>
#include <vector>

#include "toolkit/output/numbers.h"
#include "toolkit/process/system.h"

namespace cmt::watch {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

timespec timespec_of(std::int64_t ns) { return {.tv_sec = ns / second_ns, .tv_nsec = ns % second_ns}; }

}  // namespace

SampleClock::SampleClock(std::int64_t interval_ns, double share_max)
    : paid_ns_(share_max * static_cast<double>(interval_ns)),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  assert(interval_ns > 0 && share_max > 0);
  if (timer_.get() < 0) throw std::system_error(errno, std::generic_category(), "timerfd");
  const itimerspec times{.it_interval = timespec_of(interval_ns), .it_value = timespec_of(interval_ns)};
  timerfd_settime(timer_.get(), 0, &times, nullptr);
}

bool SampleClock::due() {
  std::uint64_t passed = 0;
  if (read(timer_.get(), &passed, sizeof passed) != static_cast<ssize_t>(sizeof passed)) return false;
  const auto paying = static_cast<std::uint64_t>(std::max(1.0, std::ceil(debt_ns_ / paid_ns_)));
  debt_ns_ = std::max(debt_ns_ - paid_ns_ * static_cast<double>(passed), -paid_ns_);
  assert(passed != 0 && debt_ns_ >= -paid_ns_);  // at most one moment's share is carried over
  skipped_ += std::min(paying - 1, passed);
  if (passed < paying) return false;
  missed_ += passed - paying;
  return true;
}

std::string SamplingCost::left_out_text() const {
  return (missed == 0 ? "" : ", " + output::with_commas(missed) + " missed") +
         (skipped == 0 ? "" : ", " + output::with_commas(skipped) + " skipped for their cost");
}

Listener listen_to(command::Interrupts& interrupts, std::function<void()> resized) {
  return {interrupts.fd(), [&interrupts, resized = std::move(resized)] {
            if (interrupts.take() != SIGWINCH) return Listener::Heard::end;
            resized();
            return Listener::Heard::nothing;
          }};
}

Listener listen_to(launch::RunningCommand& command, std::optional<launch::Ended>& ended,
                   std::function<void()> resized) {
  return {command.fd(), [&command, &ended, resized = std::move(resized)] {
            const cmt::launch::LaunchEvent happening = command.handle();
            if (happening.signal == SIGWINCH) resized();
            ended = happening.ended;
            if (happening.at_end) return Listener::Heard::sample_now;
            return ended ? Listener::Heard::end : Listener::Heard::nothing;
          }};
}

SamplingLoop::SamplingLoop(const Pace& pace)
    : pace_(pace), begin_ns_(process::now_ns()), cpu_begin_ns_(process::clock_ns(CLOCK_PROCESS_CPUTIME_ID)) {}

bool SamplingLoop::run(First first, std::span<const Listener> listeners, const std::function<Taken()>& take) {
  SampleClock clock(pace_.interval_ns, pace_.cost_share_max);
  if (first == First::at_once && !take_one(clock, take)) return true;
  std::vector<pollfd> ready;
  for (const Listener& listener : listeners) ready.push_back({listener.fd, POLLIN, 0});
  ready.push_back({clock.fd(), POLLIN, 0});
  while (!enough()) {
    poll(ready.data(), ready.size(), -1);
    for (std::size_t i = 0; i < listeners.size(); ++i) {
      if (ready[i].revents == 0) continue;
      auto heard = listeners[i].hear();
      for (; heard == Listener::Heard::sample_now; heard = listeners[i].hear()) take_one(clock, take);
      if (heard == Listener::Heard::end) return false;
    }
    const bool due = ready.back().revents != 0 && clock.due();
    counts_.missed = clock.missed() + too_early_;
    counts_.skipped = clock.skipped();
    if (due && !take_one(clock, take)) return true;
  }
  return false;
}

/// Returns false if no process is left.
bool SamplingLoop::take_one(SampleClock& clock, const std::function<Taken()>& take) {
  const std::int64_t cpu = process::clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  const Taken taken = take();
  if (taken == Taken::sample) {
    clock.took(process::clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    ++counts_.samples;
  }
  if (taken == Taken::too_early) ++too_early_;
  return taken != Taken::nobody_left;
}

bool SamplingLoop::enough() const {
  return (pace_.count && counts_.samples >= *pace_.count) ||
         (pace_.duration_ns && process::now_ns() - begin_ns_ >= *pace_.duration_ns);
}

SamplingCost SamplingLoop::cost() const {
  SamplingCost cost = counts_;
  cost.elapsed_ns = process::now_ns() - begin_ns_;
  cost.cpu_ns = process::clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin_ns_;
  return cost;
}

}  // namespace cmt::watch
