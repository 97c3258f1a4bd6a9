#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cmtwatch/report/report_output.h"
#include "cmtwatch/sample/metric.h"
#include "cmtwatch/sample/watch.h"
#include "toolkit/command/launch.h"

namespace cmt::watch {

/// The options of `run` and `get`.
struct WatchOptions {
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
  bool pause = false;      ///< processes are stopped while they are measured
  std::string output;      ///< a file; empty: where the subcommand writes
  std::string plot{};      ///< a picture's file; empty: none
  std::string root = "/proc";
  int pid = 0;                         ///< of `get`
  std::vector<std::string> command{};  ///< of `run`
  std::string trace{};                 ///< of `run`: the traces' files, as CMTTRACE_OUT; empty: it is not traced
  std::string command_output{};
  std::string command_error{};
};

/// Shows a watch while it goes on and at its end, in one form.
class WatchReport {
 public:
  virtual ~WatchReport() = default;
  virtual void sample(const Sample& sample) = 0;
  /// The terminal, if there is one, has another size.
  virtual void resized() {}
  /// Erases the drawing: before anything else is written to the terminal, and before we stop.
  virtual void clear() {}
  /// `ended` is how the command ended, where there was one.
  virtual void end(const WatchResult& result, const std::optional<command::Ended>& ended) = 0;
};

/// The report that the options ask for. Both arguments outlive it.
std::unique_ptr<WatchReport> make_watch_report(const WatchOptions& options, Destination& destination);

/// Lines for people (watch_text.cpp); rows of CSV and a document of JSON (watch_data.cpp).
std::unique_ptr<WatchReport> make_watch_text(const WatchOptions& options, Destination& destination);

/// Schema cmt.watch/1.
std::string watch_json(const WatchOptions& options, const std::vector<Sample>& samples, const WatchResult& result,
                       const std::optional<command::Ended>& ended);

/// The picture of a watch, where one is asked for: memory over time; with names, each process's part of it. Keeps all
/// samples until the end.
class WatchPlot {
 public:
  /// Opens the file at once. Throws std::system_error, and std::runtime_error where rsvg-convert is needed and missing.
  explicit WatchPlot(const WatchOptions& options);

  void sample(const Sample& sample);

  /// Throws as the constructor does.
  void end(const WatchResult& result, const std::optional<command::Ended>& ended);

 private:
  const WatchOptions& options_;
  std::optional<output::PictureFile> file_;
  std::vector<Sample> samples_;
};

/// "1 process could not be read", "2 processes…".
std::string refusals(unsigned count);

}  // namespace cmt::watch
