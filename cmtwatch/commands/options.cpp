#include "cmtwatch/commands/options.h"

#include "cmtwatch/commands/options_common.h"

namespace cmt::watch {

const char run_help[] =
    R"(Usage: cmtwatch run [OPTION]... [--] COMMAND [ARGUMENT]...

Runs a command and tells the most memory that it had at once, and when, on
standard error. The command keeps its streams; its exit status is passed on.

  -r, --recursive    the command with all its descendants, orphans too
  -v, --verbose      which processes had how much at the peak
  -w, --watch        every sample, not the peak alone
  --metric=METRIC    pss (the default), rss, uss, anon, swap or vm
  --interval=TIME    between samples: 100ms; a number alone is milliseconds
  -f, --frequency=HZ the same as samples a second
  --count=N          stop measuring after so many samples
  --duration=TIME    stop measuring after so long
  --max-cost=PERCENT measure less often where it would take more than this share
                     of a processor: 10
  --pause            stop all threads while a sample is taken
  --peak             print the peak: the default
  --no-peak          do not
  --only-peak        the peak's number and nothing else
  --bytes            numbers in bytes
  --json             all samples and the peak as JSON
  --csv              every sample as comma-separated values
  --plot=FILE        a picture, as .svg, .html, .png or .pdf by FILE's ending:
                     memory over time; with -v a band for each process
  --trace[=FILE.cmt] record what the command asks of malloc too, with -r its
                     descendants: %n.%p.cmt; tells how much of the memory was
                     live (asked for and not freed) at each sample
  -o, --output=FILE  write to FILE instead of standard error
  -O, --stdout=FILE  the command's standard output goes to FILE
  -E, --stderr=FILE  its standard error
  -h, --help         say this
  --version          say the version

Exit status: the command's; 125 failed here, 126 the command cannot be started,
127 it is not there. A command that a signal ends ends this with it.
)";

const char get_help[] =
    R"(Usage: cmtwatch get [OPTION]... PID

Tells how much memory a process has, once or again and again.

  -w, --watch        again and again, until the process ends or Ctrl-C; then the
                     peak
  -r, --recursive    the process with all its descendants
  -v, --verbose      each process by name
  --metric=METRIC    pss (the default), rss, uss, anon, swap or vm
  --interval=TIME    between samples: 1s; a number alone is milliseconds
  -f, --frequency=HZ the same as samples a second
  --count=N          stop after so many samples
  --duration=TIME    stop after so long
  --max-cost=PERCENT measure less often where it would take more than this share
                     of a processor: 10
  --pause            stop all threads while a sample is taken
  --peak             print the peak at the end: the default with --watch
  --no-peak          do not
  --only-peak        the peak and no sample
  --bytes            numbers in bytes
  --json             all samples and the peak as JSON
  --csv              every sample as comma-separated values
  --plot=FILE        a picture, as .svg, .html, .png or .pdf by FILE's ending:
                     memory over time; with -v a band for each process
  -o, --output=FILE  write to FILE instead of standard output
  --root=DIR         a /proc elsewhere; else what PROCFS names
  -h, --help         say this
  --version          say the version

Exit status: 0 done, 1 could not, 2 wrong use.
)";

namespace {

using command::CommandLine;
using command::Option;
using command::UsageError;

constexpr std::int64_t millisecond_ns = 1'000'000;
constexpr auto takes_value = Option::Takes::value;
constexpr auto takes_nothing = Option::Takes::nothing;

std::vector<Option> watch_options() {
  return {{"bytes"},
          {"count", takes_value},
          {"csv"},
          {"duration", takes_value},
          {"frequency", takes_value, 'f'},
          {"interval", takes_value},
          {"json"},
          {"max-cost", takes_value},
          {"metric", takes_value},
          {"no-peak"},
          {"only-peak"},
          {"output", takes_value, 'o'},
          {"pause"},
          {"peak"},
          {"plot", takes_value},
          {"recursive", takes_nothing, 'r'},
          {"verbose", takes_nothing, 'v'},
          {"watch", takes_nothing, 'w'}};
}

Options::Peak parse_peak_choice(const CommandLine& line) {
  line.refuse_together("no-peak", {"peak", "only-peak"});
  line.refuse_together("only-peak", {"peak", "watch", "csv", "json"});
  if (line.has("no-peak")) return Options::Peak::without;
  return line.has("only-peak") ? Options::Peak::only : Options::Peak::beside;
}

Options parse_watch(const CommandLine& line, std::int64_t interval_ns) {
  line.refuse_together("json", {"csv"});
  Options options;
  options.metric = line.parsed("metric", "pss", metric_names, metric_named);
  options.pace = parse_pace(line, interval_ns);
  options.peak = parse_peak_choice(line);
  if (line.has("json")) options.form = Options::Form::json;
  if (line.has("csv")) options.form = Options::Form::csv;
  options.each = line.has("watch") || options.form != Options::Form::text;
  options.recursive = line.has("recursive");
  options.verbose = line.has("verbose");
  options.bytes = line.has("bytes");
  options.pause = line.has("pause");
  options.output = line.value("output", "");
  options.plot = parse_plot(line);
  return options;
}

std::string parse_trace(const CommandLine& line, Metric metric) {
  if (!line.has("trace")) return {};
  const std::string path = line.value("trace", "%n.%p.cmt");
  if (!path.ends_with(".cmt")) throw UsageError("--trace: expected a name that ends in .cmt, not '" + path + "'");
  if (metric == Metric::swap || metric == Metric::vm)
    throw UsageError("--trace needs resident memory to compare with: --metric=pss, rss, uss or anon");
  return path;
}

}  // namespace

std::vector<Option> run_options() {
  std::vector<Option> options = watch_options();
  options.push_back({"stdout", takes_value, 'O'});
  options.push_back({"stderr", takes_value, 'E'});
  options.push_back({"trace", Option::Takes::value_or_nothing});
  return options;
}

std::vector<Option> get_options() {
  std::vector<Option> options = watch_options();
  options.push_back({"root", takes_value});
  return options;
}

Options parse_run(const CommandLine& line) {
  Options options = parse_watch(line, 100 * millisecond_ns);
  if (line.files().empty()) throw UsageError("a command to run is missing");
  options.command = line.files();
  options.trace = parse_trace(line, options.metric);
  options.command_output = line.value("stdout", "");
  options.command_error = line.value("stderr", "");
  return options;
}

Options parse_get(const CommandLine& line) {
  Options options = parse_watch(line, 1000 * millisecond_ns);
  if (line.files().size() != 1) throw UsageError("expected one PID");
  options.pid = parse_pid(line.files()[0]);
  options.root = root_of(line);
  const bool again =
      line.has("watch") || line.has("count") || line.has("duration") || line.has("only-peak") || line.has("plot");
  if (!again) options.pace.count = 1;
  if (!again && !line.has("peak")) options.peak = Options::Peak::without;
  options.each = options.peak != Options::Peak::only;
  return options;
}

}  // namespace cmt::watch
