#pragma once

#include <vector>

#include "toolkit/command/command_line.h"

namespace cmt::watch {

/// The subcommands: each does its work and returns the exit status.
int run(const command::CommandLine& line);
int get(const command::CommandLine& line);
int wss(const command::CommandLine& line);
int record(const command::CommandLine& line);
int record_launched(const command::CommandLine& line);  ///< `record` with a command
int peak(const command::CommandLine& line);
int show(const command::CommandLine& line);
int play(const command::CommandLine& line);
int compare(const command::CommandLine& line);

int import_smaps(const command::CommandLine& line);
int export_recording(const command::CommandLine& line);

extern const char compare_help[];
extern const char import_help[];
extern const char export_help[];
std::vector<command::Option> compare_options();
std::vector<command::Option> import_options();
std::vector<command::Option> export_options();

}  // namespace cmt::watch
