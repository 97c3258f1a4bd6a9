/// The report of cmtwatch run and get.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cmtwatch/report/report_output.h"
#include "cmtwatch/sample/process_set.h"
#include "cmtwatch/sample/watch.h"
#include "toolkit/launch/launch.h"

namespace cmt::watch {

/// The options of `run` and `get`.
struct WatchOptions : SamplingOptions {
  enum class Peak { beside, without, only };

  Metric metric = Metric::pss;
  Peak peak = Peak::beside;
  bool each = false;       ///< every sample is shown, not the peak alone
  bool recursive = false;  ///< descendants too
  process::GroupFolders folders{};
  int pid = 0;                         ///< of `get`
  std::vector<std::string> command{};  ///< of `run`
  TraceOptions trace{};
  std::string command_output{};
  std::string command_error{};
};

/// Shows a watch in the form that the options ask for, and draws its picture. Text on a terminal is a view that is
/// redrawn in place: the last samples as columns, and the processes if asked for.
class WatchReport {
 public:
  /// Opens the picture's file at once. Both arguments outlive it. Throws as PictureFile does.
  WatchReport(const WatchOptions& options, Destination& destination);

  /// Shows a sample at once, as text or CSV.
  void show(const Sample& sample);
  /// Keeps a sample for the JSON document and the picture, which are made at the end.
  void keep(const Sample& sample);

  /// The view on a terminal.
  LiveColumns& columns() { return columns_; }
  bool is_text() const { return options_.form == WatchOptions::Form::text; }

  /// The control group at the moment at which most was charged to it, for people; empty if there is none.
  std::string group_line(const WatchResult& result) const;

  /// `ended` is how the command ended, if there was one.
  void end(const WatchResult& result, const std::optional<launch::Ended>& ended);

 private:
  void show_text(const Sample& sample);
  void end_text(const WatchResult& result);
  LiveColumns::Text live_text() const;

  const WatchOptions& options_;
  Destination& destination_;
  LiveColumns columns_;
  Sample last_, peak_;  ///< that the terminal shows
  std::optional<picture::PictureFile> picture_;
  std::vector<Sample> samples_;
};

/// Memory over time; with names, each process's part of it.
picture::Picture watch_picture(const WatchOptions& options, const std::vector<Sample>& samples,
                               const WatchResult& result);

/// "1 process could not be read", "2 processes…".
std::string refusals(unsigned count);

}  // namespace cmt::watch
