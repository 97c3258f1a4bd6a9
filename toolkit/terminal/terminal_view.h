#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "toolkit/terminal/terminal.h"

namespace cmt::output {

/// Who writes to a terminal beside us.
enum class Beside { nobody, command };

/// Something that is shown on a terminal while things go on: drawn over at most ten times a second, and taken away at
/// the end. Where the descriptor is no terminal nothing is written.
///
///     const auto view = make_terminal_view(STDOUT_FILENO, Beside::nobody);
///     if (view->due()) view->show({"12 MiB", sparkline(all, view->size().columns)});
class TerminalView {
 public:
  virtual ~TerminalView() = default;
  TerminalView(const TerminalView&) = delete;
  TerminalView& operator=(const TerminalView&) = delete;

  bool active() const { return terminal_; }

  /// Whether a new drawing would be shown: the last one is older than a tenth of a second.
  bool due() const { return terminal_ && Clock::now() >= next_; }

  /// Of the terminal, now.
  TerminalSize size() const { return terminal_size(fd_); }

  /// Draws lines over the last ones, each cut to the terminal's width. Left out where it is not due.
  void show(const std::vector<std::string>& lines);

  /// The terminal has another size: the next drawing is due at once.
  virtual void resized() { next_ = Clock::time_point::min(); }

  /// Takes the lines away: before anything else is written to the terminal, and before we stop.
  virtual void clear() = 0;

 protected:
  using Clock = std::chrono::steady_clock;

  TerminalView(int fd, Clock::time_point first);

  virtual void draw(const std::vector<std::string>& lines) = 0;

  int fd() const { return fd_; }

  /// What could not be shown is nobody's concern.
  void write(std::string_view text) const;

 private:
  int fd_;
  bool terminal_;
  Clock::time_point next_;
};

/// A LiveView where nobody else writes, else a BottomLine, which shows the first of the lines alone.
std::unique_ptr<TerminalView> make_terminal_view(int fd, Beside beside);

}  // namespace cmt::output
