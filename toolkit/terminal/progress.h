#pragma once

#include <chrono>
#include <string_view>

namespace cmt::output {

/// One line on a terminal that says how far things are: written over at most ten times a second, and taken away at the
/// end. Where the descriptor is no terminal nothing is written.
class ProgressLine {
 public:
  explicit ProgressLine(int fd);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool active() const { return terminal_; }

  /// Shows a text, cut to the terminal's width; left out where the last one is younger than a tenth of a second.
  void show(std::string_view text);

  /// Takes the line away: before anything else is written to the terminal.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  void write(std::string_view text) const;

  int fd_;
  bool terminal_;
  bool shown_ = false;
  Clock::time_point next_ = Clock::time_point::min();
};

}  // namespace cmt::output
