/// Progress on a terminal. The hard case is a command that writes to the same terminal.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cmt::terminal {

struct TerminalSize {
  std::size_t rows = 24;
  std::size_t columns = 80;

  bool operator==(const TerminalSize&) const = default;
};

/// The size of a descriptor's terminal: 24 rows of 80 columns if it is not known, else at least two of each.
TerminalSize terminal_size(int fd);

/// Whether standard output shows bold text: a terminal that obeys sequences, and the variable NO_COLOR is not set.
bool output_has_styles();

/// How many columns tables on standard output may have: the variable COLUMNS, or else those of its terminal, from 80 to
/// 200; 120 where it is no terminal.
std::size_t table_width();

/// The first `width` code points of a text; each counts as one column.
std::string_view cut_to_width(std::string_view text, std::size_t width);

/// The last `width` numbers as columns of eight heights, from 0 up to the largest of them: "▁▂▅█". UTF-8, one code
/// point for each number; fewer numbers give a shorter line.
std::string sparkline(std::span<const std::uint64_t> numbers, std::size_t width);

/// Which other process writes to the terminal.
enum class Beside { nobody, command };

/// Lines on a terminal that show progress. They are drawn over at most ten times a second, and erased at the end.
/// Nothing is written to a descriptor that is not a terminal.
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

  /// The current size of the terminal.
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

/// A line in the last row of a terminal, while a command writes to the rows above. These are made the scrolling region,
/// and the cursor is always restored, so that the command's output neither overwrites the line nor moves it.
///
/// Nothing is drawn if TERM is unset or `dumb`, or if there are fewer than three rows. The row is given back in two
/// cases:
///
/// - Another job is in the foreground.
/// - The terminal hands out keys instead of lines, as for editors and other programs that take the whole screen.
class BottomLine : public TerminalView {
 public:
  explicit BottomLine(int fd);
  ~BottomLine() override { BottomLine::clear(); }

  /// Erases the line, and makes the whole terminal the scrolling region again.
  void clear() override;

 private:
  void draw(const std::vector<std::string>& lines) override;
  bool terminal_is_ours() const;

  bool understood_;                         ///< TERM names a terminal that understands what we write
  std::optional<TerminalSize> drawn_on_{};  ///< the terminal's size when we drew; none: the last row is not ours
  Clock::time_point reserve_again_{};
};

/// A LiveView where no other process writes, else a BottomLine, which shows only the first line.
std::unique_ptr<TerminalView> make_terminal_view(int fd, Beside beside);

}  // namespace cmt::terminal
