#pragma once

#include <string>
#include <vector>

#include "cmtreplay/run/worker_process.h"
#include "toolkit/command/command_line.h"

namespace cmt::replay {

/// The command line's options.
struct Options : ReplayOptions {
  std::vector<std::string> allocators;  ///< as given; libc where none is
  std::string prefix;                   ///< of the calls' names; empty: none
  bool new_trace = false;               ///< write one, to standard output or to `output`
  std::string output;                   ///< its path, in which %a stands for the allocator; empty: standard output
  bool verify = false;
  bool json = false;
  bool csv = false;
  std::string plot;  ///< a picture's file; empty: none

  TraceOptions trace;
  bool force = false;  ///< also where memory is short
};

extern const char* const help_text;
extern const std::vector<command::Option> known_options;

/// The path in `output` for an allocator.
std::string output_path(const std::string& output, const std::string& allocator);

/// Throws command::UsageError.
Options parse_options(const command::CommandLine& line);

}  // namespace cmt::replay
