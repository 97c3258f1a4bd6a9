/// The lines that cmttrace prints at the end of a recording, and while the collectors are not done.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "toolkit/launch/trace_status.h"
#include "toolkit/terminal/terminal.h"

namespace cmt::trace_launcher {

/// The line at the end. `seconds`: for how long the recording went on.
std::string summary(const launch::RecordedTraces& recorded, double seconds);

/// Shows on the terminal how long the collectors of a command that has ended will go on.
class EncodingProgress {
 public:
  void show(const std::vector<launch::BegunTrace>& traces);
  bool due() const { return view_->due(); }
  void clear() { view_->clear(); }

 private:
  const std::unique_ptr<terminal::TerminalView> view_ =
      terminal::make_terminal_view(STDERR_FILENO, terminal::Beside::nobody);
  std::uint64_t first_waiting_ = 0;
  std::chrono::steady_clock::time_point first_;
};

/// Notices that the collectors of a command that has ended make no progress, by the reports of each half second.
class Standstill {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds patience{30};

  /// Returns a line to print, once for each standstill. Empty: some trace has come on, or all are whole.
  std::string look(const std::vector<launch::BegunTrace>& traces, Clock::time_point now);

 private:
  std::uint64_t progress_ = 0;
  Clock::time_point since_{};
  bool is_reported_ = false;
};

}  // namespace cmt::trace_launcher
