#pragma once

#include <string>
#include <vector>

#include "cmtwatch/sample/metric.h"
#include "cmtwatch/sample/sampling.h"
#include "toolkit/command/command_line.h"

namespace cmt::watch {

/// What `run` and `get` are asked for.
struct Options {
  enum class Form { text, json, csv };
  enum class Peak { beside, without, only };

  Metric metric = Metric::pss;
  Pace pace;
  Form form = Form::text;
  Peak peak = Peak::beside;
  bool each = false;       ///< every sample is shown, not the peak alone
  bool recursive = false;  ///< descendants too
  bool verbose = false;    ///< each process by name
  bool bytes = false;      ///< numbers without unit
  bool pause = false;      ///< who is measured is stopped meanwhile
  std::string output;      ///< a file; empty: where the subcommand writes
  std::string plot{};      ///< a picture's file; empty: none
  std::string root = "/proc";
  int pid = 0;                         ///< of `get`
  std::vector<std::string> command{};  ///< of `run`
  std::string trace{};                 ///< of `run`: where its traces go, as CMTTRACE_OUT; empty: it is not traced
  std::string command_output{};
  std::string command_error{};
};

extern const char run_help[];
extern const char get_help[];

std::vector<command::Option> run_options();
std::vector<command::Option> get_options();

/// These throw UsageError.
Options parse_run(const command::CommandLine& line);
Options parse_get(const command::CommandLine& line);

}  // namespace cmt::watch
