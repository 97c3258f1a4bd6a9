#include "cmtwatch/sample/sampling.h"

#include <poll.h>

#include "cmtwatch/sample/sample_clock.h"

namespace cmt::watch {
namespace {

/// One watch while it goes on.
class Watching {
 public:
  Watching(Family& family, const Pace& pace, std::int64_t begin_ns, bool details)
      : family_(family),
        pace_(pace),
        begin_ns_(begin_ns),
        details_(details),
        grid_(pace.interval_ns, pace.cost_share_max) {}

  int fd() const { return grid_.fd(); }
  bool due() { return grid_.due(); }

  /// False where nobody is left, or nobody may be paused.
  bool sample(const std::function<void(const Sample&)>& take) {
    const std::int64_t begin = now_ns();
    Sample sample;
    try {
      sample = family_.read(details_);
    } catch (const PauseRefused& error) {
      outcome_.refusal = error.what();
      return false;
    }
    const std::int64_t end = now_ns();
    sample.begin_ns = begin - begin_ns_;
    sample.end_ns = end - begin_ns_;
    grid_.took(end - begin);
    if (sample.processes + sample.refused == 0) return false;
    ++outcome_.samples;
    outcome_.pauses.add(sample.paused_ns);
    if (sample.processes != 0 && (!outcome_.peak || sample.bytes > outcome_.peak->bytes)) outcome_.peak = sample;
    take(sample);
    return true;
  }

  bool enough() const {
    return (pace_.count && outcome_.samples >= *pace_.count) ||
           (pace_.duration_ns && now_ns() - first_ns_ >= *pace_.duration_ns);
  }

  Outcome end(bool gone) {
    outcome_.gone = gone && outcome_.refusal.empty();
    outcome_.missed = grid_.missed();
    outcome_.skipped = grid_.skipped();
    outcome_.elapsed_ns = now_ns() - first_ns_;
    outcome_.cost_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_before_;
    return outcome_;
  }

 private:
  Family& family_;
  const Pace& pace_;
  std::int64_t begin_ns_;
  bool details_;
  std::int64_t first_ns_ = now_ns();
  std::int64_t cpu_before_ = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  Grid grid_;
  Outcome outcome_;
};

}  // namespace

std::int64_t clock_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

std::int64_t now_ns() { return clock_ns(CLOCK_MONOTONIC); }

Outcome watch(Family& family, const Pace& pace, std::int64_t begin_ns, bool details, const Listener& listener,
              const std::function<void(const Sample&)>& take) {
  Watching watching(family, pace, begin_ns, details);
  if (!watching.sample(take)) return watching.end(true);
  while (!watching.enough()) {
    pollfd ready[] = {{listener.fd, POLLIN, 0}, {watching.fd(), POLLIN, 0}};
    poll(ready, 2, -1);
    if (ready[0].revents != 0 && !listener.hear()) return watching.end(false);
    if (ready[1].revents != 0 && watching.due() && !watching.sample(take)) return watching.end(true);
  }
  return watching.end(false);
}

}  // namespace cmt::watch
