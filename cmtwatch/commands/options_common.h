#pragma once

#include <cstdint>
#include <string>

#include "cmtwatch/sample/sampling.h"
#include "toolkit/command/command_line.h"

/// Options that several subcommands have. All throw UsageError.
namespace cmt::watch {

/// A span of time above 0; a number alone is in `unit`.
std::int64_t parse_time(const command::CommandLine& line, const std::string& name, const std::string& unit);

/// A number above `least`, at most `most`.
double parse_number(const command::CommandLine& line, const std::string& name, double least, double most);

/// --interval, --frequency, --max-cost, --count and --duration.
Pace parse_pace(const command::CommandLine& line, std::int64_t interval_ns);

/// A process's number.
int parse_pid(const std::string& text);

/// --plot: a picture's file, by its ending; empty where none is wanted.
std::string parse_plot(const command::CommandLine& line);

/// --root, else PROCFS, else /proc.
std::string root_of(const command::CommandLine& line);

}  // namespace cmt::watch
