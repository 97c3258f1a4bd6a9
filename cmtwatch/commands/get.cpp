// cmtwatch get: how much memory a process has, once or again and again.

#include <signal.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

#include "cmtwatch/commands/commands.h"
#include "cmtwatch/commands/options.h"
#include "cmtwatch/report/report.h"
#include "cmtwatch/report/watch_plot.h"
#include "cmtwatch/sample/check_process.h"
#include "cmtwatch/sample/pause.h"
#include "cmtwatch/sample/process_set.h"
#include "cmtwatch/sample/sampling.h"
#include "toolkit/command/interrupts.h"

namespace cmt::watch {
namespace {

void check_readable(const Outcome& outcome, const Options& options) {
  if (outcome.peak) return;
  if (!outcome.refusal.empty()) throw std::runtime_error(outcome.refusal);
  const std::string pid = std::to_string(options.pid);
  if (outcome.samples == 0) throw std::runtime_error("process " + pid + " ended before it could be measured");
  const char* const hint = is_dear(options.metric) ? "; --metric=rss needs no permission" : "";
  throw std::runtime_error("process " + pid + " may not be read" + hint);
}

}  // namespace

int get(const command::CommandLine& line) {
  const Options options = parse_get(line);
  check_process(options.pid, options.root);
  if (options.pause) check_pausable(options.pid, options.root);
  Destination destination(options.output, STDOUT_FILENO);
  const auto report = make_report(options, destination);
  Plot plot(options);
  const Family::Whom whom = options.recursive ? Family::Whom::descendants : Family::Whom::one;
  Family family(options.pid, whom, options.metric, options.root, options.pause);
  command::Interrupts interrupts(command::Interrupts::Holds::resizes);
  const Listener listener{interrupts.fd(), [&] {
                            if (interrupts.take() != SIGWINCH) return false;
                            report->resized();
                            return true;
                          }};
  const Outcome outcome = watch(family, options.pace, now_ns(), options.verbose, listener, [&](const Sample& sample) {
    plot.sample(sample);
    if (sample.processes != 0 || options.pace.count != 1) report->sample(sample);
  });
  check_readable(outcome, options);
  report->end(outcome, std::nullopt);
  plot.end(outcome, std::nullopt);
  if (!outcome.refusal.empty()) throw std::runtime_error(outcome.refusal);
  return 0;
}

}  // namespace cmt::watch
