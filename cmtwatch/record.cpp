// cmtwatch record: moments go into a recording until the processes end, it is enough, or somebody says so.

#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "cmtwatch/check_process.h"
#include "cmtwatch/commands.h"
#include "cmtwatch/grid.h"
#include "cmtwatch/record_options.h"
#include "cmtwatch/recorder.h"
#include "cmtwatch/recording.h"
#include "command/interrupts.h"
#include "command/launch.h"
#include "output/numbers.h"
#include "output/progress.h"
#include "output/sparkline.h"
#include "process/children.h"

namespace cmt::watch {
namespace {

/// One line on a terminal.
class LiveLine {
 public:
  void show(std::int64_t ticks, std::size_t processes, std::uint64_t resident_bytes) {
    if (!line_.active()) return;
    if (recent_.size() == columns) recent_.erase(recent_.begin());
    recent_.push_back(resident_bytes);
    line_.show(output::with_commas(static_cast<std::uint64_t>(ticks)) + " moments, " + std::to_string(processes) +
               (processes == 1 ? " process, " : " processes, ") + output::bytes_text(resident_bytes) + " resident  " +
               output::sparkline(recent_, columns));
  }

 private:
  static constexpr std::size_t columns = 30;

  output::ProgressLine line_{STDERR_FILENO};
  std::vector<std::uint64_t> recent_;
};

/// A recording while it is made.
class Recording {
 public:
  explicit Recording(const RecordOptions& options)
      : options_(options), database_(options.path, Database::Mode::write), recorder_(prepared(), options.root) {
    const std::int64_t wall = clock_ns(CLOCK_REALTIME);
    const bool goes_on = recorder_.tick() != 0;
    if (goes_on) {
      // The monotonic clock may have begun anew since then; the wall clock tells how long the pause was.
      offset_ns_ = database_.number("select end_ns from tick order by id desc limit 1") + wall -
                   database_.number("select wall_ns from tick order by id desc limit 1");
    }
    describe(wall);
  }

  void watch_also(int pid) { roots_.push_back(pid); }

  /// One moment. False where nobody is left.
  bool moment() {
    const std::int64_t cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    recorder_.begin_tick(now(), clock_ns(CLOCK_REALTIME));
    std::size_t recorded = 0;
    for (const int pid : wanted()) recorded += recorder_.record(pid);
    recorder_.record_system();
    recorder_.end_tick(now(), clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    live_.show(recorder_.tick(), recorded, recorder_.resident_bytes());
    forget();
    return recorded != 0;
  }

  void close() { close_recording(database_); }

 private:
  Database& prepared() {
    prepare_recording(database_, options_.path);
    return database_;
  }

  std::int64_t now() const { return offset_ns_ + now_ns() - begin_ns_; }

  void describe(std::int64_t wall) {
    Statement set(database_, "insert or ignore into about values (?, ?)");
    set.bind("recorder").bind("cmtwatch " CMT_VERSION).run();
    set.bind("start_wall_ns").bind(wall).run();
    set.bind("start_monotonic_ns").bind(begin_ns_).run();
    set.bind("interval_ns").bind(options_.pace.interval_ns).run();
    set.bind("page_bytes").bind(static_cast<std::int64_t>(sysconf(_SC_PAGESIZE))).run();
    set.bind("clock_ticks_per_second").bind(static_cast<std::int64_t>(sysconf(_SC_CLK_TCK))).run();
  }

  /// Everybody who is to be recorded now, once.
  std::vector<int> wanted() {
    if (options_.all) return process::read_pids(options_.root);
    if (!options_.recursive) return roots_;
    std::vector<int> pids;
    for (const int root : roots_) {
      for (const int pid : process::read_descent(root, options_.root)) {
        if (pid != getpid()) pids.push_back(pid);
      }
    }
    roots_.insert(roots_.end(), pids.begin(), pids.end());  // who was seen stays, whoever adopts it
    std::sort(roots_.begin(), roots_.end());
    roots_.erase(std::unique(roots_.begin(), roots_.end()), roots_.end());
    std::sort(pids.begin(), pids.end());
    pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
    return pids;
  }

  /// Now and then, since it costs as much as some moments.
  void forget() {
    constexpr std::int64_t moments_between = 64;
    if (!options_.keep_ns || recorder_.tick() % moments_between != 0) return;
    const std::int64_t first_kept =
        database_.number("select coalesce(min(id), (select max(id) from tick)) from tick where end_ns >= " +
                         std::to_string(now() - *options_.keep_ns));
    if (first_kept > 1) recorder_.forget_before(first_kept);
  }

  const RecordOptions& options_;
  std::int64_t begin_ns_ = now_ns();
  std::int64_t offset_ns_ = 0;
  Database database_;
  Recorder recorder_;
  std::vector<int> roots_;
  LiveLine live_;
};

void record_until(Recording& recording, const Pace& pace, const Listener& listener) {
  Grid grid(pace.interval_ns, pace.cost_share_max);
  const std::int64_t begin = now_ns();
  for (std::uint64_t moments = 1;; ++moments) {
    const std::int64_t moment_begin = now_ns();
    if (!recording.moment()) return;
    grid.took(now_ns() - moment_begin);
    if (pace.count && moments >= *pace.count) return;
    do {
      if (pace.duration_ns && now_ns() - begin >= *pace.duration_ns) return;
      pollfd ready[] = {{listener.fd, POLLIN, 0}, {grid.fd(), POLLIN, 0}};
      poll(ready, 2, -1);
      if (ready[0].revents != 0 && !listener.hear()) return;
    } while (!grid.due());
  }
}

int record_command(const RecordOptions& options) {
  Recording recording(options);
  if (options.recursive) prctl(PR_SET_CHILD_SUBREAPER, 1);
  try {
    command::Launched launched({.words = options.command, .output = {}, .error = {}, .environment = {}});
    recording.watch_also(options.recursive ? getpid() : launched.pid());
    std::optional<command::Ended> ended;
    record_until(recording, options.pace, {launched.fd(), [&] {
                                             ended = launched.handle().ended;
                                             return !ended;
                                           }});
    if (!ended) ended = launched.wait();
    recording.close();
    command::end_alike(*ended);
  } catch (const command::LaunchError& error) {
    std::fprintf(stderr, "cmtwatch record: %s\n", error.what());
    return error.status;
  }
}

int record_processes(const RecordOptions& options) {
  Recording recording(options);
  for (const int pid : options.pids) {
    check_process(pid, options.root);
    recording.watch_also(pid);
  }
  const command::Interrupts interrupts;
  record_until(recording, options.pace, {interrupts.fd(), [] { return false; }});
  recording.close();
  return 0;
}

}  // namespace

int record(const command::CommandLine& line) { return record_processes(parse_record(line, false)); }
int record_launched(const command::CommandLine& line) { return record_command(parse_record(line, true)); }

}  // namespace cmt::watch
