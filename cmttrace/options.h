#pragma once

#include <string>
#include <utility>
#include <vector>

#include "toolkit/command/command_line.h"

namespace cmt::trace_launcher {

struct Options {
  std::string output = "%n.%p.cmt";                              ///< as CMTTRACE_OUT
  bool follow = true;                                            ///< children and what they execute are recorded too
  std::vector<std::pair<std::string, std::string>> environment;  ///< what the tracer is told
  std::vector<std::string> command;
  std::string recover;  ///< the rings that a trace is to be made from, instead of a command; empty: none
};

extern const char help_text[];
std::vector<command::Option> known_options();

/// Throws UsageError.
Options parse_options(const command::CommandLine& line);

}  // namespace cmt::trace_launcher
