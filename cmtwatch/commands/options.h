/// Options that several subcommands have. All parse functions throw UsageError.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cmtwatch/report/moment_report.h"
#include "cmtwatch/report/watch_report.h"
#include "cmtwatch/sample/sampling.h"
#include "toolkit/command/command_line.h"

namespace cmt::watch {

/// The last lines of a subcommand's help.
extern const char common_help[];

using Options = std::vector<command::Option>;

command::Option with_value(const char* name, char letter = '\0');
command::Option flag(const char* name, char letter = '\0');

/// Both lists in one.
Options with(Options options, const Options& more);

/// A span of time above 0; a number alone is in `unit`.
std::int64_t parse_time(const command::CommandLine& line, const std::string& name, const std::string& unit);

/// A number above `least`, at most `most`.
double parse_number(const command::CommandLine& line, const std::string& name, double least, double most);

/// --interval, --frequency, --max-cost, --count and --duration.
Options pace_options();
Pace parse_pace(const command::CommandLine& line, std::int64_t interval_ns);

/// A process's number.
int parse_pid(const std::string& text);

/// The one PID operand.
int parse_only_pid(const command::CommandLine& line);

/// --plot: a picture's file, whose form is known by its ending; empty where none is asked for.
std::string parse_plot(const command::CommandLine& line);

/// --root, else PROCFS, else /proc.
std::string parse_root(const command::CommandLine& line);

/// --json and --csv as a Form of WatchOptions or WssOptions.
template <class Form>
Form parse_form(const command::CommandLine& line) {
  line.refuse_together("json", {"csv"});
  if (line.has("json")) return Form::json;
  return line.has("csv") ? Form::csv : Form::text;
}

/// The options that `run` and `get` share, and their help. `interval_ns` is the default.
extern const char watch_pace_help[];
extern const char watch_form_help[];
Options watch_options();
WatchOptions parse_watch(const command::CommandLine& line, std::int64_t interval_ns);

/// The options that `peak`, `show` and `play` share.
Options moment_options();
MomentOptions parse_moment(const command::CommandLine& line);

}  // namespace cmt::watch
