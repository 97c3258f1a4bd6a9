// cmtwatch get: how much memory a process has, once or again and again.

#include <unistd.h>

#include <stdexcept>
#include <string>

#include "cmtwatch/commands/options.h"
#include "cmtwatch/commands/subcommands.h"
#include "cmtwatch/report/watch_report.h"
#include "cmtwatch/sample/pause.h"
#include "cmtwatch/sample/probe.h"
#include "cmtwatch/sample/watch.h"
#include "toolkit/command/interrupts.h"
#include "toolkit/process/system.h"

namespace cmt::watch {
namespace {

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
  options.root = parse_root(line);
  const bool again =
      line.has("watch") || line.has("count") || line.has("duration") || line.has("only-peak") || line.has("plot");
  if (!again) options.pace.count = 1;
  if (!again && !line.has("peak")) options.peak = WatchOptions::Peak::without;
  options.each = options.peak != WatchOptions::Peak::only;
  return options;
}

int get(const command::CommandLine& line) {
  const WatchOptions options = parse_get(line);
  check_process(options.pid, options.root);
  if (options.pause) check_pausable(options.pid, options.root);
  Destination destination(options.output, STDOUT_FILENO);
  WatchReport report(options, destination);
  ProcessSet set(options.recursive ? ProcessSet::Includes::descendants : ProcessSet::Includes::named, options.root);
  set.add(options.pid);
  ProcessSampler sampler(options.pid, std::move(set), options.metric, options.root, options.pause);
  command::Interrupts interrupts(command::Interrupts::Holds::resizes);
  const Listener listener = listen_to(interrupts, [&] { report.resized(); });
  const WatchResult result =
      watch(sampler, options.pace, process::now_ns(), options.verbose, listener, [&](const Sample& sample) {
        report.keep(sample);
        if (sample.processes != 0 || options.pace.count != 1) report.show(sample);
      });
  check_readable(result, options);
  report.end(result, std::nullopt);
  if (!result.refusal.empty()) throw std::runtime_error(result.refusal);
  return 0;
}

}  // namespace

Subcommand get_subcommand() {
  return {.name = "get",
          .summary = "tell how much memory a process has, once or again and again",
          .help = R"(Usage: cmtwatch get [OPTION]... PID

Tells how much memory a process has, once or again and again.

  -w, --watch        again and again, until the process ends or Ctrl-C; then the
                     peak
  -r, --recursive    the process with all its descendants
  -v, --verbose      each process by name
  --metric=METRIC    pss (the default), rss, uss, anon, swap or vm
  --interval=TIME    between samples: 1s; a number alone is milliseconds
)" + std::string(watch_pace_help) +
                  R"(  --peak             print the peak at the end: the default with --watch
  --no-peak          do not
  --only-peak        the peak and no sample
)" + watch_form_help +
                  R"(  -o, --output=FILE  write to FILE instead of standard output
  --root=DIR         a /proc elsewhere; the default is $PROCFS, else /proc
)" + common_help,
          .options = with(watch_options(), {with_value("root")}),
          .run = get};
}

}  // namespace cmt::watch
