#pragma once

#include <string>
#include <vector>

#include "toolkit/command/command_line.h"

namespace cmt::replay {

/// The command line's options.
struct Options {
  std::vector<std::string> allocators;  ///< as given; libc where none is
  std::string file = "-";
  unsigned runs = 5;
  std::string prefix;      ///< of the calls' names; empty: none
  bool new_trace = false;  ///< write one, to standard output or to `output`
  std::string output;      ///< its path, in which %a stands for the allocator; empty: standard output
  bool verify = false;
  bool json = false;
  bool csv = false;

  /// Operations are prepared before the runs, or streamed; `either`: prepared where memory allows.
  enum class Operations { either, prepared, streamed };
  Operations operations = Operations::either;
  bool threads = true;  ///< the recorded threads; else one
  bool strict = false;
  double pace = 0;  ///< recorded time over the replay's; 0: as fast as possible
  std::string touch = "page";
  unsigned timeout_seconds = 60;
  unsigned seed = 1;
  std::vector<int> cpus;  ///< that workers are bound to; empty: any
};

extern const char* const help_text;
extern const std::vector<command::Option> known_options;

/// The path in `output` for an allocator.
std::string output_path(const std::string& output, const std::string& allocator);

/// Throws command::UsageError.
Options parse_options(const command::CommandLine& line);

}  // namespace cmt::replay
