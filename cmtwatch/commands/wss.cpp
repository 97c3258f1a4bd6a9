// cmtwatch wss: what a process touches, interval after interval. One reading ends an interval, and the marks that
// follow it at once begin the next, so nothing is measured before there was a first mark.

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "cmtwatch/commands/commands.h"
#include "cmtwatch/report/report.h"
#include "cmtwatch/report/wss_plot.h"
#include "cmtwatch/report/wss_report.h"
#include "cmtwatch/sample/check_process.h"
#include "cmtwatch/sample/pause.h"
#include "cmtwatch/sample/proc_errors.h"
#include "cmtwatch/sample/sample_clock.h"
#include "cmtwatch/working_set/working_set.h"
#include "toolkit/command/interrupts.h"
#include "toolkit/picture/picture_file.h"
#include "toolkit/process/proc_file.h"

namespace cmt::watch {
namespace {

/// Throws std::runtime_error where the kernel lacks what mappings are marked by. A process that is gone lacks it, too.
void check_referenced(const TouchTarget& target) {
  for (const char* const name : {"clear_refs", "smaps"}) {
    const std::string path = process::path_of(target.pid, name, target.root);
    if (access(path.c_str(), F_OK) == 0) continue;
    check_process(target.pid, target.root);
    throw std::runtime_error("the kernel does not tell what is touched (CONFIG_PROC_PAGE_MONITOR): there is no " +
                             path);
  }
}

/// Throws std::runtime_error where there is no way, or not the one that is wanted.
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

/// Held as long as a process is marked, so that no other cmtwatch takes the marks away: the file is one for all who
/// have it open. Throws std::runtime_error where another has it.
process::Fd lock_marks(const TouchTarget& target) {
  const std::string path = process::path_of(target.pid, "clear_refs", target.root);
  process::Fd file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() >= 0 && flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw std::runtime_error("process " + std::to_string(target.pid) +
                             " is being marked by another cmtwatch wss: they would disturb each other");
  return file;
}

/// Calls `action`. Turns what it throws where a process is not ours into a line about that.
template <class Action>
auto permitted(int pid, Action action) {
  try {
    return action();
  } catch (const std::system_error& error) {
    if (!says_forbidden(error)) throw;
    throw std::runtime_error("process " + std::to_string(pid) + " may not be marked and read: it is not ours");
  }
}

/// The measurement while it goes on. All its functions throw what the meter and a pause throw.
class Measuring {
 public:
  Measuring(const WssOptions& options, TouchMeter& meter) : options_(options), meter_(meter) {}

  /// Begins the first interval. Returns for how long the process stood still.
  std::int64_t begin() {
    return paused([this] { mark(); });
  }

  /// How long the interval is by now.
  std::int64_t length_ns() const { return now() - marked_ns_; }

  /// Ends an interval and begins the next.
  WorkingSet next() {
    WorkingSet set;
    const std::int64_t paused_ns = paused([&] {
      set = {.begin_ns = marked_ns_, .end_ns = now(), .marking_ns = marking_ns_, .touched = {}};
      set.touched = meter_.read();
      set.reading_ns = now() - set.end_ns;
      mark();
    });
    set.paused_ns = paused_ns;
    return set;
  }

 private:
  std::int64_t now() const { return now_ns() - begin_ns_; }

  template <class Action>
  std::int64_t paused(Action action) {
    if (!options_.pause) {
      action();
      return 0;
    }
    return while_paused([&](Pause& pause) {
      const int pid = options_.target.pid;
      pause.stop_all([pid] { return std::vector<int>{pid}; }, {pid});
      action();
    });
  }

  void mark() {
    const std::int64_t begin = now();
    meter_.mark();
    marked_ns_ = now();
    marking_ns_ = marked_ns_ - begin;
  }

