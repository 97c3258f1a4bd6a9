// cmtwatch record: moments go into a recording until the processes end, it is enough, or somebody says so.

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cmtwatch/commands/commands.h"
#include "cmtwatch/commands/record_options.h"
#include "cmtwatch/recording/recorder.h"
#include "cmtwatch/recording/recording.h"
#include "cmtwatch/recording/writer.h"
#include "cmtwatch/report/record_plot.h"
#include "cmtwatch/report/record_view.h"
#include "cmtwatch/sample/check_process.h"
#include "cmtwatch/sample/pause.h"
#include "cmtwatch/sample/roster.h"
#include "cmtwatch/sample/sample_clock.h"
#include "toolkit/command/interrupts.h"
#include "toolkit/command/launch.h"
#include "toolkit/picture/picture_file.h"
#include "toolkit/process/system.h"

namespace cmt::watch {
namespace {

Roster::Whom whom_of(const RecordOptions& options) {
  if (options.all) return Roster::Whom::all;
  return options.recursive ? Roster::Whom::descendants : Roster::Whom::named;
}

/// Opened before anything is recorded.
std::optional<output::PictureFile> picture_file(const std::string& path) {
  if (path.empty()) return std::nullopt;
  return std::optional<output::PictureFile>(std::in_place, path);
}

/// A recording while it is made.
class Recording {
 public:
  explicit Recording(const RecordOptions& options)
      : options_(options),
        picture_(picture_file(options.plot)),
        database_(options.path, Database::Mode::write),
        writer_(prepared()),
        recorder_(writer_, options.measures, options.root,
                  options.all ? Recorder::OnReuse::go_on : Recorder::OnReuse::end),
        roster_(whom_of(options), options.root),
        view_(options.command.empty() ? output::Beside::nobody : output::Beside::command) {
    const std::int64_t wall = clock_ns(CLOCK_REALTIME);
    const bool goes_on = writer_.tick() != 0;
    if (goes_on) {
      // The monotonic clock may have begun anew since then; the wall clock tells how long the pause was.
      const std::int64_t pause = wall - database_.number("select wall_ns from tick order by id desc limit 1");
      offset_ns_ =
          database_.number("select end_ns from tick order by id desc limit 1") + std::max<std::int64_t>(pause, 0);
    }
    describe(wall);
  }

  Roster& roster() { return roster_; }

  /// These are recorded in a pause or not at all.
  void must_pause(int pid) { must_pause_.insert(pid); }

  /// One moment. False where nobody is left. Throws PauseRefused.
  bool moment() {
    const std::int64_t cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    const std::int64_t begin_ns = now();
    writer_.begin_tick(begin_ns, clock_ns(CLOCK_REALTIME));
    const std::size_t recorded = options_.pause ? record_paused() : record_all();
    recorder_.forget_ended();
    recorder_.record_system();
    const std::int64_t cost_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    writer_.end_tick(now(), cost_ns);
    cost_ns_ += cost_ns;
    const Summed sum = recorder_.take_sum();
    if (recorded != 0) view_.show(writer_.tick(), begin_ns, recorded, sum);
    if (counters_missing_told_.empty()) tell_missing_counters();
    forget();
    return recorded != 0;
  }

  void resized() { view_.resized(); }
  void clear() { view_.clear(); }

  void close() {
    const std::int64_t elapsed_ns = now_ns() - begin_ns_;
    view_.end(elapsed_ns == 0 ? 0 : static_cast<double>(cost_ns_) / static_cast<double>(elapsed_ns));
    tell_missing_counters();
    if (picture_) draw();
    if (pauses_.count != 0) note_pauses();
    close_recording(database_);
  }

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
    set.bind("page_bytes").bind(static_cast<std::int64_t>(process::page_bytes())).run();
    set.bind("clock_ticks_per_second").bind(static_cast<std::int64_t>(sysconf(_SC_CLK_TCK))).run();
    set.bind("measure").bind(names_of(options_.measures)).run();
  }

  /// Of all runs that made the recording.
  void note_pauses() {
    tell(pauses_.text());
    const std::string row = "insert into about values (?, ?) on conflict (key) do update set value = ";
    Statement add(database_, row + "value + excluded.value");
    add.bind("pauses").bind(pauses_.count).run();
    add.bind("paused_ns").bind(pauses_.total_ns).run();
    Statement raise(database_, row + "max(value, excluded.value)");
    raise.bind("paused_ns_max").bind(pauses_.max_ns).run();
  }

  /// How many were recorded.
  std::size_t record_all() {
    std::size_t recorded = 0;
    for (const int pid : roster_.read()) recorded += record(pid);
    return recorded;
  }

  std::size_t record_paused() {
    std::size_t recorded = 0;
    pauses_.add(while_paused([&](Pause& pause) {
      pause.stop_all([this] { return roster_.read(); }, must_pause_);
      recorded = record_all();
    }));
    return recorded;
  }

