#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cmtwatch/commands/options.h"
#include "cmtwatch/sample/sampling.h"
#include "toolkit/command/launch.h"

namespace cmt::watch {

/// Where a report goes, as it comes: a file of its own, or one of ours.
class Destination {
 public:
  /// Opens `path`, or takes `otherwise` (1 or 2) where it is empty. Throws std::system_error.
  Destination(const std::string& path, int otherwise);
  ~Destination();
  Destination(const Destination&) = delete;
  Destination& operator=(const Destination&) = delete;

  /// Throws std::system_error.
  void write(const std::string& text);
  int fd() const { return fd_; }

 private:
  std::string path_;
  int fd_;
  bool own_;
};

/// What a watch shows while it goes on and at its end, in one form.
class Report {
 public:
  virtual ~Report() = default;
  virtual void sample(const Sample& sample) = 0;
  /// The terminal, if there is one, has another size.
  virtual void resized() {}
  /// Takes away what is drawn: before anything else is written to the terminal, and before we stop.
  virtual void clear() {}
  /// `ended` is what became of a command, where there was one.
  virtual void end(const Outcome& outcome, const std::optional<command::Ended>& ended) = 0;
};

/// The report that the options ask for. Both arguments outlive it.
std::unique_ptr<Report> make_report(const Options& options, Destination& destination);

}  // namespace cmt::watch
