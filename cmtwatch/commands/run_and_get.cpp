// cmtwatch run and get: measures the memory of a command or a process, once or repeatedly. A command goes on if the
// report fails, and cmtwatch ends with the command's status.

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cmtwatch/commands/subcommands.h"
#include "cmtwatch/report/watch_report.h"
#include "cmtwatch/sample/attached_tracer.h"
#include "cmtwatch/sample/watch.h"
#include "toolkit/command/interrupts.h"
#include "toolkit/launch/launch.h"
#include "toolkit/launch/tracer.h"
#include "toolkit/process/proc_mount.h"
#include "toolkit/process/stat.h"
#include "toolkit/process/system.h"

namespace cmt::watch {
namespace {

constexpr char pace_help[] =
    R"(  -f, --frequency=HZ take HZ samples per second
  --count=N          stop measuring after N samples
  --duration=TIME    stop measuring after TIME
  --max-cost=PERCENT measure less often if it would take more than this share of
                     a processor. Default: 10
  --pause            stop all threads while a sample is taken
)";

constexpr char form_help[] =
    R"(  --bytes            print numbers in bytes
  --json             print all samples and the peak as JSON
  --csv              print every sample as comma-separated values
  --plot=FILE        draw the memory over time, with -v a band for each process;
                     FILE ends in .svg, .html, .png or .pdf
)";

WatchOptions::Peak parse_peak_choice(const command::CommandLine& line) {
  line.refuse_together("no-peak", {"peak", "only-peak"});
  line.refuse_together("only-peak", {"peak", "watch", "csv", "json"});
  if (line.has("no-peak")) return WatchOptions::Peak::without;
  return line.has("only-peak") ? WatchOptions::Peak::only : WatchOptions::Peak::beside;
}

/// Parses the options that both share. `interval_ns` is the default.
WatchOptions parse_watch(const command::CommandLine& line, std::int64_t interval_ns) {
  WatchOptions options;
  parse_sampling(line, interval_ns, options);
  options.metric = line.parsed("metric", "pss", metric_names, metric_named);
  options.peak = parse_peak_choice(line);
  options.each = line.has("watch") || options.form != WatchOptions::Form::text;
  options.recursive = line.has("recursive");
  return options;
}

ProcessSet watched_set(const WatchOptions& options, int pid) {
  ProcessSet set(options.recursive ? ProcessSet::Includes::descendants : ProcessSet::Includes::named,
                 options.folders.proc);
  set.add(pid);
  return set;
}

/// A traced process cannot be paused. A set-user-ID program that is traced would not get its rights.
bool may_be_traced(const WatchOptions& options) {
  return !options.pause && options.peak != WatchOptions::Peak::without && !launch::changes_rights(options.command[0]);
}

void say_run(const std::string& text) { command::complain("cmtwatch run", text); }

void say_get(const std::string& text) { command::complain("cmtwatch get", text); }

/// Passes samples to a report. Live bytes are known only at the end, so reports with them wait; lines for people do
/// not.
class SampleRelay {
 public:
  using Show = std::function<void(const Sample&)>;

  SampleRelay(WatchReport& report, bool is_traced, Show show)
      : report_(report), is_traced_(is_traced), show_(std::move(show)) {}

  void add(const Sample& sample) {
    if (is_traced_) samples_.push_back(sample);
    if (!is_traced_ || report_.is_text()) show_(sample);
    if (!is_traced_) report_.keep(sample);
  }

  /// Adds live bytes to the samples that have waited, and passes them on. Times of samples begin at `begin_ns`.
  void add_live_bytes(WatchResult& result, WatchedTraces& traces, std::int64_t begin_ns,
                      const WatchedTraces::Complain& complain) {
    result.traced = traces.add_live_bytes(samples_, begin_ns, complain);
    for (const Sample& sample : samples_) {
      if (result.peak && result.peak->begin_ns == sample.begin_ns) result.peak = sample;
      if (!report_.is_text()) show_(sample);
      report_.keep(sample);
    }
  }

 private:
  WatchReport& report_;
  bool is_traced_;
  Show show_;
  std::vector<Sample> samples_;
};

/// A command while it is watched, from its start to its end.
class WatchedCommand {
 public:
  WatchedCommand(const WatchOptions& options, WatchReport& report, Guard& guard)
      : options_(options),
        report_(report),
        guard_(guard),
        relay_(report, options.trace.wanted(), [this](const Sample& sample) { show(sample); }) {
    if (!options.trace.wanted()) return;
    tracer_.emplace(options.trace);
    if (const std::string why = launch::why_not_recordable(options.command[0]); !why.empty()) say_run(why);
  }

  bool is_recorded() const { return tracer_ && !launch::is_broken_by_tracer(options_.command[0]); }

  /// Whether --trace has missed anything.
  bool trace_has_failed() const { return trace_has_failed_; }

