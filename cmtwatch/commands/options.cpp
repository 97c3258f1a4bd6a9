#include "cmtwatch/commands/options.h"

#include <charconv>
#include <cstdlib>
#include <limits>

#include "toolkit/command/command_line.h"
#include "toolkit/picture/picture_file.h"

namespace cmt::watch {

using command::CommandLine;
using command::Option;
using command::UsageError;

const char common_help[] =
    R"(  -h, --help         show this help
  --version          show the version

Exit status: 0 done, 1 could not, 2 wrong use.
)";

Option with_value(const char* name, char letter) { return {name, Option::Takes::value, letter}; }
Option flag(const char* name, char letter) { return {name, Option::Takes::nothing, letter}; }

Options with(Options options, const Options& more) {
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

double parse_number(const CommandLine& line, const std::string& name, double least, double most) {
  const std::string text = line.value(name, "");
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !(number > least) || !(number <= most))
    throw UsageError("--" + name + ": expected a number above " + std::to_string(static_cast<int>(least)) + ", not '" +
                     text + "'");
  return number;
}

std::int64_t parse_time(const CommandLine& line, const std::string& name, const std::string& unit) {
  return line.parsed(name, "", "a time such as 10ms or 2s", [&unit](const std::string& text) {
    const auto time = command::parse_duration(text, unit);
    return time == 0 ? std::nullopt : time;
  });
}

Options pace_options() {
  return {with_value("count"), with_value("duration"), with_value("frequency", 'f'), with_value("interval"),
          with_value("max-cost")};
}

Pace parse_pace(const CommandLine& line, std::int64_t interval_ns) {
  line.refuse_together("interval", {"frequency"});
  Pace pace{.interval_ns = interval_ns, .cost_share_max = 0.1};
  if (line.has("interval")) pace.interval_ns = parse_time(line, "interval", "ms");
  if (line.has("frequency"))
    pace.interval_ns = static_cast<std::int64_t>(1e9 / parse_number(line, "frequency", 0, 1e6));
  if (line.has("max-cost")) pace.cost_share_max = parse_number(line, "max-cost", 0, 100) / 100;
  if (line.has("count")) pace.count = line.number("count", 1, 1, std::numeric_limits<std::uint64_t>::max());
  if (line.has("duration")) pace.duration_ns = parse_time(line, "duration", "s");
  return pace;
}

int parse_pid(const std::string& text) {
  int pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error != std::errc() || end != text.data() + text.size() || pid <= 0)
    throw UsageError("expected the number of a process, not '" + text + "'");
  return pid;
}

int parse_only_pid(const CommandLine& line) {
  if (line.files().size() != 1) throw UsageError("expected one PID");
  return parse_pid(line.files()[0]);
}

std::string parse_plot(const CommandLine& line) { return line.checked("plot", output::PictureFile::fault_of); }

std::string parse_root(const CommandLine& line) {
  const char* const from_environment = std::getenv("PROCFS");
  return line.value("root", from_environment && *from_environment ? from_environment : "/proc");
}

const char watch_pace_help[] =
    R"(  -f, --frequency=HZ the same as samples a second
  --count=N          stop measuring after so many samples
  --duration=TIME    stop measuring after so long
  --max-cost=PERCENT measure less often where it would take more than this share
                     of a processor: 10
  --pause            stop all threads while a sample is taken
)";

const char watch_form_help[] =
    R"(  --bytes            numbers in bytes
  --json             all samples and the peak as JSON
  --csv              every sample as comma-separated values
  --plot=FILE        a picture, as .svg, .html, .png or .pdf by FILE's ending:
                     memory over time; with -v a band for each process
)";

Options watch_options() {
  return with(pace_options(), {flag("bytes"), flag("csv"), flag("json"), with_value("metric"), flag("no-peak"),
                               flag("only-peak"), with_value("output", 'o'), flag("pause"), flag("peak"),
                               with_value("plot"), flag("recursive", 'r'), flag("verbose", 'v'), flag("watch", 'w')});
}

namespace {

WatchOptions::Peak parse_peak_choice(const CommandLine& line) {
  line.refuse_together("no-peak", {"peak", "only-peak"});
  line.refuse_together("only-peak", {"peak", "watch", "csv", "json"});
  if (line.has("no-peak")) return WatchOptions::Peak::without;
  return line.has("only-peak") ? WatchOptions::Peak::only : WatchOptions::Peak::beside;
}

}  // namespace

WatchOptions parse_watch(const CommandLine& line, std::int64_t interval_ns) {
  WatchOptions options;
  options.form = parse_form<WatchOptions::Form>(line);
  options.metric = line.parsed("metric", "pss", metric_names, metric_named);
  options.pace = parse_pace(line, interval_ns);
  options.peak = parse_peak_choice(line);
  options.each = line.has("watch") || options.form != WatchOptions::Form::text;
  options.recursive = line.has("recursive");
  options.verbose = line.has("verbose");
  options.bytes = line.has("bytes");
  options.pause = line.has("pause");
  options.output = line.value("output", "");
  options.plot = parse_plot(line);
  return options;
}

Options moment_options() { return {flag("bytes"), with_value("pid"), flag("verbose", 'v')}; }

MomentOptions parse_moment(const CommandLine& line) {
  MomentOptions options;
  if (line.files().size() != 1) throw UsageError("expected one recording");
  options.path = line.files()[0];
  if (line.has("pid")) options.pid = parse_pid(line.value("pid", ""));
  options.verbose = line.has("verbose");
  options.bytes = line.has("bytes");
  options.json = line.has("json");
  return options;
}

}  // namespace cmt::watch
