#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cmtwatch/commands/options.h"
#include "cmtwatch/sample/sampling.h"
#include "toolkit/command/launch.h"
#include "toolkit/picture/picture_file.h"

namespace cmt::watch {

/// The picture of a watch, where one is wanted: memory over time; with names, each process's part of it. Keeps all
/// samples until the end.
class Plot {
 public:
  /// Opens the file at once. Throws std::system_error, and std::runtime_error where what makes it is missing.
  explicit Plot(const Options& options);

  void sample(const Sample& sample);

  /// Throws as the constructor does.
  void end(const Outcome& outcome, const std::optional<command::Ended>& ended);

 private:
  const Options& options_;
  std::optional<output::PictureFile> file_;
  std::vector<Sample> samples_;
};

}  // namespace cmt::watch
