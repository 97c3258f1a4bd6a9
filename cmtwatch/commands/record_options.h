#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cmtwatch/recording/measures.h"
#include "cmtwatch/sample/sampling.h"
#include "toolkit/command/command_line.h"

namespace cmt::watch {

/// What `record` is asked for.
struct RecordOptions {
  std::string path;
  Pace pace;
  bool all = false;        ///< every process that there is
  bool recursive = false;  ///< descendants too
  bool pause = false;      ///< who is recorded is stopped meanwhile
  std::vector<int> pids{};
  std::vector<std::string> command{};
  std::optional<std::int64_t> keep_ns{};  ///< what is older is forgotten
  Measures measures{};
  std::string plot{};  ///< a picture's file; empty: none
  std::string root = "/proc";
};

extern const char record_help[];
std::vector<command::Option> record_options();

/// Throws UsageError. `launches`: what is no option is a command.
RecordOptions parse_record(const command::CommandLine& line, bool launches);

}  // namespace cmt::watch
