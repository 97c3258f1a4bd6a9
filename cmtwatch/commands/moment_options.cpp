#include "cmtwatch/commands/moment_options.h"

#include "cmtwatch/commands/options_common.h"
#include "toolkit/command/duration.h"

namespace cmt::watch {

const char peak_help[] =
    R"(Usage: cmtwatch peak [OPTION]... FILE

Tells what the memory was made of when the processes of a recording had most of
it together.

  --pid=PID      when this process had most
  --system       when the machine had least memory available, with its processes
  -v, --verbose  each process by itself
  --bytes        numbers in bytes
  --json         as JSON, with every mapping
  -h, --help     say this
  --version      say the version

Exit status: 0 done, 1 could not, 2 wrong use.
)";

const char show_help[] =
    R"(Usage: cmtwatch show [OPTION]... --at=TIME FILE

Tells what the memory was made of at a moment of a recording.

  --at=TIME      since the recording began, such as 2.5s
  --pid=PID      of this process alone
  -v, --verbose  each process by itself
  --bytes        numbers in bytes
  --json         as JSON, with every mapping
  -h, --help     say this
  --version      say the version

Exit status: 0 done, 1 could not, 2 wrong use.
)";

const char play_help[] =
    R"(Usage: cmtwatch play [OPTION]... FILE

Shows a recording moment by moment. On a terminal the space bar pauses, the
arrows and Enter step, Home and End go to either end, q quits; elsewhere the
moments are printed one after another.

  --speed=X        so many times as fast as it was recorded
  --interval=TIME  a moment each so long; a number alone is milliseconds
  --pid=PID        of this process alone
  -v, --verbose    each process by itself
  --bytes          numbers in bytes
  -h, --help       say this
  --version        say the version

Exit status: 0 done, 1 could not, 2 wrong use.
)";

namespace {

using command::CommandLine;
using command::Option;

std::vector<Option> moment_options() {
  return {{"bytes"}, {"pid", Option::Takes::value}, {"verbose", Option::Takes::nothing, 'v'}};
}

MomentOptions parse_moment(const CommandLine& line) {
  MomentOptions options;
  if (line.files().size() != 1) throw command::UsageError("expected one recording");
  options.path = line.files()[0];
  if (line.has("pid")) options.whose = parse_pid(line.value("pid", ""));
  options.verbose = line.has("verbose");
  options.bytes = line.has("bytes");
  options.json = line.has("json");
  return options;
}

}  // namespace

std::vector<Option> peak_options() {
  std::vector<Option> options = moment_options();
  options.push_back({"json"});
  options.push_back({"system"});
  return options;
}

std::vector<Option> show_options() {
  std::vector<Option> options = moment_options();
  options.push_back({"json"});
  options.push_back({"at", Option::Takes::value});
  return options;
}

std::vector<Option> play_options() {
  std::vector<Option> options = moment_options();
  options.push_back({"interval", Option::Takes::value});
  options.push_back({"speed", Option::Takes::value});
  return options;
}

MomentOptions parse_peak(const CommandLine& line) {
  line.refuse_together("system", {"pid"});
  MomentOptions options = parse_moment(line);
  if (line.has("system")) options.when = MomentOptions::When::worst;
  return options;
}

MomentOptions parse_show(const CommandLine& line) {
  MomentOptions options = parse_moment(line);
  options.when = MomentOptions::When::at;
  options.at_ns = line.parsed("at", "", "a time such as 2.5s",
                              [](const std::string& text) { return command::parse_duration(text, "s"); });
  return options;
}

PlayOptions parse_play(const CommandLine& line) {
  line.refuse_together("speed", {"interval"});
  PlayOptions options{.moment = parse_moment(line)};
  options.moment.when = MomentOptions::When::at;
  if (line.has("speed")) options.speed = parse_number(line, "speed", 0, 1e9);
  if (line.has("interval")) options.interval_ns = parse_time(line, "interval", "ms");
  return options;
}

}  // namespace cmt::watch
