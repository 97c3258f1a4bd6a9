// cmtwatch run: starts a command, samples it until it ends, and ends as it did. An error of the report is told, and the
// command goes on.

#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <optional>
#include <stdexcept>
#include <utility>

#include "cmtwatch/commands/options.h"
#include "cmtwatch/commands/subcommands.h"
#include "cmtwatch/report/watch_report.h"
#include "cmtwatch/sample/watch.h"
#include "toolkit/command/launch.h"
#include "toolkit/command/tracer.h"
#include "toolkit/process/system.h"

namespace cmt::watch {
namespace {

/// The report of a command. Its first error is told, and then it is left alone: the command goes on.
class GuardedReport {
 public:
  explicit GuardedReport(WatchReport& report) : report_(report) {}

  void show(const Sample& sample) {
    guard([&] { report_.show(sample); });
  }
  void resized() {
    guard([&] { report_.resized(); });
  }
  void clear() { report_.clear(); }
  void keep(const Sample& sample) { report_.keep(sample); }
  void end(const WatchResult& result, const command::Ended& ended) {
    guard([&] {
      if (result.samples != 0 || result.refusal.empty()) report_.end(result, ended);
      if (!result.refusal.empty()) throw std::runtime_error(result.refusal);
    });
  }
  bool failed() const { return failed_; }

 private:
  template <class Action>
  void guard(Action action) {
    if (failed_) return;
    try {
      action();
    } catch (const std::exception& error) {
      failed_ = true;
      clear();
      std::fprintf(stderr, "cmtwatch run: %s\n", error.what());
    }
  }

  WatchReport& report_;
  bool failed_ = false;
};

void say(const std::string& text) { std::fprintf(stderr, "cmtwatch run: %s\n", text.c_str()); }

/// A command while it is watched, from its start to its end.
class WatchedCommand {
 public:
  WatchedCommand(const WatchOptions& options, GuardedReport& report) : options_(options), report_(report) {
    if (options.trace.empty()) return;
    tracer_.emplace(options.trace, options.recursive);
    if (const std::string why = command::why_not_recordable(options.command[0]); !why.empty()) say(why);
  }

  /// How it ended.
  command::Ended watch_to_end() {
    command::RunningCommand launched({.words = options_.command,
                                      .output = options_.command_output,
                                      .error = options_.command_error,
                                      .environment = tracer_ ? tracer_->environment() : Environment(),
                                      .before_stop = [this] { report_.clear(); }});
    begin_ns_ = process::now_ns();
    ProcessSet set(options_.recursive ? ProcessSet::Includes::descendants : ProcessSet::Includes::named, "/proc");
    set.add(launched.pid());
    if (options_.recursive) set.add_children_of(getpid());  // we adopt orphans
    ProcessSampler sampler(launched.pid(), std::move(set), options_.metric, "/proc", options_.pause);
    if (tracer_) sampler.leave_out_collectors(collector_name);
    std::optional<command::Ended> ended;
    const Listener listener = listen_to(launched, ended, [this] { report_.resized(); });
    WatchResult result = watch(sampler, options_.pace, begin_ns_, options_.verbose || tracer_, listener,
                               [&](const Sample& sample) { add_sample(sample); });
    report_.clear();
    if (!ended) ended = launched.wait();
    if (tracer_) add_live_bytes(result);
    report_.end(result, *ended);
    return *ended;
  }

 private:
  using Environment = std::vector<std::pair<std::string, std::string>>;

  /// Live bytes are known only at the end, so reports with them wait; lines for people do not.
  void add_sample(const Sample& sample) {
    if (tracer_) samples_.push_back(sample);
    if (!tracer_ || options_.form == WatchOptions::Form::text) report_.show(sample);
    if (!tracer_) report_.keep(sample);
  }

  void add_live_bytes(WatchResult& result) {
    result.traced = tracer_->add_live_bytes(samples_, begin_ns_, say);
    for (const Sample& sample : samples_) {
      if (result.peak && result.peak->begin_ns == sample.begin_ns) result.peak = sample;
      if (options_.form != WatchOptions::Form::text) report_.show(sample);
      report_.keep(sample);
    }
  }

  const WatchOptions& options_;
  GuardedReport& report_;
  std::optional<CommandTracer> tracer_;
  std::vector<Sample> samples_;
  std::int64_t begin_ns_ = 0;
};

std::string parse_trace(const command::CommandLine& line, Metric metric) {
  if (!line.has("trace")) return {};
  const std::string path = line.value("trace", "%n.%p.cmt");
  if (!path.ends_with(".cmt"))
    throw command::UsageError("--trace: expected a name that ends in .cmt, not '" + path + "'");
  if (metric == Metric::swap || metric == Metric::vm)
    throw command::UsageError("--trace needs resident memory to compare with: --metric=pss, rss, uss or anon");
  return path;
}

WatchOptions parse_run(const command::CommandLine& line) {
  WatchOptions options = parse_watch(line, 100'000'000);
  if (line.files().empty()) throw command::UsageError("a command to run is missing");
  options.command = line.files();
  options.trace = parse_trace(line, options.metric);
  options.command_output = line.value("stdout", "");
  options.command_error = line.value("stderr", "");
  return options;
}

int run(const command::CommandLine& line) {
  const WatchOptions options = parse_run(line);
  Destination destination(options.output, STDERR_FILENO);
  WatchReport form(options, destination);
  GuardedReport report(form);
  if (options.recursive) prctl(PR_SET_CHILD_SUBREAPER, 1);
  try {
    const command::Ended ended = WatchedCommand(options, report).watch_to_end();
    if (report.failed() && ended.signal == 0 && ended.status == 0) return command::status_failed;
    command::exit_like(ended);
  } catch (const command::LaunchError& error) {
    say(error.what());
    return error.status;
  }
}

}  // namespace

Subcommand run_subcommand() {
  return {.name = "run",
          .summary = "run a command and tell the most memory that it had at once",
          .help = R"(Usage: cmtwatch run [OPTION]... [--] COMMAND [ARGUMENT]...

Runs a command and tells on standard error the most memory that it had at once,
and when. The command keeps its streams; its exit status is passed on.

  -r, --recursive    the command with all its descendants, orphans too
  -v, --verbose      which processes had how much at the peak
  -w, --watch        every sample, not the peak alone
  --metric=METRIC    pss (the default), rss, uss, anon, swap or vm
  --interval=TIME    between samples: 100ms; a number alone is milliseconds
)" + std::string(watch_pace_help) +
                  R"(  --peak             print the peak: the default
  --no-peak          do not
  --only-peak        the peak's number and nothing else
)" + watch_form_help +
                  R"(  --trace[=FILE.cmt] also record what the command asks of malloc, with -r its
                     descendants too: %n.%p.cmt; each sample tells how much of
                     the memory was live (asked for and not freed)
  -o, --output=FILE  write to FILE instead of standard error
  -O, --stdout=FILE  the command's standard output goes to FILE
  -E, --stderr=FILE  its standard error
  -h, --help         show this help
  --version          show the version

Exit status: the command's; 125 failed here, 126 the command cannot be started,
127 it is not there. Where a signal ends the command, it ends cmtwatch too.
)",
          .options = with(watch_options(), {with_value("stdout", 'O'),
                                            with_value("stderr", 'E'),
                                            {"trace", command::Option::Takes::value_or_nothing}}),
          .launch = run};
}

}  // namespace cmt::watch
