// The loop of cmtwatch wss: mark, wait, read, with or without a pause.
#include "cmtwatch/working_set/working_set.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "cmtwatch/sample/process_set.h"
#include "toolkit/command/interrupts.h"
#include "toolkit/process/system.h"

namespace cmt::watch {
namespace {

/// Throws std::runtime_error if the kernel lacks the files of TouchMethod::referenced, or the process is gone.
void check_referenced(const TouchTarget& target) {
  for (const char* const name : {"clear_refs", "smaps"}) {
    const std::string path = process::path_of(target.pid, name, target.root);
    if (access(path.c_str(), F_OK) == 0) continue;
    check_process(target.pid, target.root);
    throw std::runtime_error("the kernel does not tell what is touched (CONFIG_PROC_PAGE_MONITOR): there is no " +
                             path);
  }
}

/// Marks and reads by turns. Its functions throw as the meter and while_paused() do.
class IntervalMeter {
 public:
  IntervalMeter(const WssOptions& options, TouchMeter& meter) : options_(options), meter_(meter) {}

  /// The length of the interval up to now.
  std::int64_t length_ns() const { return now() - marked_ns_; }

  /// Ends the interval, of which there is none at the first call, and begins the next.
  WorkingSet next() {
    WorkingSet set;
    const std::int64_t paused_ns = paused([&] {
      if (marked_ns_ != 0) {
        set = {.begin_ns = marked_ns_, .end_ns = now(), .marking_ns = marking_ns_, .touched = {}};
        set.touched = meter_.read();
        set.reading_ns = now() - set.end_ns;
      }
      const std::int64_t marking_begin = now();
      meter_.mark();
      marked_ns_ = now();
      marking_ns_ = marked_ns_ - marking_begin;
    });
    set.paused_ns = paused_ns;
    return set;
  }

 private:
  std::int64_t now() const { return process::now_ns() - begin_ns_; }

  template <class Action>
  std::int64_t paused(Action action) {
    if (!options_.pause) {
      action();
      return 0;
    }
    return while_paused(interrupted_calls_, [&](Pause& pause) {
      const int pid = options_.target.pid;
      pause.stop_all([pid] { return std::vector<int>{pid}; }, {pid});
      action();
    });
  }

  const WssOptions& options_;
  TouchMeter& meter_;
  std::int64_t begin_ns_ = process::now_ns();
  std::int64_t marked_ns_ = 0;
  std::int64_t marking_ns_ = 0;
  process::InterruptedCalls interrupted_calls_;
};

/// A descriptor that is readable when the process has ended; none for a process of another machine.
process::Fd open_pidfd(const TouchTarget& target) {
  return process::Fd(target.root == "/proc" ? static_cast<int>(syscall(SYS_pidfd_open, target.pid, 0)) : -1);
}

}  // namespace

std::uint64_t WorkingSet::pages() const { return touched.touched_bytes() / process::page_bytes(); }

WssMethod choose_method(const WssOptions& options) {
  if (options.method == TouchMethod::referenced) {
    check_referenced(options.target);
    return {TouchMethod::referenced, ""};
  }
  const auto obstacle = obstacle_to_idle(options.target);
  if (!obstacle) return {TouchMethod::idle, ""};
  if (options.method) throw std::runtime_error("--method=idle: " + *obstacle);
  check_referenced(options.target);
  return {TouchMethod::referenced, *obstacle};
}

process::Fd lock_marks(const TouchTarget& target) {
  const std::string path = process::path_of(target.pid, "clear_refs", target.root);
  process::Fd file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() >= 0 && flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw std::runtime_error("process " + std::to_string(target.pid) +
                             " is being marked by another cmtwatch wss: they would disturb each other");
  return file;
}

WorkingSetRun measure_working_sets(const WssOptions& options, TouchMeter& meter,
                                   const std::function<void(const WorkingSet&)>& take) {
  using Taken = SamplingLoop::Taken;
  WorkingSetRun run;
  const command::Interrupts interrupts;
  const process::Fd end = open_pidfd(options.target);
  const Listener listeners[] = {{interrupts.fd(), [] { return Listener::Heard::end; }}, {end.get(), [&] {
                                                                                           run.gone = true;
                                                                                           return Listener::Heard::end;
                                                                                         }}};
  SamplingLoop loop(options.pace);
  IntervalMeter intervals(options, meter);
  try {
    run.pauses.add(intervals.next().paused_ns);
    loop.run(SamplingLoop::First::after_interval, listeners, [&] {
      // Measuring the last interval took most of this one.
      if (intervals.length_ns() < options.pace.interval_ns / 2) return Taken::too_early;
      const WorkingSet set = intervals.next();
      run.pauses.add(set.paused_ns);
      take(set);
      return Taken::sample;
    });
  } catch (const std::system_error& error) {
    run.gone = means_gone(error);
    if (!run.gone) run.failure = std::current_exception();
  } catch (const PauseRefused&) {
    run.failure = std::current_exception();
  }
  static_cast<SamplingCost&>(run) = loop.cost();
  return run;
}

}  // namespace cmt::watch
