// cmtwatch wss: measures the working set of a process, interval after interval.

#include <unistd.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>

#include "cmtwatch/commands/subcommands.h"
#include "cmtwatch/report/wss_report.h"
#include "cmtwatch/sample/process_set.h"

namespace cmt::watch {
namespace {

MappingFilter parse_filter(const command::CommandLine& line) {
  MappingFilter filter;
  if (line.has("kind"))
    filter.kinds = line.parsed("kind", "", std::string("some of ") + mapping_kind_names, parse_mapping_kinds);
  filter.permissions = line.value("permissions", "");
  const bool letters = filter.permissions.find_first_not_of("rwx") == std::string::npos && !filter.permissions.empty();
  if (line.has("permissions") && !letters)
    throw command::UsageError("--permissions: expected some of r, w and x, not '" + filter.permissions + "'");
  filter.longer_than = line.number("longer-than", 0, 0, std::uint64_t{1} << 52);
  return filter;
}

std::optional<TouchMethod> parse_method(const command::CommandLine& line) {
  const std::string name = line.value("method", "");
  if (name == "idle") return TouchMethod::idle;
  if (name == "referenced") return TouchMethod::referenced;
  if (line.has("method")) command::refuse_value("method", "idle or referenced", name);
  return std::nullopt;
}

WssOptions parse_wss(const command::CommandLine& line) {
  WssOptions options;
  parse_sampling(line, 1'000'000'000, options);
  options.method = parse_method(line);
  options.target = {.pid = parse_only_pid(line),
                    .root = parse_root(line),
                    .sys = line.value("sys", "/sys"),
                    .filter = parse_filter(line)};
  const bool again = line.has("watch") || line.has("count") || line.has("duration") || line.has("plot");
  if (!again) options.pace.count = 1;
  return options;
}

int measure(const WssOptions& options, WssReport& report) {
  const WssMethod method = choose_method(options);
  const process::Fd lock = lock_marks(options.target);
  const auto meter = make_touch_meter(method.method, options.target);
  report.begin(method);
  const WorkingSetRun run = measure_working_sets(options, *meter, [&](const WorkingSet& set) { report.sample(set); });
  if (run.samples != 0) report.end(run);
  if (run.failure) std::rethrow_exception(run.failure);
  if (run.samples == 0 && run.gone)
    throw std::runtime_error("process " + std::to_string(options.target.pid) + " ended before its first interval did");
  return 0;
}

int wss(const command::CommandLine& line) {
  const WssOptions options = parse_wss(line);
  const int pid = options.target.pid;
  check_measurable(pid, options.target.root, options.pause);
  Destination destination(options.output, STDOUT_FILENO);
  WssReport report(options, destination);
  try {
    return measure(options, report);
  } catch (const std::system_error& error) {
    if (!means_forbidden(error)) throw;
    throw std::runtime_error("process " + std::to_string(pid) + " may not be marked and read: it is not ours");
  }
}

}  // namespace

Subcommand wss_subcommand() {
  return {.name = "wss",
          .summary = "print the working set: the memory that a process touches",
          .help = R"(Usage: cmtwatch wss [OPTION]... PID

Prints the working set of a process: the memory that it touches in an interval.
The pages are marked at the begin of the interval and read at its end: page by
page by the kernel's bitmap of idle pages, or mapping by mapping by clear_refs,
which works everywhere. All users share both kinds of marks: another program
that writes clear_refs or the bitmap meanwhile makes the figures wrong.

  -w, --watch        measure interval after interval until the process ends or
                     Ctrl-C
  -v, --verbose      print each mapping with touched memory
  --method=METHOD    idle (pages) or referenced (mappings). Default: the first
                     that works
  --kind=KIND,...    measure only mappings that are heap, anonymous, file or
                     stack
  --permissions=RWX  measure only mappings with these permissions: r, w, x or
                     several
  --longer-than=N    measure only mappings of more than N pages
  --interval=TIME    the time from marking to reading. Default: 1s
  -f, --frequency=HZ measure HZ intervals per second
  --count=N          stop after N intervals
  --duration=TIME    stop after TIME
  --max-cost=PERCENT make intervals longer if measuring would take more than
                     this share of a processor. Default: 10
  --pause            stop all threads while pages are read and marked
  --bytes            print numbers in bytes
  --json             print all intervals as JSON
  --csv              print every interval as comma-separated values, with -v
                     every mapping
  --plot=FILE        draw the working set over time, its pages or mappings, and
                     the reuse distances of pages; FILE ends in .svg, .html,
                     .png or .pdf
  -o, --output=FILE  write to FILE instead of standard output
  --root=DIR         read DIR instead of /proc. Default: $PROCFS, else /proc
  --sys=DIR          read DIR instead of /sys
)",
          .run = wss};
}

}  // namespace cmt::watch
