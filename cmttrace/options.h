#pragma once

#include <string>
#include <utility>
#include <vector>

#include "toolkit/command/command_line.h"

namespace cmt::trace_launcher {

struct Options {
  std::string output = "%n.%p.cmt";  ///< as CMTTRACE_OUT
  bool follow = true;                ///< record children, and the programs that they execute
  std::vector<std::pair<std::string, std::string>> environment;  ///< the tracer's variables
  std::vector<std::string> command;
  std::string recover;  ///< the file of rings to write a trace from, instead of running a command; empty: none
};

extern const char help_text[];
std::vector<command::Option> known_options();

/// Throws UsageError.
Options parse_options(const command::CommandLine& line);

}  // namespace cmt::trace_launcher
