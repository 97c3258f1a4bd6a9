// Parses the options that several subcommands share.
#include "cmtwatch/commands/subcommands.h"

#include <charconv>
#include <cstdlib>
#include <exception>
#include <limits>

#include "cmtwatch/report/report_output.h"
#include "cmtwatch/sample/pause.h"
#include "cmtwatch/sample/process_set.h"
#include "toolkit/picture/picture.h"

namespace cmt::watch {

using command::CommandLine;
using command::UsageError;

double parse_number(const CommandLine& line, const std::string& name, double least, double most) {
  const std::string text = line.value(name, "");
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !(number > least) || !(number <= most))
    throw UsageError("--" + name + ": expected a number above " + std::to_string(static_cast<int>(least)) + ", not '" +
                     text + "'");
  return number;
}

std::int64_t parse_time(const CommandLine& line, const std::string& name) {
  return line.parsed(name, "", "a time such as 10ms or 2s", [](const std::string& text) {
    const auto time = command::parse_duration(text);
    return time == 0 ? std::nullopt : time;
  });
}

Pace parse_pace(const CommandLine& line, std::int64_t interval_ns) {
  line.refuse_together("interval", {"frequency"});
  Pace pace{.interval_ns = interval_ns, .cost_share_max = 0.1};
  if (line.has("interval")) pace.interval_ns = parse_time(line, "interval");
  const double least = 1e-9;  // of a second's, and of a processor's share: an interval that a clock can count
  if (line.has("frequency"))
    pace.interval_ns = static_cast<std::int64_t>(1e9 / std::max(parse_number(line, "frequency", 0, 1e6), least));
  if (line.has("max-cost")) pace.cost_share_max = std::max(parse_number(line, "max-cost", 0, 100) / 100, least);
  if (line.has("count")) pace.count = line.number("count", 1, 1, std::numeric_limits<std::uint64_t>::max());
  if (line.has("duration")) pace.duration_ns = parse_time(line, "duration");
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

std::string parse_plot(const CommandLine& line) { return line.checked("plot", picture::PictureFile::fault_of); }

std::string parse_root(const CommandLine& line) {
  const char* const from_environment = std::getenv("PROCFS");
  return line.value("root", from_environment && *from_environment ? from_environment : "/proc");
}

process::GroupFolders parse_folders(const CommandLine& line) {
  return {.proc = parse_root(line), .groups = line.value("groups", "")};
}

TraceOptions parse_trace(const CommandLine& line) {
  if (!line.has("trace")) {
    if (line.has("sample-bytes")) throw UsageError("--sample-bytes needs --trace");
    return {};
  }
  TraceOptions options{.output = line.value("trace", "%n.%p.cmt"), .follow = line.has("recursive")};
  if (!options.output.ends_with(".cmt"))
    throw UsageError("--trace: expected a name that ends in .cmt, not '" + options.output + "'");
  const char* const from_environment = std::getenv("CMTTRACE_SAMPLE_BYTES");
  options.sample_bytes = line.value("sample-bytes", from_environment ? from_environment : "");
  const auto bytes = command::parse_size(options.sample_bytes);
  if ((options.samples() || line.has("sample-bytes")) && (!bytes || *bytes > launch::sampling_interval_max))
    command::refuse_value("sample-bytes", "a size such as 512K, up to 1G", options.sample_bytes);
  return options;
}

void refuse_other_root(const std::string& root) {
  if (root != "/proc") throw UsageError("--trace attaches to a process of this /proc, not of " + root);
}

std::string parse_recording(const CommandLine& line) {
  if (line.files().size() != 1) throw UsageError("expected one recording");
  return line.files()[0];
}

void parse_sampling(const CommandLine& line, std::int64_t interval_ns, SamplingOptions& options) {
  line.refuse_together("json", {"csv"});
  if (line.has("json")) options.form = SamplingOptions::Form::json;
  if (line.has("csv")) options.form = SamplingOptions::Form::csv;
  options.pace = parse_pace(line, interval_ns);
  options.pause = line.has("pause");
  options.verbose = line.has("verbose");
  options.bytes = line.has("bytes");
  options.output = line.value("output", "");
  options.plot = parse_plot(line);
}

void check_measurable(int pid, const std::string& root, bool pause) {
  check_process(pid, root);
  if (pause) check_pausable(pid, root);
}

void Guard::run(const std::function<void()>& action) {
  if (is_stopped_) return;
  try {
    action();
  } catch (const std::exception& error) {
    is_stopped_ = true;
    clear_();
    failed_ = !command::is_closed_pipe(error);
    if (!failed_) return;
    command::complain(name_, error.what());
  }
}

}  // namespace cmt::watch
