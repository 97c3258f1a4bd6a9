#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "output/terminal.h"

namespace cmt::output {

/// Some lines at the bottom of a terminal that are drawn over in place, at most ten times a second, and taken away at
/// the end. Where the descriptor is no terminal nothing is written.
///
///     LiveView view(STDOUT_FILENO);
///     if (view.due()) view.show({"12 MiB", sparkline(all, view.size().columns)});
class LiveView {
 public:
  explicit LiveView(int fd);
  ~LiveView() { clear(); }
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

  bool active() const { return terminal_; }

  /// Whether a new drawing would be shown: the last one is older than a tenth of a second.
  bool due() const { return terminal_ && Clock::now() >= next_; }

  /// Of the terminal, now.
  TerminalSize size() const { return terminal_size(fd_); }

  /// Draws lines over the last ones: each cut to the terminal's width, and no more than it has rows. Left out where it
  /// is not due.
  void show(const std::vector<std::string>& lines);

  /// The terminal has another size, and may have broken the lines anew: the next drawing is due at once. Where they
  /// became too wide nobody knows where they stand now, and the screen is cleared.
  void resized();

  /// Takes the lines away: before anything else is written to the terminal.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  std::string to_begin() const;
  void write(const std::string& text) const;

  int fd_;
  bool terminal_;
  std::size_t lines_shown_ = 0;
  std::size_t widest_shown_ = 0;
  Clock::time_point next_ = Clock::time_point::min();
};

}  // namespace cmt::output