  const WssOptions& options_;
  TouchMeter& meter_;
  std::int64_t begin_ns_ = now_ns();
  std::int64_t marked_ns_ = 0;
  std::int64_t marking_ns_ = 0;
};

/// Readable when the process has ended; none where it is not one of ours to wait for.
process::Fd end_of(const TouchTarget& target) {
  return process::Fd(target.root == "/proc" ? static_cast<int>(syscall(SYS_pidfd_open, target.pid, 0)) : -1);
}

enum class Heard { moment, signal, end };

/// Waits for the next moment, unless something else comes first.
Heard wait_for(Grid& grid, const command::Interrupts& interrupts, const process::Fd& end) {
  for (;;) {
    pollfd ready[] = {{interrupts.fd(), POLLIN, 0}, {grid.fd(), POLLIN, 0}, {end.get(), POLLIN, 0}};
    poll(ready, 3, -1);
    if (ready[0].revents != 0) return Heard::signal;
    if (ready[2].revents != 0) return Heard::end;
    if (ready[1].revents != 0 && grid.due()) return Heard::moment;
  }
}

/// What was measured, and what ended it before its time: the end of the process is nothing unusual.
struct Measured {
  Outcome outcome;
  std::exception_ptr failure;
};

Measured measure_all(const WssOptions& options, TouchMeter& meter, const std::function<void(const WorkingSet&)>& take) {
  const command::Interrupts interrupts;
  const process::Fd end = end_of(options.target);
  const Pace& pace = options.pace;
  const std::int64_t cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  const std::int64_t begin = now_ns();
  Measured measured;
  Outcome& outcome = measured.outcome;
  std::uint64_t too_soon = 0;
  Measuring measuring(options, meter);
  const auto enough = [&] {
    return (pace.count && outcome.samples >= *pace.count) ||
           (pace.duration_ns && now_ns() - begin >= *pace.duration_ns);
  };
  try {
    outcome.pauses.add(measuring.begin());
    Grid grid(pace.interval_ns, pace.cost_share_max);
    while (!enough()) {
      const Heard heard = wait_for(grid, interrupts, end);
      outcome.gone = heard == Heard::end;
      if (heard != Heard::moment) break;
      if (measuring.length_ns() < pace.interval_ns / 2) {  // measuring took up the rest
        ++too_soon;
        continue;
      }
      const WorkingSet set = measuring.next();
      grid.took(set.reading_ns + set.marking_ns);
      outcome.missed = grid.missed() + too_soon;
      outcome.skipped = grid.skipped();
      outcome.pauses.add(set.paused_ns);
      ++outcome.samples;
      take(set);
    }
  } catch (const std::system_error& error) {
    outcome.gone = says_gone(error);
    if (!outcome.gone) measured.failure = std::current_exception();
  } catch (const PauseRefused&) {
    measured.failure = std::current_exception();
  }
  outcome.elapsed_ns = now_ns() - begin;
  outcome.cost_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
  return measured;
}

void draw(output::PictureFile& file, const output::Picture& picture, const std::string& numbers) {
  file.write(picture, numbers);
  if (const auto remark = file.remark(); !remark.empty())
    std::fprintf(stderr, "cmtwatch wss: %.*s\n", static_cast<int>(remark.size()), remark.data());
}

}  // namespace

int wss(const command::CommandLine& line) {
  const WssOptions options = parse_wss(line);
  const int pid = options.target.pid;
  check_process(pid, options.target.root);
  if (options.pause) check_pausable(pid, options.target.root);
  Destination destination(options.output, STDOUT_FILENO);
  std::optional<output::PictureFile> picture;
  if (!options.plot.empty()) picture.emplace(options.plot);
  return permitted(pid, [&] {
    const WssMethod method = choose_method(options);
    const process::Fd lock = lock_marks(options.target);
    const auto meter = make_touch_meter(method.method, options.target);
    const auto report = make_wss_report(options, method, destination);
    ReuseDistance reuse;
    std::vector<WorkingSet> sets;
    const auto [outcome, failure] = measure_all(options, *meter, [&](const WorkingSet& set) {
      if (method.method == TouchMethod::idle) reuse.add(set.touched.pages);
      if (picture) sets.push_back(set);
      report->sample(set);
    });
    if (outcome.samples != 0) {
      report->end(outcome, reuse);
      if (picture)
        draw(*picture, to_picture(options, method, sets, reuse), to_json(options, method, sets, outcome, reuse));
    }
    if (failure) std::rethrow_exception(failure);
    if (outcome.samples == 0 && outcome.gone)
      throw std::runtime_error("process " + std::to_string(pid) + " ended before its first interval did");
    return 0;
  });
}

}  // namespace cmt::watch
