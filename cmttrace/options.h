/// The command line of cmttrace: most of its options are passed on to the tracer in variables (libcmttrace(1)).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "toolkit/command/command_line.h"

namespace cmt::trace_launcher {

struct Options {
  std::string output = "%n.%p.cmt";  ///< as CMTTRACE_OUT
  bool follow = true;                ///< record children, and the programs that they execute
  bool leaves_out_short = false;     ///< keep no traces of short processes
  bool has_stacks = false;           ///< call stacks are recorded
  bool verbose = false;
  bool keeps = false;                                            ///< the last events only
  bool is_heaptrack = false;                                     ///< pools that are reported to heaptrack, too
  std::string profiles{};                                        ///< files for pprof, as CMTTRACE_PPROF; empty: none
  bool has_trace = true;                                         ///< or there are only profiles
  std::vector<std::pair<std::string, std::string>> environment;  ///< the tracer's variables
  std::vector<std::string> command;
  int attach = 0;                                    ///< the process to record, instead of a command; 0: none
  int detach = 0;                                    ///< the process to record no longer; 0: none
  std::optional<std::chrono::nanoseconds> duration;  ///< how long an attach records; nullopt: until something ends it
  bool force = false;                                ///< attach also where a filter of system calls cannot be read
  std::string recover;  ///< the file of rings to write a trace from, instead of running a command; empty: none
};

std::vector<command::Option> known_options();

/// Throws UsageError.
Options parse_options(const command::CommandLine& line);

}  // namespace cmt::trace_launcher
