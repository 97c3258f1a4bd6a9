#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cmtwatch/moment.h"
#include "command/command_line.h"

namespace cmt::watch {

/// What `peak` and `show` are asked for.
struct MomentOptions {
  enum class When { peak, worst, at };

  std::string path;
  When when = When::peak;
  std::int64_t at_ns = 0;
  Whose whose{};
  bool verbose = false;  ///< every process by itself
  bool bytes = false;
  bool json = false;
};

extern const char peak_help[];
extern const char show_help[];
std::vector<command::Option> peak_options();
std::vector<command::Option> show_options();

/// These throw UsageError.
MomentOptions parse_peak(const command::CommandLine& line);
MomentOptions parse_show(const command::CommandLine& line);

}  // namespace cmt::watch
