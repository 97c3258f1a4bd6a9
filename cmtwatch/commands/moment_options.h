#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cmtwatch/recording/moment.h"
#include "toolkit/command/command_line.h"

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

/// What `play` is asked for.
struct PlayOptions {
  MomentOptions moment;
  std::optional<double> speed{};              ///< as fast as it was recorded, or so many times
  std::optional<std::int64_t> interval_ns{};  ///< between two moments, whenever they were
};

extern const char peak_help[];
extern const char show_help[];
extern const char play_help[];
std::vector<command::Option> peak_options();
std::vector<command::Option> show_options();
std::vector<command::Option> play_options();

/// These throw UsageError.
MomentOptions parse_peak(const command::CommandLine& line);
MomentOptions parse_show(const command::CommandLine& line);
PlayOptions parse_play(const command::CommandLine& line);

}  // namespace cmt::watch
