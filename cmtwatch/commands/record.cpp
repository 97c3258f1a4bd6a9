// cmtwatch record: writes moments into a recording until the processes end, a limit of the options is reached, or a
// signal comes.

#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "cmtwatch/commands/subcommands.h"
#include "cmtwatch/recording/memory_kinds.h"
#include "cmtwatch/recording/moment.h"
#include "cmtwatch/recording/recorder.h"
#include "cmtwatch/recording/recording.h"
#include "cmtwatch/report/recording_report.h"
#include "cmtwatch/sample/attached_tracer.h"
#include "cmtwatch/sample/pause.h"
#include "cmtwatch/sample/process_set.h"
#include "cmtwatch/sample/sampling.h"
#include "toolkit/launch/tracer.h"
#include "toolkit/output/numbers.h"
#include "toolkit/process/proc_file.h"
#include "toolkit/process/proc_mount.h"
#include "toolkit/process/system.h"

namespace cmt::watch {
namespace {

struct RecordOptions {
  std::string path;
  Pace pace;
  bool all = false;        ///< every process that there is
  bool recursive = false;  ///< descendants too
  bool pause = false;      ///< processes are stopped while they are recorded
  std::vector<int> pids{};
  std::vector<std::string> command{};
  std::optional<std::int64_t> keep_ns{};  ///< older moments are forgotten
  Measures measures{};
  std::string plot{};  ///< a picture's file; empty: none
  process::GroupFolders folders{};
  std::int64_t smaps_every = 1;              ///< Recorder
  std::optional<std::int64_t> explain_ns{};  ///< between looks at the parts of memory
  TraceOptions trace{};                      ///< of the one process
};

Measures measures_of(const command::CommandLine& line) {
  const std::string names = line.value("measure", "");
  const auto measures = parse_measures(names);
  if (!measures) command::refuse_value("measure", measure_names, names);
  return *measures;
}

std::int64_t parse_explain_interval(const command::CommandLine& line, const std::string& root) {
  constexpr std::int64_t default_ns = 10'000'000'000;
  if (root != "/proc") throw command::UsageError("--explain reads processes of this /proc, not of " + root);
  return line.value("explain", "").empty() ? default_ns : parse_time(line, "explain");
}

/// The two meanings of the operands of `record`.
enum class Operands { pids, command };

RecordOptions parse_record(const command::CommandLine& line, Operands operands) {
  RecordOptions options;
  options.path = line.value("output", "");
  if (options.path.empty()) throw command::UsageError("-o FILE is missing");
  options.pace = parse_pace(line, 1'000'000'000);
  line.refuse_together("all", {"pause"});
  options.all = line.has("all");
  options.pause = line.has("pause");
  options.recursive = line.has("recursive");
  if (line.has("keep")) options.keep_ns = parse_time(line, "keep");
  options.smaps_every = static_cast<std::int64_t>(line.number("smaps-every", options.all ? 10 : 1, 1, 1'000'000));
  if (line.has("measure")) options.measures = measures_of(line);
  options.plot = parse_plot(line);
  options.folders = parse_folders(line);
  if (line.has("explain")) options.explain_ns = parse_explain_interval(line, options.folders.proc);
  if (operands == Operands::command) {
    options.command = line.files();
  } else {
    for (const std::string& word : line.files()) options.pids.push_back(parse_pid(word));
  }
  if (options.all != line.files().empty()) throw command::UsageError("expected PIDs, or --all, or -- and a command");
  options.trace = parse_trace(line);
  if (!options.trace.wanted()) return options;
  if (options.pids.size() != 1) throw command::UsageError("--trace goes with one PID");
  refuse_other_root(options.folders.proc);
  return options;
}

ProcessSet::Includes includes(const RecordOptions& options) {
  if (options.all) return ProcessSet::Includes::all;
  return options.recursive ? ProcessSet::Includes::descendants : ProcessSet::Includes::named;
}

/// Returns a descriptor that keeps other recorders away. SQLite has locks of its own, so readers do not see this one.
/// Throws std::runtime_error if another recorder has the file.
process::Fd lock_recording(const std::string& path) {
  process::Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() >= 0 && flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw std::runtime_error(path + ": another cmtwatch record is writing it");
  return file;
}

/// A recording while it is made.
class RecordingSession {
 public:
  explicit RecordingSession(const RecordOptions& options)
      : options_(options),
        picture_(options.plot.empty() ? nullptr : std::make_unique<picture::PictureFile>(options.plot)),
        database_(options.path, database::Database::Mode::write),
        writer_(prepared()),
        recorder_(writer_, options.measures, options.folders,
                  options.all ? Recorder::OnReuse::record : Recorder::OnReuse::leave_out, options.smaps_every),
        processes_(includes(options), options.folders.proc),
        view_(options.command.empty() ? terminal::Beside::nobody : terminal::Beside::command) {
    const std::int64_t wall = process::clock_ns(CLOCK_REALTIME);
    const bool continues = writer_.tick() != 0;
    if (continues) {
      // The machine may have restarted since then, so the length of the gap is by the wall clock.
      const std::int64_t pause = wall - database_.number("select wall_ns from tick order by id desc limit 1");
      offset_ns_ =
          database_.number("select end_ns from tick order by id desc limit 1") + std::max<std::int64_t>(pause, 0);
    }
    write_about(wall);
  }

  ProcessSet& processes() { return processes_; }

  /// With --pause, the process that must be paused to be recorded.
  void must_pause(int pid) { must_pause_.insert(pid); }

  /// Records one moment. Returns false if no process is left. Throws PauseRefused.
  bool record_moment() {
    const std::int64_t cpu = process::clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    const std::int64_t begin_ns = now();
    looks_ = is_look_due(begin_ns);
    writer_.begin_tick(begin_ns, process::clock_ns(CLOCK_REALTIME));
    moment_ns_ = begin_ns;
    const std::size_t recorded = options_.pause ? record_paused() : record_all();
    recorder_.forget_ended();
    recorder_.record_system();
    recorder_.record_groups();
    writer_.end_tick(now(), process::clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    const MemorySum sum = recorder_.take_sum();
    if (recorded != 0) view_.show(writer_.tick(), begin_ns, recorded, sum);
    if (counters_missing_.said.empty()) report_missing_counters();
    if (parts_missing_.said.empty()) report_missing_parts();
    forget();
    return recorded != 0;
  }

  LiveColumns& columns() { return view_.columns(); }

  void say(const std::string& what) {
    view_.columns().clear();
    command::complain("cmtwatch record", what);
  }

  void close(const SamplingCost& cost) {
    if (!view_.end(cost) && cost.skipped != 0) report_skipped(cost);
    const auto missed = missed_peaks(database_, std::nullopt);
    if (!missed.empty())
      say(missed[0].text() + (missed.size() == 1 ? "" : ", and so had " + std::to_string(missed.size() - 1) + " more"));
    report_missing_counters();
    report_missing_parts();
    report_kept();
    report_group();
    if (picture_) draw_picture();
    add_to_about("moments_missed", cost.missed);
    add_to_about("moments_skipped_for_cost", cost.skipped);
    if (pauses_.count != 0) write_pauses();
    close_recording(database_);
  }

 private:
  database::Database& prepared() {
    lock_ = lock_recording(options_.path);
    prepare_recording(database_, options_.path);
    return database_;
  }

  std::int64_t now() const { return offset_ns_ + process::now_ns() - begin_ns_; }

  void write_about(std::int64_t wall) {
    database::Statement set(database_, "insert or ignore into about values (?, ?)");
    set.bind("recorder").bind("cmtwatch " CMT_VERSION).run();
    set.bind("start_wall_ns").bind(wall).run();
    set.bind("start_monotonic_ns").bind(begin_ns_).run();
    set.bind("interval_ns").bind(options_.pace.interval_ns).run();
    set.bind("page_bytes").bind(static_cast<std::int64_t>(process::page_bytes())).run();
    set.bind("clock_ticks_per_second").bind(static_cast<std::int64_t>(sysconf(_SC_CLK_TCK))).run();
    set.bind("measure").bind(names_of(options_.measures)).run();
    set.bind("smaps_every").bind(options_.smaps_every).run();
    if (options_.explain_ns) set.bind("explain_interval_ns").bind(*options_.explain_ns).run();
  }

  /// Adds this run's figures to those of earlier runs of the same recording.
  template <class Number>
  void add_to_about(const char* key, Number number, const std::string& sum = "value + excluded.value") {
    database::Statement add(database_,
                            "insert into about values (?, ?) on conflict (key) do update set value = " + sum);
    add.bind(key).bind(number).run();
  }

  void write_pauses() {
    say(pauses_.text());
    add_to_about("pauses", pauses_.count);
    add_to_about("paused_ns", pauses_.total_ns);
    add_to_about("paused_ns_max", pauses_.max_ns, "max(value, excluded.value)");
  }

  /// Reports skipped moments: otherwise the recording would seem to have this pace by request.
  void report_skipped(const SamplingCost& cost) {
    const double percent = options_.pace.cost_share_max * 100;
    say(output::with_commas(cost.skipped) + " of " + output::with_commas(cost.samples + cost.skipped + cost.missed) +
        " moments left out: recording takes more than " + output::fixed(percent, percent < 1 ? 2 : 0) +
        " % of a processor (--max-cost)");
  }

  /// Returns how many were recorded.
  std::size_t record_all() {
    std::size_t recorded = 0;
    for (const int pid : processes_.refresh_pids()) recorded += record(pid);
    return recorded;
  }

  std::size_t record_paused() {
    std::size_t recorded = 0;
    pauses_.add(while_paused(interrupted_calls_, [&](Pause& pause) {
      pause.stop_all([this] { return processes_.refresh_pids(); }, must_pause_);
      recorded = record_all();
    }));
    return recorded;
  }

  /// Returns false if the process has no sample. Reports once for each named process that its mappings may not be read.
  bool record(int pid) {
    const Recorder::Outcome outcome = recorder_.record_process(pid, moment_ns_);
    if (outcome == Recorder::Outcome::gone) processes_.remove(pid);
    const bool named = std::find(options_.pids.begin(), options_.pids.end(), pid) != options_.pids.end();
    if (outcome == Recorder::Outcome::partly && named && partly_.insert(pid).second)
      say("the mappings of process " + std::to_string(pid) + " may not be read: its other figures are recorded");
    const bool is_recorded = outcome == Recorder::Outcome::partly || outcome == Recorder::Outcome::wholly;
    if (looks_ && is_recorded) recorder_.record_parts(pid, options_.pause);
    return is_recorded;
  }

  /// Whether it is time for a look at the parts of memory: at the moment that is next to the requested time.
  bool is_look_due(std::int64_t begin_ns) {
    if (!options_.explain_ns || begin_ns < next_look_ns_) return false;
    next_look_ns_ = begin_ns + *options_.explain_ns - options_.pace.interval_ns / 2;
    return true;
  }

  /// A key of the table about, and what was reported last.
  struct Reported {
    const char* key;
    std::string said{};
  };

  /// Reports missing figures at their first occurrence, and at the end if the number has changed. `all` and `some`
  /// begin the message for all processes and for some.
  void report(const FiguresMissing& missing, Reported& reported, const char* all, const char* some) {
    if (missing.processes == 0 || missing.text() == reported.said) return;
    reported.said = missing.text();
    say((missing.processes == missing.asked ? all : some) + missing.text());
    database::Statement set(database_, "insert or replace into about values (?, ?)");
    set.bind(reported.key).bind(missing.text()).run();
  }

  void report_kept() {
    const std::uint64_t kept = recorder_.readings_kept();
    add_to_about("readings_kept", kept);
    if (kept == 0) return;
    say("mappings were not read again " + output::with_commas(kept) + " of " +
        output::counted(recorder_.readings(), "time") +
        ": no page faults of the process since (--smaps-every=1 reads all)");
  }

  void report_missing_counters() {
    report(recorder_.counters_missing(), counters_missing_, "no hardware counters here: ", "no hardware counters of ");
  }

  void report_missing_parts() {
    report(recorder_.parts_missing(), parts_missing_, "no parts of memory: ", "no parts of memory of ");
    report(recorder_.parts_doubtful(), parts_doubtful_,
           "parts of memory are in doubt: ", "parts of memory are in doubt, of ");
  }

  /// The control group that had most beyond its recorded processes, at its largest moment.
  void report_group() {
    database::Statement select(database_, "select begin_ns, " + group_columns() +
                                              " from group_sample join control_group on control_group.id = group_id "
                                              "join tick on tick.id = tick_id order by current_bytes - "
                                              "measured_bytes desc limit 1");
    while (select.step())
      say(group_text(read_group_row(select, 1), "memory",
                     [](std::uint64_t bytes) { return output::bytes_text(bytes); }) +
          "; at " + output::seconds_text(select.time_ns(0)));
  }

  void draw_picture() {
    const KindSeries series = read_kinds(database_);
    write_picture(*picture_, recording_picture(series, options_.path), recording_json(series, options_.path),
                  "cmtwatch record");
  }

  /// Called at each moment, but deletes only now and then, because a deletion costs as much as some moments.
  void forget() {
    constexpr std::int64_t moments_between = 64;
    if (!options_.keep_ns || writer_.tick() % moments_between != 0) return;
    const std::int64_t first_kept =
        database_.number("select coalesce(min(id), (select max(id) from tick)) from tick where end_ns >= " +
                         std::to_string(now() - *options_.keep_ns));
    if (first_kept > 1) writer_.forget_before(first_kept);
  }

  const RecordOptions& options_;
  std::int64_t begin_ns_ = process::now_ns();
  std::int64_t offset_ns_ = 0;
  std::unique_ptr<picture::PictureFile> picture_;  ///< opened first, so that an error comes early
  process::Fd lock_;  ///< closed after the database: closing it ends the process's locks of SQLite
  database::Database database_;
  RecordingWriter writer_;
  Recorder recorder_;
  ProcessSet processes_;
  std::set<int> partly_;
  std::set<int> must_pause_;
  PauseCost pauses_;
  process::InterruptedCalls interrupted_calls_;
  Reported counters_missing_{"counters_missing"}, parts_missing_{"parts_missing"}, parts_doubtful_{"parts_doubtful"};
  bool looks_ = false;  ///< at this moment
  std::int64_t next_look_ns_ = 0;
  std::int64_t moment_ns_ = 0;  ///< when this moment began
  RecordView view_;
};

SamplingCost record_until_end(RecordingSession& session, const Pace& pace, const Listener& listener) {
  SamplingLoop loop(pace);
  loop.run(SamplingLoop::First::at_once, {&listener, 1}, [&session] {
    return session.record_moment() ? SamplingLoop::Taken::sample : SamplingLoop::Taken::nobody_left;
  });
  return loop.cost();
}

int record_command(const command::CommandLine& line) {
  const RecordOptions options = parse_record(line, Operands::command);
  process::need_proc(options.folders.proc);
  std::optional<RecordingSession> session(std::in_place, options);
  if (options.recursive) prctl(PR_SET_CHILD_SUBREAPER, 1);
  try {
    launch::Launch launch{.words = options.command, .output = {}, .error = {}, .environment = {}, .before_stop = [&] {
                            session->columns().clear();
                          }};
    // A moment is recorded at its end, but a process that is traced cannot be paused.
    if (!options.pause && !launch::changes_rights(options.command[0])) launch.at_end = [] {};
    launch::RunningCommand launched(launch);
    options.recursive ? session->processes().add_children_of(getpid()) : session->processes().add(launched.pid());
    session->must_pause(launched.pid());
    std::optional<launch::Ended> ended;
    const Listener listener = listen_to(launched, ended, [&] { session->columns().resized(); });
    Guard guard("cmtwatch record", [&] { session->columns().clear(); });
    SamplingCost cost;
    guard.run([&] { cost = record_until_end(*session, options.pace, listener); });
    session->columns().clear();
    if (!ended) ended = launched.wait();
    guard.run([&] { session->close(cost); });
    session.reset();
    if (guard.failed() && ended->signal == 0 && ended->status == 0) return command::status_failed;
    launch::exit_like(*ended);
  } catch (const launch::LaunchError& error) {
    command::complain("cmtwatch record", error.what());
    return error.status;
  }
}

int record_processes(const command::CommandLine& line) {
  const RecordOptions options = parse_record(line, Operands::pids);
  process::need_proc(options.folders.proc);
  for (const int pid : options.pids) check_measurable(pid, options.folders.proc, options.pause);
  RecordingSession session(options);
  for (const int pid : options.pids) {
    session.processes().add(pid);
    session.must_pause(pid);
  }
  command::Interrupts interrupts(command::Interrupts::Holds::resizes);
  std::optional<AttachedTracer> tracer;
  const auto say = [&](const std::string& text) { session.say(text); };
  if (options.trace.wanted()) tracer.emplace(options.pids[0], options.trace, say);
  const SamplingCost cost =
      record_until_end(session, options.pace, listen_to(interrupts, [&] { session.columns().resized(); }));
  session.close(cost);
  if (!tracer) return 0;
  for (const std::string& text : tracer->end(interrupts)) say(text);
  return 0;
}

}  // namespace

Subcommand record_subcommand() {
  return {.name = "record",
          .summary = "record processes, mapping by mapping, in an SQLite file",
          .help = R"(Usage: cmtwatch record [OPTION]... -o FILE PID...
       cmtwatch record [OPTION]... -o FILE --all
       cmtwatch record [OPTION]... -o FILE -- COMMAND [ARGUMENT]...

Records the memory of processes, mapping by mapping, in an SQLite file, until
they end or Ctrl-C. An existing recording is continued, unless another cmtwatch
record is writing it.

  -o, --output=FILE  the recording
  --all              record every process that may be read
  -r, --recursive    record the descendants too, as they start
  --interval=TIME    record a moment every TIME. Default: 1s
  -f, --frequency=HZ record HZ moments per second
  --count=N          stop after N moments
  --duration=TIME    stop after TIME
  --max-cost=PERCENT record less often if it would take more than this share of
                     a processor. Default: 10
  --keep=TIME        delete moments that are older than TIME
  --measure=WHAT,... record only these, beside statm and processor times:
                     mappings, stacks (of threads, found by their stack
                     pointers), totals (the sums of the mappings, several times
                     cheaper), io, oom, system, disks, groups (control groups),
                     counters (of the processor); or all. Default: all but
                     totals and counters
  --smaps-every=N    of a process without page faults, and with the same statm
                     and threads, read the mappings only every N moments. Shared
                     and dirty memory may then be out of date. Default: 10 with
                     --all, else 1: always
  --explain[=TIME]   every TIME also record the parts of resident memory, as
                     cmtwatch explain prints them: live, free, pinned.
                     Default: 10s
  --pause            stop all threads while a moment is recorded; not with --all
  --plot=FILE        at the end, draw the recording over time: memory by kind,
                     by process and by mapping; FILE ends in .svg, .html, .png
                     or .pdf
  --trace[=FILE.cmt] attach to the one PID and also record its calls of malloc,
                     with -r those of its later children too. Default:
                     %n.%p.cmt
  --sample-bytes=SIZE
                     with --trace: record one block per SIZE bytes, as cmttrace
                     does
  --root=DIR         read DIR instead of /proc. Default: $PROCFS, else /proc
  --groups=DIR       read control groups from DIR, such as another machine's
                     /sys/fs/cgroup. Default: where they are mounted
)",
          .run = record_processes,
          .launch = record_command,
          .exit_status =
              "0 done, 1 could not, 2 wrong use; with a command its status, and\n"
              "125 to 127 as cmtwatch run has them."};
}

}  // namespace cmt::watch