  /// False where there is no sample of it. Of those that are named it is said, once, what may not be read.
  bool record(int pid) {
    const Recorder::Outcome outcome = recorder_.record(pid);
    if (outcome == Recorder::Outcome::gone) roster_.remove(pid);
    const bool named = std::find(options_.pids.begin(), options_.pids.end(), pid) != options_.pids.end();
    if (outcome == Recorder::Outcome::partly && named && partly_.insert(pid).second)
      tell("the mappings of process " + std::to_string(pid) + " may not be read: what else there is of it is recorded");
    return outcome == Recorder::Outcome::partly || outcome == Recorder::Outcome::wholly;
  }

  /// When some first are, and at the end where it has become another figure.
  void tell_missing_counters() {
    const CountersMissing& missing = recorder_.counters_missing();
    if (missing.processes == 0 || missing.text() == counters_missing_told_) return;
    counters_missing_told_ = missing.text();
    tell((missing.processes == missing.asked ? "no hardware counters here: " : "no hardware counters of ") +
         missing.text());
    Statement set(database_, "insert or replace into about values ('counters_missing', ?)");
    set.bind(missing.text()).run();
  }

  void draw() {
    const KindSeries series = read_kinds(database_);
    picture_->write(picture_of(series, options_.path), to_json(series, options_.path));
    if (const auto remark = picture_->remark(); !remark.empty()) tell(std::string(remark));
  }

  void tell(const std::string& what) {
    view_.clear();
    std::fprintf(stderr, "cmtwatch record: %s\n", what.c_str());
  }

  /// Now and then, since it costs as much as some moments.
  void forget() {
    constexpr std::int64_t moments_between = 64;
    if (!options_.keep_ns || writer_.tick() % moments_between != 0) return;
    const std::int64_t first_kept =
        database_.number("select coalesce(min(id), (select max(id) from tick)) from tick where end_ns >= " +
                         std::to_string(now() - *options_.keep_ns));
    if (first_kept > 1) writer_.forget_before(first_kept);
  }

  const RecordOptions& options_;
  std::int64_t begin_ns_ = now_ns();
  std::int64_t offset_ns_ = 0;
  std::optional<output::PictureFile> picture_;
  Database database_;
  RecordingWriter writer_;
  Recorder recorder_;
  Roster roster_;
  std::set<int> partly_;
  std::set<int> must_pause_;
  PauseCost pauses_;
  std::string counters_missing_told_;
  std::int64_t cost_ns_ = 0;
  RecordView view_;
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

/// What befalls a recording never ends its command: it is told, and the command goes on. False where something did.
template <class Action>
bool succeeds(Action action) {
  try {
    action();
    return true;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cmtwatch record: %s\n", error.what());
    return false;
  }
}

int record_command(const RecordOptions& options) {
  std::optional<Recording> recording(std::in_place, options);
  if (options.recursive) prctl(PR_SET_CHILD_SUBREAPER, 1);
  try {
    command::Launched launched(
        {.words = options.command, .output = {}, .error = {}, .environment = {}, .before_stop = [&] {
           recording->clear();
         }});
    options.recursive ? recording->roster().add_children_of(getpid()) : recording->roster().add(launched.pid());
    recording->must_pause(launched.pid());
    std::optional<command::Ended> ended;
    const Listener listener{launched.fd(), [&] {
                              const command::Happening happening = launched.handle();
                              if (happening.signal == SIGWINCH) recording->resized();
                              ended = happening.ended;
                              return !ended;
                            }};
    const bool recorded = succeeds([&] { record_until(*recording, options.pace, listener); });
    recording->clear();
    if (!ended) ended = launched.wait();
    const bool closed = recorded && succeeds([&] { recording->close(); });
    recording.reset();
    if (!closed && ended->signal == 0 && ended->status == 0) return command::status_failed;
    command::end_alike(*ended);
  } catch (const command::LaunchError& error) {
    std::fprintf(stderr, "cmtwatch record: %s\n", error.what());
    return error.status;
  }
}

int record_processes(const RecordOptions& options) {
  for (const int pid : options.pids) {
    check_process(pid, options.root);
    if (options.pause) check_pausable(pid, options.root);
  }
  Recording recording(options);
  for (const int pid : options.pids) {
    recording.roster().add(pid);
    recording.must_pause(pid);
  }
  command::Interrupts interrupts(command::Interrupts::Holds::resizes);
  record_until(recording, options.pace, {interrupts.fd(), [&] {
                                           if (interrupts.take() != SIGWINCH) return false;
                                           recording.resized();
                                           return true;
                                         }});
  recording.close();
  return 0;
}

}  // namespace

int record(const command::CommandLine& line) { return record_processes(parse_record(line, false)); }
int record_launched(const command::CommandLine& line) { return record_command(parse_record(line, true)); }

}  // namespace cmt::watch
