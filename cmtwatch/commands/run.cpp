// cmtwatch run: starts a command, samples it until it ends, and ends as it did. What goes wrong with the report is
// told, and never ends the command.

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <stdexcept>

#include "cmtwatch/commands/commands.h"
#include "cmtwatch/commands/options.h"
#include "cmtwatch/report/report.h"
#include "cmtwatch/report/watch_plot.h"
#include "cmtwatch/sample/process_set.h"
#include "cmtwatch/sample/sampling.h"
#include "cmtwatch/sample/traced_command.h"
#include "toolkit/command/launch.h"
#include "toolkit/command/tracer.h"

namespace cmt::watch {
namespace {

/// A report whose failure is kept until the command has ended.
class PatientReport {
 public:
  PatientReport(Report& report, Plot& plot) : report_(report), plot_(plot) {}

  void show(const Sample& sample) {
    guard([&] { report_.sample(sample); });
  }
  void resized() {
    guard([&] { report_.resized(); });
  }
  void clear() { report_.clear(); }
  void draw(const Sample& sample) { plot_.sample(sample); }
  void end(const Outcome& outcome, const command::Ended& ended) {
    if (outcome.samples != 0 || outcome.refusal.empty()) {
      guard([&] { report_.end(outcome, ended); });
      guard([&] { plot_.end(outcome, ended); });
    }
    guard([&] {
      if (!outcome.refusal.empty()) throw std::runtime_error(outcome.refusal);
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

  Report& report_;
  Plot& plot_;
  bool failed_ = false;
};

void say(const std::string& text) { std::fprintf(stderr, "cmtwatch run: %s\n", text.c_str()); }

/// A command while it is watched, from its start to its end. One that is gone before it is seen has no family.
class WatchedCommand {
 public:
  WatchedCommand(const Options& options, PatientReport& report) : options_(options), report_(report) {
    if (options.trace.empty()) return;
    inside_.emplace(options.trace, options.recursive);
    if (const std::string why = command::obstacle(options.command[0]); !why.empty()) say(why);
  }

  /// How it ended.
  command::Ended watch_to_end() {
    command::Launched launched({.words = options_.command,
                                .output = options_.command_output,
                                .error = options_.command_error,
                                .environment = inside_ ? inside_->environment() : Environment(),
                                .before_stop = [this] { report_.clear(); }});
    begin_ns_ = now_ns();
    const Family::Whom whom = options_.recursive ? Family::Whom::adopted : Family::Whom::one;
    Family family(launched.pid(), whom, options_.metric, "/proc", options_.pause);
    if (inside_) family.leave_out(collector_name);
    std::optional<command::Ended> ended;
    const Listener listener{launched.fd(), [&] {
                              const command::Happening happening = launched.handle();
                              if (happening.signal == SIGWINCH) report_.resized();
                              ended = happening.ended;
                              return !ended;
                            }};
    Outcome outcome = watch(family, options_.pace, begin_ns_, options_.verbose || inside_, listener,
                            [&](const Sample& sample) { take(sample); });
    report_.clear();
    if (!ended) ended = launched.wait();
    if (inside_) join(outcome);
    report_.end(outcome, *ended);
    return *ended;
  }

 private:
  using Environment = std::vector<std::pair<std::string, std::string>>;

  /// What is traced is known at the end only; lines on a screen do not wait for it.
  void take(const Sample& sample) {
    if (inside_) samples_.push_back(sample);
    if (!inside_ || options_.form == Options::Form::text) report_.show(sample);
    if (!inside_) report_.draw(sample);
  }

  void join(Outcome& outcome) {
    outcome.traced = inside_->join(samples_, begin_ns_, say);
    for (const Sample& sample : samples_) {
      if (outcome.peak && outcome.peak->begin_ns == sample.begin_ns) outcome.peak = sample;
      if (options_.form != Options::Form::text) report_.show(sample);
      report_.draw(sample);
    }
  }

  const Options& options_;
  PatientReport& report_;
  std::optional<Inside> inside_;
  std::vector<Sample> samples_;
  std::int64_t begin_ns_ = 0;
};

}  // namespace

int run(const command::CommandLine& line) {
  const Options options = parse_run(line);
  Destination destination(options.output, STDERR_FILENO);
  const auto form = make_report(options, destination);
  Plot plot(options);
  PatientReport report(*form, plot);
  if (options.recursive) prctl(PR_SET_CHILD_SUBREAPER, 1);
  try {
    const command::Ended ended = WatchedCommand(options, report).watch_to_end();
    if (report.failed() && ended.signal == 0 && ended.status == 0) return command::status_failed;
    command::end_alike(ended);
  } catch (const command::LaunchError& error) {
    std::fprintf(stderr, "cmtwatch run: %s\n", error.what());
    return error.status;
  }
}

}  // namespace cmt::watch