  /// How it ended.
  launch::Ended watch_to_end() {
    launch::Launch launch{.words = options_.command,
                          .output = options_.command_output,
                          .error = options_.command_error,
                          .environment = is_recorded() ? tracer_->environment() : Environment(),
                          .before_stop = [this] { report_.columns().clear(); }};
    if (may_be_traced(options_))
      launch.at_end = [this] {
        read_mark();
        mark_.at_end = true;
      };
    launch::RunningCommand launched(launch);
    begin_ns_ = process::now_ns();
    pid_ = launched.pid();
    ProcessSet set = watched_set(options_, launched.pid());
    if (options_.recursive) set.add_children_of(getpid());  // we adopt orphans
    ProcessSampler sampler(launched.pid(), std::move(set), options_.metric, options_.folders, options_.pause);
    if (tracer_) sampler.leave_out_collectors();
    std::optional<launch::Ended> ended;
    const Listener listener =
        listen_to(launched, ended, [this] { guard_.run([this] { report_.columns().resized(); }); });
    WatchResult result = watch(sampler, options_.pace, begin_ns_, options_.verbose || tracer_, listener,
                               [this](const Sample& sample) { add_sample(sample); });
    report_.columns().clear();
    if (!ended) ended = launched.wait();
    if (tracer_) {
      relay_.add_live_bytes(result, *tracer_, begin_ns_, say_run);
      trace_has_failed_ = result.traced->has_failed;
    }
    result.mark = mark_;
    guard_.run([&] {
      if (result.samples != 0 || result.refusal.empty()) report_.end(result, ended);
      if (!result.refusal.empty()) throw std::runtime_error(result.refusal);
    });
    return *ended;
  }

 private:
  using Environment = std::vector<std::pair<std::string, std::string>>;

  void add_sample(const Sample& sample) {
    if (sample.bytes > most_bytes_) read_mark();  // it may be killed, and then there is no other moment
    most_bytes_ = std::max(most_bytes_, sample.bytes);
    relay_.add(sample);
  }

  void read_mark() {
    try {
      const process::Status status = process::read_status(pid_);
      mark_.bytes = std::max(mark_.bytes, status.resident_bytes_peak);
      mark_.seen_bytes = std::max(mark_.seen_bytes, status.resident_bytes);
    } catch (const std::system_error&) {  // it has ended
    }
  }

  void show(const Sample& sample) {
    guard_.run([&] { report_.show(sample); });
  }

  const WatchOptions& options_;
  WatchReport& report_;
  Guard& guard_;
  SampleRelay relay_;
  std::optional<CommandTracer> tracer_;
  bool trace_has_failed_ = false;
  std::int64_t begin_ns_ = 0;
  int pid_ = 0;
  std::uint64_t most_bytes_ = 0;
  KernelMark mark_;
};

/// --trace, which needs a metric of resident memory.
TraceOptions parse_trace_beside(const command::CommandLine& line, Metric metric) {
  if (line.has("trace") && (metric == Metric::swap || metric == Metric::vm))
    throw command::UsageError("--trace needs resident memory to compare with: --metric=pss, rss, uss or anon");
  return parse_trace(line);
}

WatchOptions parse_run(const command::CommandLine& line) {
  WatchOptions options = parse_watch(line, 100'000'000);
  if (line.files().empty()) throw command::UsageError("a command to run is missing");
  options.command = line.files();
  options.folders.groups = line.value("groups", "");
  options.trace = parse_trace_beside(line, options.metric);
  options.command_output = line.value("stdout", "");
  options.command_error = line.value("stderr", "");
  return options;
}

int run(const command::CommandLine& line) {
  const WatchOptions options = parse_run(line);
  process::need_proc();
  Destination destination(options.output, STDERR_FILENO);
  WatchReport report(options, destination);
  Guard guard("cmtwatch run", [&] { report.columns().clear(); });
  if (options.recursive) prctl(PR_SET_CHILD_SUBREAPER, 1);
  try {
    bool failed = false;
    launch::Ended ended;
    {
      WatchedCommand command(options, report, guard);
      ended = command.watch_to_end();
      failed = guard.failed() || command.trace_has_failed();
    }
    if (failed && ended.signal == 0 && ended.status == 0) return command::status_failed;
    launch::exit_like(ended);
  } catch (const launch::LaunchError& error) {
    say_run(error.what());
    return error.status;
  }
}

void check_readable(const WatchResult& result, const WatchOptions& options) {
  if (result.peak) return;
  if (!result.refusal.empty()) throw std::runtime_error(result.refusal);
  const std::string pid = std::to_string(options.pid);
  if (result.samples == 0) throw std::runtime_error("process " + pid + " ended before it could be measured");
  const char* const hint = walks_page_tables(options.metric) ? "; --metric=rss needs no permission" : "";
  throw std::runtime_error("process " + pid + " may not be read" + hint);
}

