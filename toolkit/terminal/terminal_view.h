#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "toolkit/terminal/terminal.h"

namespace cmt::output {

/// Which other process writes to the terminal.
enum class Beside { nobody, command };

/// Lines on a terminal that tell the progress of something: drawn over at most ten times a second, and erased at the
/// end. Where the descriptor is not a terminal nothing is written.
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

  /// Draws lines over the last ones, each cut to the terminal's width. Does nothing where it is not due.
  void show(const std::vector<std::string>& lines);

  /// The terminal has another size: the next drawing is due at once.
  virtual void resized() { next_ = Clock::time_point::min(); }

  /// Erases the lines: before anything else is written to the terminal, and before we stop.
  virtual void clear() = 0;

 protected:
  using Clock = std::chrono::steady_clock;

  TerminalView(int fd, Clock::time_point first);

  virtual void draw(const std::vector<std::string>& lines) = 0;

  int fd() const { return fd_; }

  /// Ignores errors.
  void write(std::string_view text) const;

 private:
  int fd_;
  bool terminal_;
  Clock::time_point next_;
};

/// Lines on a terminal that no other process writes to, drawn over in place; no more than the terminal has rows.
class LiveView : public TerminalView {
 public:
  explicit LiveView(int fd);
  ~LiveView() override { LiveView::clear(); }

  /// The terminal may have wrapped the lines. Where they have become too wide their place is not known any more, and
  /// the screen is cleared.
  void resized() override;

  void clear() override;

 private:
  void draw(const std::vector<std::string>& lines) override;
  std::string to_begin() const;

  std::size_t lines_shown_ = 0;
  std::size_t widest_shown_ = 0;
};

/// A LiveView where no other process writes, else a BottomLine, which shows only the first line.
std::unique_ptr<TerminalView> make_terminal_view(int fd, Beside beside);

}  // namespace cmt::output
