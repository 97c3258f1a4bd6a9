#pragma once

#include <string>
#include <vector>

#include "toolkit/command/command_line.h"

namespace cmt::watch {

/// One subcommand of cmtwatch.
struct Subcommand {
  using Run = int (*)(const command::CommandLine&);

  const char* name;
  const char* summary;  ///< its line in `cmtwatch --help`
  std::string help;     ///< of `cmtwatch NAME --help`
  std::vector<command::Option> options;
  Run run = nullptr;     ///< where its operands are files or pids; returns the exit status
  Run launch = nullptr;  ///< where they are a command; with `run` too, a command stands behind "--"
};

/// To add one, declare it here, add it to the list, and define it in a file of its own in this folder.
Subcommand run_subcommand();
Subcommand get_subcommand();
Subcommand wss_subcommand();
Subcommand record_subcommand();
Subcommand peak_subcommand();
Subcommand show_subcommand();
Subcommand play_subcommand();
Subcommand import_subcommand();
Subcommand export_subcommand();
Subcommand compare_subcommand();

/// In the order of `cmtwatch --help`.
inline constexpr Subcommand (*all_subcommands[])() = {
    run_subcommand,  get_subcommand,  wss_subcommand,    record_subcommand, peak_subcommand,
    show_subcommand, play_subcommand, import_subcommand, export_subcommand, compare_subcommand};

}  // namespace cmt::watch
