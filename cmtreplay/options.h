#pragma once

#include <string>
#include <vector>

#include "command/command_line.h"

namespace cmt::replay {

/// What the command line says.
struct Options {
  std::vector<std::string> allocators;  ///< as given; libc where none was
  std::string file = "-";
  unsigned runs = 5;
  bool new_trace = false;
  bool json = false;
};

extern const char* const help_text;
extern const std::vector<command::Option> known_options;

/// Throws command::UsageError.
Options options_of(const command::CommandLine& line);

}  // namespace cmt::replay