WatchOptions parse_get(const command::CommandLine& line) {
  WatchOptions options = parse_watch(line, 1'000'000'000);
  options.pid = parse_only_pid(line);
  options.folders = parse_folders(line);
  options.trace = parse_trace_beside(line, options.metric);
  if (options.trace.wanted()) refuse_other_root(options.folders.proc);
  const bool again = line.has("watch") || line.has("count") || line.has("duration") || line.has("only-peak") ||
                     line.has("plot") || line.has("trace");
  if (!again) options.pace.count = 1;
  if (!again && !line.has("peak")) options.peak = WatchOptions::Peak::without;
  options.each = options.peak != WatchOptions::Peak::only;
  return options;
}

/// Drops the last line of cmttrace, which sums up the recording, because the report does so too.
void end_trace(AttachedTracer& tracer, command::Interrupts& interrupts) {
  std::vector<std::string> said = tracer.end(interrupts);
  if (!said.empty()) said.pop_back();
  for (const std::string& text : said) say_get(text);
}

int get(const command::CommandLine& line) {
  const WatchOptions options = parse_get(line);
  check_measurable(options.pid, options.folders.proc, options.pause);
  Destination destination(options.output, STDOUT_FILENO);
  WatchReport report(options, destination);
  ProcessSampler sampler(options.pid, watched_set(options, options.pid), options.metric, options.folders,
                         options.pause);
  command::Interrupts interrupts(command::Interrupts::Holds::resizes);
  std::optional<AttachedTracer> tracer;
  if (options.trace.wanted()) {
    tracer.emplace(options.pid, options.trace, say_get);
    sampler.leave_out_collectors();
  }
  SampleRelay relay(report, tracer.has_value(), [&](const Sample& sample) {
    if (sample.processes != 0 || options.pace.count != 1) report.show(sample);
  });
  const std::int64_t begin_ns = process::now_ns();
  const Listener listener = listen_to(interrupts, [&] { report.columns().resized(); });
  WatchResult result = watch(sampler, options.pace, begin_ns, options.verbose || tracer, listener,
                             [&](const Sample& sample) { relay.add(sample); });
  if (tracer) {
    report.columns().clear();
    end_trace(*tracer, interrupts);
    relay.add_live_bytes(result, *tracer, begin_ns, say_get);
  }
  check_readable(result, options);
  report.end(result, std::nullopt);
  if (const std::string group = report.group_line(result); !group.empty()) say_get(group);
  if (!result.refusal.empty()) throw std::runtime_error(result.refusal);
  return 0;
}

}  // namespace

Subcommand run_subcommand() {
  return {.name = "run",
          .summary = "run a command and print its peak memory",
          .help = R"(Usage: cmtwatch run [OPTION]... [--] COMMAND [ARGUMENT]...

Runs a command and prints its peak memory, and the time of the peak, on standard
error. The command keeps its streams; its exit status is passed on.

  -r, --recursive    measure the command with all its descendants, orphans too
  -v, --verbose      print each process's memory at the peak
  -w, --watch        print every sample, not only the peak
  --metric=METRIC    measure pss (the default), rss, uss, anon, swap or vm
  --interval=TIME    take a sample every TIME. Default: 100ms
)" + std::string(pace_help) +
                  R"(  --peak             print the peak. This is the default
  --no-peak          do not print the peak
  --only-peak        print only the peak's number
)" + form_help +
                  R"(  --trace[=FILE.cmt] also record the command's calls of malloc, with -r those
                     of its descendants too. Default: %n.%p.cmt. Each sample
                     then has the live bytes (asked for and not freed)
  --sample-bytes=SIZE
                     with --trace: record one block per SIZE bytes, as cmttrace
                     does. Live bytes are estimates with 95 % intervals then
  -o, --output=FILE  write to FILE instead of standard error
  --groups=DIR       read control groups from DIR instead of where they are
                     mounted
  -O, --stdout=FILE  write the command's standard output to FILE
  -E, --stderr=FILE  write the command's standard error to FILE
)",
          .launch = run,
          .exit_status =
              "the command's; 125 failed here, 126 the command cannot be started,\n"
              "127 it is not there. Where a signal ends the command, it ends cmtwatch too."};
}

Subcommand get_subcommand() {
  return {.name = "get",
          .summary = "print how much memory a process has, once or repeatedly",
          .help = R"(Usage: cmtwatch get [OPTION]... PID

Prints how much memory a process has, once or repeatedly.

  -w, --watch        measure repeatedly until the process ends or Ctrl-C, then
                     print the peak
  -r, --recursive    measure the process with all its descendants
  -v, --verbose      print each process by name
  --metric=METRIC    measure pss (the default), rss, uss, anon, swap or vm
  --interval=TIME    take a sample every TIME. Default: 1s
)" + std::string(pace_help) +
                  R"(  --peak             print the peak at the end. The default with --watch
  --no-peak          do not print the peak
  --only-peak        print the peak and no samples
)" + form_help +
                  R"(  --trace[=FILE.cmt] attach to the process, measure as with --watch, and also
                     record its calls of malloc, with -r those of its later
                     children too. Default: %n.%p.cmt. Each sample then has the
                     bytes that were asked for since the attach and not freed
  --sample-bytes=SIZE
                     with --trace: record one block per SIZE bytes, as cmttrace
                     does. Live bytes are estimates with 95 % intervals then
  -o, --output=FILE  write to FILE instead of standard output
  --root=DIR         read DIR instead of /proc. Default: $PROCFS, else /proc
  --groups=DIR       read control groups from DIR, such as another machine's
                     /sys/fs/cgroup. Default: where they are mounted
)",
          .run = get};
}

}  // namespace cmt::watch
