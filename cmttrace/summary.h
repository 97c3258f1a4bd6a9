/// The lines that cmttrace prints at the end of a recording, and while the collectors are not done.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cmttrace/node_names.h"
#include "toolkit/command/command_line.h"
#include "toolkit/launch/trace_status.h"
#include "toolkit/terminal/terminal.h"

namespace cmt::trace_launcher {

/// Prints a line of cmttrace on standard error.
inline void say(const std::string& text) { command::complain("cmttrace", text); }

/// The facts of a summary beside the figures of the traces.
struct RecordingEnd {
  double seconds = 0;  ///< for how long it went on
  int signal = 0;      ///< the one that ended the command; 0: none
  int status = 0;      ///< of the command's exit
  int process = 0;     ///< the command's
  bool has_stacks = false;
  bool has_trace = true;  ///< or the files are profiles
  bool is_verbose = false;
  std::string list{};                                          ///< the file that lists all processes; empty: none
  NodeNames::State node_names = NodeNames::State::not_wanted;  ///< of the command
};

/// The lines at the end. The first one has the figures of the trace with the highest peak, and what was lost.
std::vector<std::string> summarise(const launch::RecordedTraces& recorded, const RecordingEnd& recording);

/// Notices that the collectors of a command that has ended make no progress, by the reports of each half second.
class Standstill {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds patience{30};

  /// Returns a line to print, once for each standstill. Empty: some trace has come on, or all are whole.
  std::string look(const std::vector<launch::BegunTrace>& traces, Clock::time_point now);

 private:
  std::uint64_t progress_ = 0;
  std::optional<Clock::time_point> since_;
  bool is_reported_ = false;
};

/// Shows on the terminal how long the collectors of a command that has ended will go on. Prints a line, also elsewhere,
/// if they make no progress.
class EncodingProgress {
 public:
  void show(const std::vector<launch::BegunTrace>& traces);
  /// Whether show() is to be called.
  bool due() const { return view_->due() || Standstill::Clock::now() - shown_ >= std::chrono::seconds(1); }
  void clear() { view_->clear(); }

 private:
  const std::unique_ptr<terminal::TerminalView> view_ =
      terminal::make_terminal_view(STDERR_FILENO, terminal::Beside::nobody);
  Standstill standstill_;
  Standstill::Clock::time_point shown_;
  std::uint64_t first_waiting_ = 0;
  Standstill::Clock::time_point first_;
};

}  // namespace cmt::trace_launcher
