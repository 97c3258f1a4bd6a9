// cmtwatch run: starts a command, samples it until it ends, and ends as it did. What goes wrong with the report is
// told, and never ends the command.

#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "cmtwatch/commands.h"
#include "cmtwatch/family.h"
#include "cmtwatch/options.h"
#include "cmtwatch/plot.h"
#include "cmtwatch/report.h"
#include "cmtwatch/watch.h"
#include "command/launch.h"

namespace cmt::watch {
namespace {

/// A report whose failure is kept until the command has ended.
class PatientReport {
 public:
  PatientReport(Report& report, Plot& plot) : report_(report), plot_(plot) {}

  void sample(const Sample& sample) {
    plot_.sample(sample);
    guard([&] { report_.sample(sample); });
  }
  void end(const Outcome& outcome, const command::Ended& ended) {
    guard([&] { report_.end(outcome, ended); });
    guard([&] { plot_.end(outcome); });
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
      std::fprintf(stderr, "cmtwatch run: %s\n", error.what());
    }
  }

  Report& report_;
  Plot& plot_;
  bool failed_ = false;
};

/// What is watched from the start of the command until its end. A command that is gone before it is seen has no family.
Outcome watch_command(const Options& options, command::Launched& launched, std::optional<command::Ended>& ended,
                      PatientReport& report) {
  const std::int64_t begin_ns = now_ns();
  const Family::Whom whom = options.recursive ? Family::Whom::adopted : Family::Whom::one;
  Family family(launched.pid(), whom, options.metric);
  const Listener listener{launched.fd(), [&] {
                            ended = launched.handle().ended;
                            return !ended;
                          }};
  return watch(family, options.pace, begin_ns, options.verbose, listener,
               [&](const Sample& sample) { report.sample(sample); });
}

}  // namespace

int run(const command::CommandLine& line) {
  const Options options = parse_run(line);
  Destination destination(options.output, STDERR_FILENO);
  const auto form = make_report(options, destination);
  Plot plot(options);
  PatientReport report(*form, plot);
  if (options.recursive) prctl(PR_SET_CHILD_SUBREAPER, 1);
  try {
    command::Launched launched({.words = options.command,
                                .output = options.command_output,
                                .error = options.command_error,
                                .environment = {}});
    std::optional<command::Ended> ended;
    const Outcome outcome = watch_command(options, launched, ended, report);
    if (!ended) ended = launched.wait();
    report.end(outcome, *ended);
    if (report.failed() && ended->signal == 0 && ended->status == 0) return command::status_failed;
    command::end_alike(*ended);
  } catch (const command::LaunchError& error) {
    std::fprintf(stderr, "cmtwatch run: %s\n", error.what());
    return error.status;
  }
}

}  // namespace cmt::watch
