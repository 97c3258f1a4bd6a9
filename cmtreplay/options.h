#pragma once

#include <string>
#include <vector>

#include "toolkit/command/command_line.h"

namespace cmt::replay {

/// What the command line says.
struct Options {
  std::vector<std::string> allocators;  ///< as given; libc where none was
  std::string file = "-";
  unsigned runs = 5;
  std::string prefix;      ///< of the calls' names; empty: none
  bool new_trace = false;  ///< is wanted, on standard output or in `output`
  std::string output;      ///< its path, in which %a is the allocator; empty: standard output
  bool verify = false;
  bool json = false;
  bool csv = false;

  /// Whether operations are prepared before the runs, or streamed; either, as memory allows.
  enum class Operations { either, prepared, streamed };
  Operations operations = Operations::either;
  bool threads = true;  ///< those recorded; else one
  bool strict = false;
  double pace = 0;  ///< recorded time over the replay's; 0: as fast as it goes
  std::string touch = "page";
  unsigned timeout_seconds = 60;
  unsigned seed = 1;
  std::vector<int> cpus;  ///< to bind workers to; empty: none
};

extern const char* const help_text;
extern const std::vector<command::Option> known_options;

/// `output` for an allocator.
std::string output_path(const std::string& output, const std::string& allocator);

/// Throws command::UsageError.
Options options_of(const command::CommandLine& line);

}  // namespace cmt::replay
